// A program of another language that contends for a lock with Lockstep, over lock libraries of npm.
//
//   node contender.js <redlock | redis-semaphore> <socket,socket,...> <referee's socket> <name> <contenders>
//
// Says "ready"; then its contenders acquire and release the lock until there is no more input, and it says how often they held it. While
// they hold it the referee counts them: `inside`, and `overlaps` where somebody was inside already.
'use strict';

const path = require('path');
const modules = path.join(process.cwd(), 'node_modules');
const load = (name) => require(require.resolve(name, {paths: [modules]}));
const Redis = load('ioredis');

const [library, nodes, referee, name, contenders] = process.argv.slice(2);
const clients = nodes.split(',').map((socket) => new Redis({path: socket}));
const judge = new Redis({path: referee});
const ttl = 3000;  // redlock leaves what it got of a vote that nobody won until then, and all have to wait for that

const libraries = {
    redlock() {
        const {default: Redlock} = load('redlock');
        const {ExecutionError} = load('redlock');
        // It gives up what it got of a lock only after its last try: with retries of its own, several that split the nodes between them
        // wait for each other until that has run out.
        const lock = new Redlock(clients, {retryCount: 0});
        lock.on('error', () => {});
        return async () => {
            for (;;) {
                try {
                    return await lock.acquire([name], ttl);
                } catch (problem) {
                    if (!(problem instanceof ExecutionError)) throw problem;
                }
                await new Promise((resolve) => setTimeout(resolve, 2 + 16 * Math.random()));
            }
        };
    },
    'redis-semaphore'() {  // puts `mutex:` before the name by itself
        const {Mutex, RedlockMutex} = load('redis-semaphore');
        const options = {acquireTimeout: 1e9, acquireAttemptsLimit: Infinity, lockTimeout: ttl, retryInterval: 10};
        return async () => {
            const own = name.replace(/^mutex:/, '');
            const mutex = clients.length === 1 ? new Mutex(clients[0], own, options) : new RedlockMutex(clients, own, options);
            await mutex.acquire();
            return mutex;
        };
    },
};

let over = false;
let holds = 0;

async function contend(acquire) {
    while (!over) {
        const held = await acquire();
        if (await judge.incr('inside') !== 1) await judge.incr('overlaps');
        ++holds;
        await judge.decr('inside');
        await held.release();
        await new Promise((resolve) => setTimeout(resolve, 1));  // let others have it
    }
}

const acquire = libraries[library]();
process.stdin.on('end', () => { over = true; }).resume();
console.log('ready');
const all = [];
for (let i = 0; i !== Number(contenders); ++i) all.push(contend(acquire));
Promise.all(all).then(() => (console.log(`holds ${holds}`), process.exit(0)),
    (problem) => (console.log(`failed: ${problem}`), process.exit(1)));
