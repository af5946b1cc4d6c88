// Looking: locks come and go by themselves, leases run down, queues are drawn, search and keys work, names are only names.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { bin, encoded, eventually, row, World } from './harness.mjs';

const world = await World.start(); // not in a hook: those of a whole file do not run in Node 18.13

test('a lock appears when it is taken and is free when it is released, without a reload', async () => {
  const page = await world.open();
  const worker = world.puppet('billing-worker');
  await worker.tell('lock invoice');
  await row(page, 'invoice').locator('.holder-name', { hasText: 'billing-worker' }).waitFor();
  assert.match(await row(page, 'invoice').locator('.holder-place').innerText(), new RegExp(`${worker.process.pid}`));
  await worker.tell('unlock invoice');
  await row(page, 'invoice').locator('.dot.free').waitFor();
  await page.context().close();
});

test('a lease runs down and is renewed', async () => {
  const worker = world.puppet('runner', 3000);
  await worker.tell('lock running');
  const page = await world.open();
  const fill = row(page, 'running').locator('.lease-fill');
  await fill.waitFor({ state: 'attached' });
  const width = () => fill.evaluate((bar) => bar.getBoundingClientRect().width);
  let last = await width();
  await eventually(async () => {
    const next = await width();
    const fell = next < last - 1;
    last = next;
    return fell;
  }, 'the bar gets shorter');
  await eventually(async () => {
    const next = await width();
    const rose = next > last + 5;
    last = next;
    return rose;
  }, 'the bar gets longer again');
  await page.context().close();
  await worker.end();
});

test('who waits is shown in order, with the reason', async () => {
  const holder = world.puppet('holder');
  await holder.tell('lock wanted');
  const first = world.puppet('first-in-line');
  await first.tell('want wanted');
  const page = await world.open();
  await eventually(async () => (await row(page, 'wanted').locator('.cell-queue .avatar').count()) === 1, 'one waits');
  const second = world.puppet('second-in-line');
  await second.tell('want wanted');
  await eventually(async () => (await row(page, 'wanted').locator('.cell-queue .avatar').count()) === 2, 'two wait');
  await row(page, 'wanted').click();
  const waiters = page.locator('.waiters li');
  await eventually(async () => (await waiters.count()) === 2, 'both are in the panel');
  await eventually(async () => /first-in-line/.test(await waiters.nth(0).innerText()), 'the first has said who it is');
  await eventually(async () => /second-in-line/.test(await waiters.nth(1).innerText()), 'so has the second');
  await page.locator('.why', { hasText: 'holder' }).waitFor();
  await holder.tell('unlock wanted');
  await page.locator('.hold .holder-name', { hasText: 'first-in-line' }).waitFor();
  await page.locator('.timeline .bar-hold').first().waitFor();
  await page.context().close();
  for (const one of [second, first, holder]) await one.end();
});

test('what nobody holds says what is in it', async () => {
  const lockstep = (...words) => world.run(join(bin, 'lockstep'), ['--redis', world.url, ...words]);
  const done = async (...words) => assert.equal(await lockstep(...words).ended, 0);
  await done('jobs', 'enqueue', 'shop', 'mail', '1');
  await done('jobs', 'enqueue', '--delay', '1h', 'shop', 'mail', '2');
  await done('jobs', 'enqueue', 'shop', 'report', '3');
  await done('limit', '--limit', '2', '--per', '1h', 'api', 'me');
  const listening = lockstep('subscribe', 'news', 'orders');
  const page = await world.open();
  const measure = (name, text) => row(page, name).locator('.cell-lease', { hasText: text }).waitFor();
  await page.locator('.row', { hasText: 'mail: 1 waiting, 0 running, 1 delayed' }).waitFor();
  await page.locator('.row', { hasText: 'report: 1 waiting, 0 running' }).waitFor();
  await measure('api', 'used lately');
  await measure('news', 'orders: 1 subscriber');
  await page.locator('.row', { hasText: 'report: 1 waiting' }).click();
  await page.locator('.detail h2', { hasText: 'shop report' }).waitFor();
  listening.process.kill('SIGTERM');
  await row(page, 'news').waitFor({ state: 'detached' });
  await page.context().close();
});

test('an election shows who leads, in which term, and who led before', async () => {
  const first = world.puppet('scheduler-host');
  await first.tell('lead scheduler node-1');
  const page = await world.open();
  await row(page, 'scheduler').click();
  await page.locator('.detail h3', { hasText: 'Led by' }).waitFor();
  await page.locator('.hold .holder-name', { hasText: 'node-1' }).waitFor();
  const term = await page.locator('.hold .facts dd').first().innerText();
  const changes = page.locator('.detail .events li');
  await changes.filter({ hasText: `term ${term}` }).filter({ hasText: 'elected' }).waitFor();
  await first.tell('resign scheduler');
  await first.tell('lead scheduler node-2');
  await page.locator('.hold .holder-name', { hasText: 'node-2' }).waitFor();
  await eventually(async () => (await changes.allInnerTexts()).map((text) => text.match(/elected|resigned/)?.[0]).join(' ') === 'elected resigned elected', 'all changes, the newest first');
  await page.context().close();
  await first.end();
});

test('a hold whose owner was killed is marked', async () => {
  const doomed = world.puppet('doomed', 60_000);
  await doomed.tell('lock orphan');
  const page = await world.open();
  await row(page, 'orphan').locator('.dot.held').waitFor();
  await eventually(async () => /doomed/.test(await row(page, 'orphan').innerText()), 'it has said who it is');
  await doomed.kill();
  await row(page, 'orphan').locator('.dot.stale').waitFor();
  await page.getByRole('button', { name: 'stale', exact: false }).first().click();
  await eventually(async () => (await page.locator('.row').count()) === 1, 'the filter shows only that');
  await page.context().close();
});

