// Getting in, and keeping others out: links, tokens, tabs, other ports of the same host, and what the page may not do.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test from 'node:test';
import { chromium } from 'playwright-core';
import { bin, eventually, row, World } from './harness.mjs';

const token = 'a-token-of-some-length';
const world = await World.start(['--token', token]);
const holder = world.puppet('hidden');
await holder.tell('lock secret');

test('a link logs in with one click, and once', async () => {
  const link = await world.link();
  const page = await world.open({ live: false });
  await page.goto('about:blank');
  await page.goto(link);
  await row(page, 'secret').waitFor();
  assert.equal(page.url(), world.address, 'the code is taken out of the address');
  await page.reload();
  await row(page, 'secret').waitFor();

  const another = await world.browser.newContext();
  const late = await another.newPage();
  await late.goto(link);
  await late.locator('.failure', { hasText: 'used before' }).waitFor();
  assert.equal(await late.locator('.row').count(), 0);
  const again = await page.context().newPage();
  await again.goto(link);
  await row(again, 'secret').waitFor(); // the browser that has used it is known in another tab
  await another.close();
  await page.context().close();
});

test('a token is asked for, once for all tabs, and no cookie is set', async () => {
  const page = await world.open({ live: false });
  await page.locator('.login').waitFor();
  assert.equal(await page.locator('.row').count(), 0);
  await page.fill('.login input', 'wrong');
  await page.keyboard.press('Enter');
  await page.locator('.failure', { hasText: 'not the token' }).waitFor();
  await page.fill('.login input', token);
  await page.keyboard.press('Enter');
  await row(page, 'secret').waitFor();
  const tab = await world.open({ live: false, context: page.context() });
  await row(tab, 'secret').waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes(token), 'the token is kept nowhere');
  await page.context().close();
});

