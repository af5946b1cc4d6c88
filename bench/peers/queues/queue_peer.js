// One process of a queue of Node for bench_messaging and bench_jobs, which start it, tell it by lines on stdin what to run, and read a line of results.
//
//   node queue_peer.js <bullmq | bee-queue> <port or socket>
//   stdin   <add | bulk | work | latency | flow | flow-work> <unused> <in flight> <start, monotonic ms> <length, ms>
//   stdout  ready, then for each line <items> <seconds> <items> <items> 0
//
// add: one by one, so many in flight. bulk: 100 at once, one call after the other. work: items that were added before are taken, handled by a
// function that does nothing, and done, by one worker with so much concurrency. latency: from adding one to its handler, which is idle; the seconds
// are the sum of these. flow: jobs that wait for 5 others each, added together, one such six after the other, so many in flight; flow-work: as work,
// of these. What is done is removed, as here.

'use strict';

const readline = require('readline');

const [library, where] = process.argv.slice(2);
const connection = /^\d+$/.test(where) ? {port: Number(where), host: '127.0.0.1'} : {path: where};
const payload = {text: 'x'.repeat(22)};  // 32 bytes, as JSON
const now = () => Number(process.hrtime.bigint()) / 1e6;
const name = 'peer';

const libraries = {
    bullmq() {
        const {Queue, Worker, FlowProducer} = require('bullmq');
        const options = {removeOnComplete: true, removeOnFail: true};
        const queue = new Queue(name, {connection});
        const flows = new FlowProducer({connection});
        const one = {name: 'job', queueName: name, data: payload, opts: options};
        const six = {...one, children: Array.from({length: 5}, () => one)};
        return {
            ready: () => queue.waitUntilReady(),
            add: () => queue.add('job', payload, options),
            bulk: () => queue.addBulk(Array.from({length: 100}, () => ({name: 'job', data: payload, opts: options}))),
            flow: () => flows.add(six),
            clear: () => queue.obliterate({force: true}),
            async work(concurrency, done) {
                const worker = new Worker(name, async () => done(), {connection, concurrency});
                await worker.waitUntilReady();
                return () => worker.close(true);
            },
        };
    },
    'bee-queue'() {
        const Queue = require('bee-queue');
        const open = (isWorker) => new Queue(name, {
            redis: connection, isWorker, getEvents: false, sendEvents: false, storeJobs: false, removeOnSuccess: true, activateDelayedJobs: false,
        });
        const queue = open(false);
        return {
            ready: () => queue.ready(),
            add: () => queue.createJob(payload).save(),
            bulk: () => queue.saveAll(Array.from({length: 100}, () => queue.createJob(payload))),
            clear: () => queue.destroy(),
            async work(concurrency, done) {
                const worker = open(true);
                await worker.ready();
                worker.process(concurrency, async () => done());
                return () => worker.close(1000).catch(() => {});
            },
        };
    },
};

const peer = libraries[library]();

async function repeat(what, each, inFlight, end) {
    let count = 0;
    const one = async () => {
        while (now() < end) {
            await what();
            count += each;
        }
    };
    await Promise.all(Array.from({length: inFlight}, one));
    return count;
}

// More than it can do in that time.
async function fillWithJobs(length) {
    for (let i = 0; i !== Math.ceil(length / 5); ++i) await peer.bulk();
    return Math.ceil(length / 5) * 100;
}
async function fillWithFlows(length) {
    let left = Math.ceil(length * 2);
    const total = left * 6;
    const some = async () => {
        while (left-- > 0) await peer.flow();
    };
    await Promise.all(Array.from({length: 64}, some));
    return total;
}

async function work(fill, inFlight, length) {
    const total = await fill(length);
    let count = 0;
    let begun;
    let over;
    const all = new Promise((resolve) => (over = resolve));
    // From the first one on: starting a worker takes long, and is not what is measured.
    const stop = await peer.work(inFlight, () => {
        if (++count === 1) {
            begun = now();
            setTimeout(over, length);
        }
        if (count === total) over();
    });
    await all;
    const result = [count, (now() - begun) / 1000];
    await stop();
    return result;
}

async function latency(length) {
    let started;
    const stop = await peer.work(1, () => started(now()));
    const end = now() + length;
    let count = 0;
    let sum = 0;
    while (now() < end) {
        const handled = new Promise((resolve) => (started = resolve));
        const begun = now();
        peer.add();
        sum += (await handled) - begun;
        ++count;
        await new Promise((resolve) => setTimeout(resolve, 2));  // idle again
    }
    await stop();
    return [count, sum / 1000];
}

async function run(mode, unused, inFlight, start, length) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, start - now())));
    let count;
    let seconds;
    if (mode === 'work') {
        [count, seconds] = await work(fillWithJobs, inFlight, length);
    } else if (mode === 'flow-work') {
        [count, seconds] = await work(fillWithFlows, inFlight, length);
    } else if (mode === 'latency') {
        [count, seconds] = await latency(length);
    } else {
        const begun = now();
        const modes = {add: [peer.add, 1, inFlight], bulk: [peer.bulk, 100, 1], flow: [peer.flow, 6, inFlight]};
        count = await repeat(...modes[mode], begun + length);
        seconds = (now() - begun) / 1000;
    }
    await peer.clear();
    console.log([count, seconds, count, count, 0].join(' '));
}

readline.createInterface({input: process.stdin}).on('line', (line) => {
    const [mode, ...numbers] = line.split(' ');
    run(mode, ...numbers.map(Number)).catch((problem) => (console.error(problem), process.exit(1)));
}).on('close', () => process.exit(0));
peer.ready().then(() => console.log('ready'));
