// What the tests of the page share: a Redis, the dashboard in front of it, processes that hold and wait, and a browser.
//
// Everything that was started is ended with the test, also when it fails. Tests wait for what they want to see, never for a time.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

export const bin = process.env.LOCKSTEP_TEST_BIN;
export const within = 20_000;

class Program {
  constructor(command, args, options = {}) {
    this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options });
    this.lines = [];
    this.waiting = [];
    this.ended = new Promise((done) => this.process.once('exit', done));
    createInterface({ input: this.process.stdout }).on('line', (line) => {
      const next = this.waiting.shift();
      if (next) next(line);
      else this.lines.push(line);
    });
  }
  line() {
    if (this.lines.length > 0) return Promise.resolve(this.lines.shift());
    return new Promise((done, failed) => {
      this.waiting.push(done);
      this.ended.then(() => failed(new Error(`${this.process.spawnfile} ended`)));
    });
  }
  // What it answers behind its "ok".
  async tell(order) {
    this.process.stdin.write(`${order}\n`);
    const said = await this.line();
    if (said !== 'ok' && !said.startsWith('ok ')) throw new Error(`${order}: ${said}`);
    return said.slice(3);
  }
  async end() {
    this.process.stdin.end();
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 5000);
    await this.ended;
    clearTimeout(timer);
  }
  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

export async function eventually(condition, what = 'the condition', timeout = within) {
  for (const until = Date.now() + timeout; ; ) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > until) throw new Error(`not in ${timeout} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

export class World {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'lockstep-browser-'));
    this.programs = [];
    this.problems = []; // of pages: errors, refusals of the content security policy, dialogs
  }

  // `port`: a Redis on TCP, for pictures; tests use a socket of their own.
  static async start(options = [], port = 0) {
    const world = new World();
    try {
      await world.startRedis(port);
      await world.startDashboard(options);
      world.browser = await chromium.launch({ executablePath: process.env.LOCKSTEP_CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
    } catch (failure) {
      await world.end();
      throw failure;
    }
    return world;
  }

  run(command, args) {
    const program = new Program(command, args);
    this.programs.push(program);
    return program;
  }

  async startRedis(port) {
    const socket = join(this.folder, 'redis.sock');
    this.url = port > 0 ? `redis://127.0.0.1:${port}` : `unix://${socket}`;
    this.redis = this.run('redis-server', ['--port', String(port), '--unixsocket', socket, '--save', '', '--dir', this.folder]);
    await eventually(async () => {
      const ping = new Program('redis-cli', ['-s', socket, 'ping'], { stdio: ['pipe', 'pipe', 'ignore'] });
      const said = await Promise.race([ping.line().catch(() => ''), ping.ended.then(() => '')]);
      await ping.ended;
      return said === 'PONG';
    }, 'redis answers');
  }

  async startDashboard(options = []) {
    this.dashboard = this.run(join(bin, 'dashboard_host'), [this.url, ...options]);
    this.address = await this.dashboard.line();
    this.port = new URL(this.address).port;
  }

  // A process of this name that does as it is told: tests/support/programs/puppet.cpp.
  puppet(name, ttl = 10_000) {
    return this.run(join(bin, 'puppet'), [this.url, name, String(ttl)]);
  }

  // One that schedules jobs and runs them: tests/support/programs/job_puppet.cpp.
  jobPuppet(name) {
    return this.run(join(bin, 'job_puppet'), [this.url, name]);
  }

  // A link that logs in, once; the address where there is no token.
  link() {
    return this.dashboard.tell('link');
  }

  // Logged in, unless `live` is false. In `context`, as a further tab there, or in a browser of its own.
  async open({ path = '', width = 1280, height = 800, theme = 'light', live = true, context } = {}) {
    context ??= await this.browser.newContext({ viewport: { width, height }, colorScheme: theme, ignoreHTTPSErrors: true });
    const page = await context.newPage();
    page.setDefaultTimeout(within);
    const note = (what) => this.problems.push(what);
    page.on('console', (message) => {
      // A request that failed because the test ended the server is not the page's fault; the browser logs it anyway.
      if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE/.test(message.text())) note(`console: ${message.text()}`);
    });
    page.on('pageerror', (failure) => note(`error: ${failure.message}`));
    page.on('dialog', (dialog) => {
      note(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      const host = new URL(request.url()).host;
      if (host !== new URL(this.address).host && !request.url().startsWith('data:')) note(`asks another host: ${request.url()}`);
    });
    const link = live ? await this.link() : this.address;
    if (link !== this.address) {
      await page.goto(link);
      await page.waitForSelector('.link.live');
      if (path === '') return page;
    }
    await page.goto(this.address + path);
    if (live) await page.waitForSelector('.link.live');
    return page;
  }

  async end() {
    await this.browser?.close();
    for (const program of this.programs.reverse()) {
      if (program === this.redis) await program.kill();
      else if (program.process.exitCode === null && program.process.signalCode === null) await program.end();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const encoded = (name) => Array.from(new TextEncoder().encode(name), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
// The row of a name, by its whole text.
export const row = (page, name) => page.locator('.row').filter({ has: page.locator('.cell-name .name', { hasText: new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`) }) });

// The status of a POST that the page could make, by hand.
export const post = (page, path, body) =>
  page.evaluate(
    async ([path, body]) => {
      const headers = { 'Content-Type': 'application/json', 'X-Lockstep-Session': sessionStorage.getItem('lockstep-session') ?? '' };
      return (await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).status;
    },
    [path, body],
  );