test('other ports of the same host get nothing, and can do nothing', async () => {
  const seen = [];
  const other = createServer((asked, answer) => {
    seen.push(asked.headers);
    answer.setHeader('Content-Type', 'text/html');
    answer.setHeader('Set-Cookie', 'lockstep-session=evil; Path=/api; Max-Age=9999999');
    answer.end('<body>other</body>');
  });
  await new Promise((done) => other.listen(0, '127.0.0.1', done));
  try {
    const page = await world.open();
    const mine = await page.evaluate(() => sessionStorage.getItem('lockstep-session'));
    assert.match(mine, /^\w{32}$/);
    const tab = await page.context().newPage();
    await tab.goto(`http://127.0.0.1:${other.address().port}/`);
    assert.ok(seen.length > 0);
    assert.ok(!JSON.stringify(seen).includes(mine));
    assert.ok(seen.every((headers) => headers.cookie === undefined));
    const tries = await tab.evaluate(
      async ([address, id]) => {
        const outcome = (request) => request.then((answer) => `${answer.type} ${answer.status}`, () => 'refused');
        const heard = await new Promise((done) => {
          const tabs = new BroadcastChannel('lockstep-session');
          tabs.onmessage = ({ data }) => done(JSON.stringify(data));
          tabs.postMessage({ wanted: true });
          setTimeout(() => done('nothing'), 1000);
        });
        return {
          stored: sessionStorage.length,
          heard,
          read: await outcome(fetch(`${address}api/snapshot`)),
          readWithHeader: await outcome(fetch(`${address}api/snapshot`, { headers: { 'X-Lockstep-Session': id } })),
          post: await outcome(fetch(`${address}api/logout`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Lockstep-Session': id }, body: '{}' })),
        };
      },
      [world.address, mine],
    );
    assert.deepEqual(tries, { stored: 0, heard: 'nothing', read: 'refused', readWithHeader: 'refused', post: 'refused' });
    await tab.goto('about:blank');
    await page.reload();
    await row(page, 'secret').waitFor(); // its cookie does not log anybody out
    await page.context().close();
  } finally {
    other.close();
  }
});

test('logging out ends all tabs, and lasts', async () => {
  const page = await world.open();
  const tab = await world.open({ live: false, context: page.context() });
  await row(tab, 'secret').waitFor();
  const mine = await page.evaluate(() => sessionStorage.getItem('lockstep-session'));
  await page.keyboard.press('?');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.locator('.login').waitFor();
  await tab.locator('.login').waitFor();
  await page.reload();
  await page.locator('.login').waitFor();
  const headers = { 'X-Lockstep-Session': mine };
  assert.equal((await page.request.get(`${world.address}api/snapshot`, { headers })).status(), 401);
  await world.dashboard.end();
  await world.startDashboard(['--port', world.port, '--token', token]);
  assert.equal((await page.request.get(`${world.address}api/snapshot`, { headers })).status(), 401, 'after a restart with the same token');
  await page.context().close();
});

test('no markup becomes script, and no form leads elsewhere', async () => {
  const page = await world.open();
  const problems = world.problems.length;
  const tried = await page.evaluate(() => {
    const outcome = (act) => {
      try {
        act();
        return 'done';
      } catch (failure) {
        return failure.name;
      }
    };
    const inline = document.createElement('div');
    const form = document.createElement('form');
    form.action = 'https://evil.example/';
    document.body.append(form);
    form.submit();
    return [outcome(() => (inline.innerHTML = '<b>x</b>')), outcome(() => window.trustedTypes.createPolicy('mine', {})), outcome(() => (document.createElement('script').textContent = 'window.pwned = 1')), location.host];
  });
  assert.deepEqual(tried, ['TypeError', 'TypeError', 'TypeError', new URL(world.address).host]);
  await eventually(() => world.problems.slice(problems).some((one) => /form-action/.test(one)), 'the refusal of the form');
  world.problems.length = problems; // these were wanted
  await page.context().close();
});

test('neither the token nor a code that works is left in the browser’s files', async () => {
  const folder = join(world.folder, 'profile');
  const context = await chromium.launchPersistentContext(folder, { executablePath: process.env.LOCKSTEP_CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  const page = await context.newPage();
  await page.goto(world.address);
  await page.fill('.login input', token);
  await page.keyboard.press('Enter');
  await row(page, 'secret').waitFor();
  const mine = await page.evaluate(() => sessionStorage.getItem('lockstep-session'));
  await page.goto('about:blank');
  const link = await world.link();
  const second = await context.newPage();
  await second.goto(link);
  await row(second, 'secret').waitFor();
  await second.goto('about:blank');
  await context.close();
  const filesIn = (path) => readdirSync(path, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? filesIn(join(path, one.name)) : one.isFile() ? [join(path, one.name)] : []));
  const holding = (text) => filesIn(folder).filter((name) => ['latin1', 'utf16le'].some((form) => readFileSync(name).includes(Buffer.from(text, form))));
  assert.notDeepEqual(holding(mine), [], 'the id of a session is on the disk, as docs/dashboard.md says: this search finds what is');
  assert.deepEqual(holding(token), []);
  const fresh = await world.browser.newContext();
  const late = await fresh.newPage();
  await late.goto(link);
  await late.locator('.failure', { hasText: 'used before' }).waitFor();
  await fresh.close();
});

test('over TLS it is the same page', async () => {
  const [certificate, key] = [join(world.folder, 'own.crt'), join(world.folder, 'own.key')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', certificate, '-subj', '/CN=localhost', '-days', '2'], { stdio: 'ignore' });
  await world.dashboard.end();
  await world.startDashboard(['--token', token, '--tls-cert', certificate, '--tls-key', key]);
  assert.match(world.address, /^https:/);
  const page = await world.open();
  await row(page, 'secret').waitFor();
  await holder.tell('lock another');
  await row(page, 'another').waitFor();
  await page.context().close();
});

test('the command prints a link that works, and so does the demo', async () => {
  const dashboard = world.run(join(bin, 'lockstep'), ['--redis', world.url, 'dashboard', '--port', '0', '--allow-actions']);
  const context = await world.browser.newContext();
  const page = await context.newPage();
  await page.goto(await dashboard.line());
  await row(page, 'secret').waitFor();
  dashboard.process.kill('SIGINT');
  await dashboard.ended;

  const demo = world.run(join(bin, 'lockstep'), ['demo', '--json', '--seconds', '60']);
  const { what, url, token: own } = JSON.parse(await demo.line());
  assert.equal(what, 'dashboard');
  const shown = await context.newPage();
  await shown.goto(url);
  await row(shown, 'ledger').waitFor();
  const elsewhere = await world.browser.newContext(); // as after the only tab was closed
  const later = await elsewhere.newPage();
  await later.goto(new URL(url).origin);
  await later.fill('.login input', own);
  await later.keyboard.press('Enter');
  await row(later, 'ledger').waitFor();
  await elsewhere.close();
  demo.process.kill('SIGINT');
  await demo.ended;
  await context.close();
});

test('nothing went wrong in any page', () => assert.deepEqual(world.problems, []));

test('everything that was started ends', () => world.end());