test('search and filters', async () => {
  const worker = world.puppet('searcher');
  for (const name of ['alpha/one', 'alpha/two', 'beta/one']) await worker.tell(`lock ${name}`);
  await worker.tell('permits gate 5 2');
  const page = await world.open();
  await row(page, 'beta/one').waitFor();
  await page.fill('#search', 'ALPHA');
  await eventually(async () => (await page.locator('.row').count()) === 2, 'two fit');
  await page.fill('#search', 'one alpha');
  await eventually(async () => (await page.locator('.row').count()) === 1, 'words in any order');
  await page.fill('#search', 'nothing like that');
  await page.locator('.empty', { hasText: 'Nothing fits' }).waitFor();
  await page.fill('#search', '');
  await page.selectOption('select[aria-label=Kind]', 'semaphore');
  await eventually(async () => (await page.locator('.row').count()) === 1, 'one semaphore');
  assert.match(await row(page, 'gate').innerText(), /2\/5|2 of 5/);
  await page.context().close();
  await worker.end();
});

test('names are only names', async () => {
  const names = [
    '<script>alert(1)</script>', '<img src=x onerror=alert(2)>', '"><svg onload=alert(3)>', "it's \"quoted\" & <b>bold</b>", '🔒🧵 emoji',
    'مفتاح من اليمين', '‮reversed', 'javascript:alert(4)', '{{constructor.constructor("alert(5)")()}}', '%3Cscript%3E', '../../etc/passwd',
    'x'.repeat(512), ' spaces  inside ', 'line\nbreak\ttab', '\u0000nul', '__proto__', 'constructor',
  ];
  const worker = world.puppet('<b>hostile</b>');
  for (const name of names) await worker.tell(`lock ${encoded(name)}`);
  await worker.tell('lock %ff%fe-not-utf8');
  const page = await world.open({ height: 1400 }); // all of them in sight
  await page.fill('#search', 'hostile');
  await eventually(async () => (await page.locator('.row').count()) === names.length + 1, 'all are listed');
  const shown = await page.locator('.cell-name .name').evaluateAll((all) => all.map((one) => one.textContent));
  for (const name of names) assert.ok(shown.includes(name), `as it is: ${name}`);
  assert.ok(shown.includes('\\xff\\xfe-not-utf8'));
  assert.equal(await page.locator('.row script, .row img, .row svg, .row b').count(), 0);
  // Every view, and the panel of each.
  for (let i = 0; i <= names.length; i += 1) {
    await page.locator('.row').nth(i).click();
    await page.locator('.detail .why').waitFor();
    await page.keyboard.press('Escape');
  }
  for (const view of ['clients', 'graph', 'jobs', 'plots', 'health', 'log', 'locks']) {
    await page.click(`.rail a[href="#/${view}"]`);
    await page.locator('main section').first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${view} fits`);
  }
  await page.context().close();
  await worker.end();
});

test('the keyboard alone is enough', async () => {
  const worker = world.puppet('typist');
  for (const name of ['key/a', 'key/b', 'key/c']) await worker.tell(`lock ${name}`);
  const page = await world.open();
  await page.locator('.row').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('key/');
  await eventually(async () => (await page.locator('.row').count()) === 3, 'three fit');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  assert.match(await page.locator('.row.selected').innerText(), /key\/b/);
  await page.keyboard.press('k');
  assert.match(await page.locator('.row.selected').innerText(), /key\/a/);
  await page.keyboard.press('Enter');
  await page.locator('.detail h2', { hasText: 'key/a' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.locator('.detail h2', { hasText: 'key/b' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.detail').waitFor({ state: 'detached' });
  await page.keyboard.press('?');
  await page.locator('dialog[open]', { hasText: 'search' }).waitFor();
  await page.keyboard.press('Escape');
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
  await page.keyboard.press('3');
  await page.locator('.rail a.on', { hasText: 'Graph' }).waitFor();
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before_ = await theme();
  await page.keyboard.press('t');
  assert.notEqual(await theme(), before_);
  await page.context().close();
  await worker.end();
});

test('a deadlock between processes is marked', async () => {
  const [one, two] = [world.puppet('ring-one'), world.puppet('ring-two')];
  await one.tell('lock ring/a');
  await two.tell('lock ring/b');
  await one.tell('want ring/b');
  await two.tell('want ring/a');
  const page = await world.open({ path: '#/graph' });
  await page.locator('.graph .deadlock').waitFor();
  assert.equal(await page.locator('.node.bad').count(), 4);
  await page.locator('.node.thing.bad', { hasText: 'ring/a' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('.detail h2', { hasText: 'ring/a' }).waitFor();
  await page.locator('.rail .badge', { hasText: '1' }).waitFor();
  await page.context().close();
  await one.kill();
  await two.kill();
});

test('at the width of a phone nothing scrolls sideways', async () => {
  const worker = world.puppet('a-process-with-quite-a-long-name');
  await worker.tell(`lock ${'a/very/long/name/'.repeat(8)}`);
  const page = await world.open({ width: 360, height: 740 });
  await page.locator('.row').first().waitFor();
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  for (const view of ['clients', 'graph', 'jobs', 'plots', 'health', 'log', 'locks']) {
    await page.click(`.rail a[href="#/${view}"]`);
    await page.locator('main section').first().waitFor();
    assert.ok(await fits(), view);
  }
  await page.locator('.row').first().click();
  await page.locator('.detail').waitFor();
  assert.ok(await fits(), 'details');
  await page.context().close();
  await worker.end();
});

test('nothing went wrong in any page', () => assert.deepEqual(world.problems, []));

test('everything that was started ends', () => world.end());
