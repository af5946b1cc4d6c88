// Acting, and being allowed to: confirmation, audit, and a server that goes and comes back.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventually, post, row, World } from './harness.mjs';

const worlds = [];
const start = async (options) => {
  const world = await World.start(options);
  worlds.push(world);
  return world;
};

test('a forced release is confirmed, done and audited', async () => {
  const world = await start(['--actions']);
  const holder = world.puppet('stubborn');
  await holder.tell('lock vault');
  const next = world.puppet('next-one');
  await next.tell('want vault');
  const page = await world.open({ path: '#/locks/lock%3Avault' });
  await page.locator('.hold .holder-name', { hasText: 'stubborn' }).waitFor();
  await page.getByRole('button', { name: 'Force release' }).click();
  const dialog = page.locator('dialog[open]');
  await dialog.waitFor();
  const text = await dialog.innerText();
  assert.match(text, /vault/);
  assert.match(text, /stubborn/);
  assert.match(text, /Fence\s+\d+/);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.match(await page.locator('.hold .holder-name').innerText(), /stubborn/, 'cancelled: nothing happened');

  await page.getByRole('button', { name: 'Force release' }).click();
  await dialog.locator('input').fill('it hangs');
  await dialog.getByRole('button', { name: 'Force release' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.locator('.hold .holder-name', { hasText: 'next-one' }).waitFor();
  await page.click('.rail a[href="#/log"]');
  await page.getByRole('button', { name: /audit/ }).click();
  const entry = page.locator('.audit li').first();
  await entry.waitFor();
  assert.match(await entry.innerText(), /force-release[\s\S]*vault[\s\S]*it hangs/);

  await page.goto(`${world.address}#/locks/lock%3Avault`);
  await page.getByRole('button', { name: 'Ask to release' }).click();
  await dialog.getByRole('button', { name: 'Ask', exact: true }).click();
  await page.locator('.note', { hasText: 'was told' }).waitFor();
  assert.deepEqual(world.problems, []);
});

test('a queue is paused and resumed after a question, and audited', async () => {
  const world = await start(['--actions']);
  const producer = world.puppet('producer');
  await producer.tell('push mails first');
  const page = await world.open({ path: '#/locks/queue%3Amails' });
  const dialog = page.locator('dialog[open]');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  assert.match(await dialog.innerText(), /Queue\s+mails[\s\S]*Nothing is delivered/);
  await dialog.getByRole('button', { name: 'Close', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await page.locator('.detail .tag.paused').count(), 0, 'closed: nothing happened');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await dialog.locator('input').fill('the mail server is down');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.locator('.note', { hasText: 'Paused.' }).waitFor();
  await page.locator('.detail .tag.paused').waitFor();
  await page.getByRole('button', { name: 'Resume', exact: true }).click();
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
  await page.locator('.note', { hasText: 'Resumed.' }).waitFor();
  await page.locator('.detail .tag.paused').waitFor({ state: 'detached' });
  await page.click('.rail a[href="#/log"]');
  await page.getByRole('button', { name: /audit/ }).click();
  await page.locator('.audit li', { hasText: /pause-queue[\s\S]*mails[\s\S]*the mail server is down/ }).waitFor();
  assert.deepEqual(world.problems, []);
});

test('a dashboard that only shows says so and offers nothing', async () => {
  const world = await start([]);
  const holder = world.puppet('safe');
  await holder.tell('lock vault');
  await holder.tell('push mails first');
  const page = await world.open({ path: '#/locks/lock%3Avault' });
  await page.locator('.hint', { hasText: '--allow-actions' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /release/i }).count(), 0);
  const queue = await world.open({ path: '#/locks/queue%3Amails', context: page.context() });
  await queue.locator('.detail', { hasText: 'Items are delivered' }).waitFor();
  assert.equal(await queue.getByRole('button', { name: 'Pause' }).count(), 0);
  assert.equal(await post(page, '/api/queues/pause', { name: 'mails' }), 403);
  const { name, kind, id } = (await (await page.request.get(`${world.address}api/snapshot`)).json()).holds[0];
  const status = await post(page, '/api/release', { name, kind, hold: id, force: true });
  assert.equal(status, 403, 'not even by hand');
  assert.deepEqual(world.problems, []);
});

test('a page comes back by itself when the server does', async () => {
  const world = await start([]);
  const holder = world.puppet('patient');
  await holder.tell('lock before');
  const page = await world.open();
  await row(page, 'before').waitFor();
  await world.dashboard.end();
  await page.locator('.banner.lost').waitFor();
  await row(page, 'before').waitFor();
  await holder.tell('lock after');
  await world.startDashboard(['--port', world.port]);
  await page.locator('.link.live').waitFor();
  await row(page, 'after').waitFor();
  await page.locator('.banner').waitFor({ state: 'detached' });
  assert.deepEqual(world.problems, []);
});

test('it says when Redis is away', async () => {
  const world = await start([]);
  const page = await world.open();
  await world.redis.kill();
  await page.locator('.banner.trouble').waitFor();
  await eventually(async () => world.problems.length === 0, 'no errors in the page', 1000);
});

test('everything that was started ends', async () => {
  for (const world of worlds) await world.end();
});
