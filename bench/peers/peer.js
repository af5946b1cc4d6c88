// One process of a peer library for bench_sync, bench_quorum or bench_state, which starts it, tells it by lines on stdin what to run, and reads a line
// of results.
//
//   node peer.js <library> <port or socket>[,<port or socket>...]    redlock takes several nodes
//   stdin   <one | own> <retry delay, ms> <contenders> <start, monotonic ms> <length, ms>    one name for all, or each its own
//   stdout  ready, then for each line <acquisitions> <seconds> <fewest by a contender> <most> <wait, us> <wait, us> ...
//
// What is acquired after the length counts as a wait and not as an acquisition: contenders that starved while one went on and on then
// need long to come to an end.
//
// Settings are the fastest that each library documents: no limit on retries, no jitter, the given delay between retries, no
// automatic extension, one connection to each node.

'use strict';

const readline = require('readline');
const Redis = require('ioredis');

const [library, where] = process.argv.slice(2);
const ttl = 30000;
const nodes = where.split(',').map((one) => new Redis(/^\d+$/.test(one) ? {port: Number(one), host: '127.0.0.1'} : {path: one}));
const redis = nodes[0];

const libraries = {
    redlock() {
        const {default: Redlock} = require('redlock');
        return (name, delay) => {
            const lock = new Redlock(nodes, {retryCount: -1, retryDelay: delay, retryJitter: 0});
            return () => lock.acquire([name], ttl);
        };
    },
    'redis-semaphore'() {
        const {Mutex} = require('redis-semaphore');
        return (name, delay) => {
            const mutex = new Mutex(redis, name, {
                acquireTimeout: 1e9, acquireAttemptsLimit: Infinity, lockTimeout: ttl, retryInterval: delay, refreshInterval: 0,
            });
            return async () => (await mutex.acquire(), mutex);
        };
    },
    'rate-limiter-flexible'() {
        const {RateLimiterRedis} = require('rate-limiter-flexible');
        const limiter = new RateLimiterRedis({storeClient: redis, points: 1e9, duration: 1});
        const given = {release() {}};
        return (name) => async () => (await limiter.consume(name), given);
    },
};

const now = () => Number(process.hrtime.bigint()) / 1e6;

async function contend(acquire, end, waits) {
    let count = 0;
    for (let begun = now(); begun < end; begun = now()) {
        const lock = await acquire();
        const got = now();
        waits.push(got - begun);
        if (got < end) ++count;
        await lock.release();
    }
    return count;
}

async function run(acquirer, mode, delay, contenders, start, length) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, start - now())));
    const waits = [];
    const all = [];
    for (let i = 0; i !== contenders; ++i) {
        all.push(contend(acquirer(mode === 'one' ? 'peer' : `peer:${i}`, delay), start + length, waits));
    }
    const counts = await Promise.all(all);
    const sum = counts.reduce((left, right) => left + right, 0);
    const texts = waits.map((ms) => Math.round(ms * 1000));
    console.log([sum, length / 1000, Math.min(...counts), Math.max(...counts), ...texts].join(' '));
}

const acquirer = libraries[library]();
readline.createInterface({input: process.stdin}).on('line', (line) => {
    const [mode, ...numbers] = line.split(' ');
    run(acquirer, mode, ...numbers.map(Number)).catch((problem) => (console.error(problem), process.exit(1)));
}).on('close', () => process.exit(0));
Promise.all(nodes.map((one) => one.ping())).then(() => console.log('ready'));
