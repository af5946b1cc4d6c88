// The views of jobs, with a real worker: queues, lists, details, flows, schedules, plots, and what can be done to a job.
import assert from 'node:assert/strict';
import test from 'node:test';
import { encoded, eventually, post, row, World } from './harness.mjs';

const world = await World.start(['--actions']);
const crew = world.jobPuppet('crew');
const cell = (page, name, type, column) => page.locator('.job-queues tbody tr', { hasText: name }).filter({ hasText: type }).locator(`.cell-link.${column}`);
const detail = (page) => page.locator('aside.detail');
const node = (page, id) => page.locator(`.flow .node[aria-label^="${id},"]`);

test('the queues are listed with how many jobs are in which state', async () => {
  await crew.tell('add listed mail one');
  await crew.tell('add listed mail two');
  await crew.tell('flow listed a:report:a: b:report:b:a c:report:c:a d:report:d:b,c');
  const page = await world.open({ path: '#/jobs' });
  await eventually(async () => (await cell(page, 'listed', 'mail', 'waiting').count()) === 1, 'the queue is found');
  assert.equal(await cell(page, 'listed', 'mail', 'waiting').innerText(), '2');
  assert.equal(await cell(page, 'listed', 'report', 'blocked').innerText(), '3');
  assert.equal(await page.locator('.rail a.on').innerText(), 'Jobs');
  await cell(page, 'listed', 'mail', 'waiting').click();
  await eventually(async () => (await page.locator('.row').count()) === 2, 'its jobs are listed');
  assert.match(await page.locator('.row').first().innerText(), /mail\/[\s\S]*listed[\s\S]*one/);
  await page.context().close();
});

test('a job that failed tells why, is run again by a click, and is seen to complete', async () => {
  await crew.tell('work retried mail');
  const id = await crew.tell('add retried mail bad-address 2');
  const page = await world.open({ path: '#/jobs/failed/retried/mail' });
  await row(page, id).click();
  await detail(page).locator('.tag.failed').waitFor();
  const reasons = await detail(page).locator('.trail-reason').allInnerTexts();
  assert.equal(reasons.length, 2, 'each attempt');
  assert.match(reasons[0], /could not do <b>bad-address<\/b>/);
  assert.equal(await detail(page).locator('.trail b').count(), 0, 'as text');
  assert.match(await detail(page).innerText(), /Failed tries\s+2\n/);

  await page.getByRole('button', { name: 'Run again' }).click();
  const dialog = page.locator('dialog[open]');
  assert.match(await dialog.innerText(), new RegExp(id));
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  await detail(page).locator('.tag.failed').waitFor();

  await crew.tell('mend');
  await page.getByRole('button', { name: 'Run again' }).click();
  await dialog.locator('input').fill('the address is right now');
  await dialog.getByRole('button', { name: 'Run again' }).click();
  await dialog.waitFor({ state: 'detached' });
  await detail(page).locator('.tag.completed').waitFor();
  assert.match(await detail(page).innerText(), /done bad-address/);
  assert.doesNotMatch(await detail(page).innerText(), /2 of/, 'a job that is run again has all its attempts again');
  await eventually(async () => (await page.locator('.row').count()) === 0, 'it is not among the failed ones any more');
  await page.click('.rail a[href="#/log"]');
  await page.getByRole('button', { name: /audit/ }).click();
  const entry = page.locator('.audit li').first();
  await entry.waitFor();
  assert.match(await entry.innerText(), new RegExp(`retry-job[\\s\\S]*${id}[\\s\\S]*retried[\\s\\S]*the address is right now[\\s\\S]*done`));
  await page.context().close();
});

test('a job that waits is cancelled by a click', async () => {
  const id = await crew.tell('add cancelled mail nobody-works-here');
  const page = await world.open({ path: '#/jobs/waiting/cancelled/mail' });
  await row(page, id).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Cancel the job' }).click();
  await detail(page).locator('.tag.cancelled').waitFor();
  await eventually(async () => (await page.locator('.row').count()) === 0, 'nothing waits');
  await page.selectOption('select[aria-label=State]', 'cancelled');
  await row(page, id).waitFor();
  await page.context().close();
});

test('a type is paused and resumed by a click', async () => {
  await crew.tell('work paused mail');
  await crew.tell('add paused mail first');
  const page = await world.open({ path: '#/jobs' });
  const line = page.locator('.job-queues tbody tr', { hasText: 'paused' }).filter({ hasText: 'mail' });
  const dialog = page.locator('dialog[open]');
  await page.getByRole('button', { name: 'Pause paused mail' }).click();
  assert.match(await dialog.innerText(), /No worker begins/);
  await dialog.locator('input').fill('the mail server is down');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await line.locator('.tag.paused').waitFor();
  await crew.tell('add paused mail second');
  await eventually(async () => (await cell(page, 'paused', 'mail', 'waiting').count()) === 1, 'it waits');
  await page.getByRole('button', { name: 'Resume paused mail' }).click();
  await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
  await eventually(async () => (await cell(page, 'paused', 'mail', 'waiting').count()) === 0, 'it is run');
  await eventually(async () => (await line.locator('.tag.paused').count()) === 0, 'it is not paused any more');
  await page.click('.rail a[href="#/log"]');
  await page.getByRole('button', { name: /audit/ }).click();
  await page.locator('.audit li', { hasText: 'pause-jobs' }).filter({ hasText: 'the mail server is down' }).waitFor();
  await page.context().close();
});

test('all jobs that failed are run again by a click, and all that wait are cancelled', async () => {
  const breaker = world.jobPuppet('breaker');
  await breaker.tell('work bulk mail');
  for (const what of ['bad-one', 'bad-two', 'bad-three']) await breaker.tell(`add bulk mail ${what}`);
  const page = await world.open({ path: '#/jobs/failed/bulk/mail' });
  await eventually(async () => (await page.locator('.row').count()) === 3, 'all have failed');
  await breaker.end();
  const dialog = page.locator('dialog[open]');
  await page.getByRole('button', { name: 'Run all again' }).click();
  await dialog.getByRole('button', { name: 'Run all again' }).click();
  await eventually(async () => (await page.locator('.row').count()) === 0, 'none is left');
  await page.goto(`${world.address}#/jobs/waiting/bulk/mail`);
  await eventually(async () => (await page.locator('.row').count()) === 3, 'they wait');
  await page.getByRole('button', { name: 'Cancel all' }).click();
  assert.match(await dialog.innerText(), /bulk[\s\S]*mail[\s\S]*waiting/);
  await dialog.getByRole('button', { name: 'Cancel all' }).click();
  await page.locator('.note', { hasText: '3 cancelled' }).waitFor();
  await eventually(async () => (await page.locator('.row').count()) === 0, 'none waits');
  await page.context().close();
});

test('what is asked is done to the job as it was seen, not as it has become', async () => {
  const sleepy = world.jobPuppet('sleepy');
  const id = await sleepy.tell('add frozen mail slow-one');
  const page = await world.open({ path: `#/jobs/waiting/frozen/mail/frozen/${encodeURIComponent(id)}` });
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  const dialog = page.locator('dialog[open]');
  await dialog.locator('.tag.waiting').waitFor();
  await sleepy.tell('work frozen mail');
  await detail(page).locator('header .tag.running').waitFor();
  assert.equal(await dialog.locator('.tag.state').innerText(), 'waiting');
  await dialog.getByRole('button', { name: 'Cancel the job' }).click();
  await dialog.locator('.failure', { hasText: 'it is running now; nothing was done' }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await sleepy.tell('let');
  await detail(page).locator('header .tag.completed').waitFor();
  await page.context().close();
  await sleepy.end();
});

test('the job that is selected stays so when others go', async () => {
  const ids = [];
  for (const what of ['one', 'two', 'three']) ids.push(await crew.tell(`add shifted mail ${what}`));
  const page = await world.open({ path: '#/jobs/waiting/shifted/mail' });
  await row(page, ids[2]).waitFor();
  for (const id of ids.slice(0, 2)) {
    await page.keyboard.press('j');
    await page.locator('.row.selected', { hasText: id }).waitFor();
  }
  assert.equal(await post(page, '/api/jobs/cancel', { name: 'shifted', id: ids[0], state: 'waiting' }), 200);
  await eventually(async () => (await row(page, ids[0]).count()) === 0, 'the first is gone');
  assert.match(await page.locator('.row.selected').innerText(), new RegExp(ids[1]));
  await page.context().close();
});

test('the tags of a job are shown as text', async () => {
  const id = await crew.tell('add tagged mail one');
  const page = await world.open({ path: '#/jobs/waiting/tagged/mail' });
  await page.route('**/api/jobs/job?*', async (route) => {
    const said = await route.fetch();
    await route.fulfill({ response: said, json: { ...(await said.json()), tags: ['customer:7', '<b>x</b>'] } });
  });
  await row(page, id).click();
  await detail(page).locator('.tags .tag', { hasText: 'customer:7' }).waitFor();
  assert.deepEqual(await detail(page).locator('.tags .tag').allInnerTexts(), ['customer:7', '<b>x</b>']);
  await page.context().close();
});

test('jobs that run are shown with their worker and their progress', async () => {
  await crew.tell('work running mail');
  const id = await crew.tell('add running mail slow-one');
  const page = await world.open({ path: '#/jobs/running' });
  await row(page, id).waitFor();
  await eventually(async () => /half of slow-one/.test(await row(page, id).innerText()), 'its progress');
  await eventually(async () => /crew/.test(await row(page, id).innerText()), 'its worker');
  await row(page, id).click();
  await page.getByRole('button', { name: 'Cancel the job' }).waitFor();
  await crew.tell('let');
  await detail(page).locator('.tag.completed').waitFor();
  await eventually(async () => (await row(page, id).count()) === 0, 'it does not run any more');
  await page.context().close();
});

test('a flow is drawn with its states, and a job leads to it', async () => {
  const flaws = world.jobPuppet('flaws'); // nothing is mended there
  await flaws.tell('work drawn step');
  const [a, b, c, d] = (await flaws.tell('flow drawn a:step:first: b:step:bad-middle:a c:step:other:a d:step:last:b,c')).split(' ');
  const page = await world.open({ path: `#/jobs/failed/drawn/step/drawn/${encodeURIComponent(b)}` });
  await page.getByRole('link', { name: 'Draw its flow' }).click();
  const states = { [a]: 'completed', [b]: 'failed', [c]: 'completed', [d]: 'failed' };
  for (const [id, state] of Object.entries(states)) await page.locator(`.flow .node.${state}[aria-label="${id}, ${state}"]`).waitFor();
  assert.equal(await page.locator('.flow .node').count(), 4);
  assert.equal(await page.locator('.flow .edge').count(), 4);
  const left = async (id) => Math.round((await node(page, id).locator('rect').evaluate((box) => box.getCTM().e))); // without the width of its line
  assert.ok((await left(a)) < (await left(b)) && (await left(b)) < (await left(d)), 'in layers');
  assert.equal(await left(b), await left(c));
  await page.locator('.flow .node.open[aria-current=true]').waitFor();

  await node(page, d).focus();
  await page.keyboard.press('Enter');
  await detail(page).locator('h2', { hasText: d }).waitFor();
  assert.match(await detail(page).locator('.trail-reason').innerText(), new RegExp(`its parent ${b} failed`));
  await detail(page).locator('.parents a', { hasText: b }).click();
  await detail(page).locator('h2', { hasText: b }).waitFor();

  await page.keyboard.press('Escape');
  await detail(page).waitFor({ state: 'detached' });
  assert.equal(await page.locator('.flow .node').count(), 4, 'the flow is still there');
  await node(page, b).click();

  await flaws.tell('mend');
  await page.getByRole('button', { name: 'Run again' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: 'Run again' }).click();
  for (const id of [a, b, c, d]) await page.locator(`.flow .node.completed[aria-label="${id}, completed"]`).waitFor();
  await page.context().close();
  await flaws.end();
});

test('schedules are listed with their next run', async () => {
  await crew.tell(`cron planned nightly report ${encoded('30 2 * * *')}`);
  await crew.tell(`cron planned off report ${encoded('@daily')}`);
  await crew.tell('pause planned off');
  const page = await world.open({ path: '#/jobs/schedules' });
  const nightly = page.locator('.schedules tbody tr', { hasText: 'nightly' });
  await nightly.waitFor();
  const text = await nightly.innerText();
  assert.match(text, /planned[\s\S]*report[\s\S]*30 2 \* \* \*[\s\S]*UTC/);
  assert.match(text, /:30:00/, 'the next run');
  assert.match(text, /in \d+ (h|m|s)/);
  await page.locator('.schedules tbody tr', { hasText: 'off' }).locator('.tag.paused').waitFor();
  await page.context().close();
});

test('what is done per second is drawn', async () => {
  await crew.tell('work fast mail');
  const page = await world.open({ path: '#/jobs/queues/fast/mail' });
  await page.locator('.plot canvas').first().waitFor();
  const done = page.locator('.plot', { hasText: 'Done per second' }).locator('.plot-now b').first();
  await eventually(async () => {
    await crew.tell('many fast mail 50');
    return Number(await done.innerText()) > 0;
  }, 'a rate');
  await eventually(async () => {
    await crew.tell('many fast mail 50');
    return Number(await page.locator('.job-queues tbody tr', { hasText: 'fast' }).locator('td').nth(9).innerText()) > 0;
  }, 'in the table, too');
  await page.context().close();
});

test('many jobs are shown in pages', async () => {
  await crew.tell('many crowd mail 3000');
  const page = await world.open({ path: '#/jobs/waiting/crowd/mail' });
  await page.locator('.pager', { hasText: '1–50 of 3,000' }).waitFor();
  assert.ok((await page.locator('.row').count()) <= 50);
  await page.getByRole('button', { name: 'Next' }).click();
  await page.locator('.pager', { hasText: '51–100 of 3,000' }).waitFor();
  await page.locator('.row').first().waitFor();
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.locator('.pager', { hasText: '1–50 of 3,000' }).waitFor();
  assert.ok(await page.getByRole('button', { name: 'Previous' }).isDisabled());
  await page.context().close();
});

test('names and payloads are only text', async () => {
  const payload = '<img src=x onerror=alert(1)><script>alert(2)</script>';
  const hostile = '"><svg onload=alert(3)>';
  await crew.tell(`add ${encoded(hostile)} mail ${encoded(payload + 'x'.repeat(20_000))}`);
  await crew.tell(`add %ff%fe-not-utf8 mail ${encoded(payload)}`);
  await crew.tell(`cron ${encoded(hostile)} nightly mail ${encoded('@daily')}`);
  const page = await world.open({ path: '#/jobs' });
  for (const name of [hostile, '\\xff\\xfe-not-utf8']) {
    await page.goto(`${world.address}#/jobs`);
    const link = page.locator('.job-queues tbody tr').filter({ has: page.locator('.name', { hasText: name }) }).locator('.cell-link.waiting');
    await link.click();
    await page.locator('.row').first().click();
    await detail(page).locator('.why', { hasText: '<img src=x onerror=alert(1)>' }).waitFor();
    assert.equal(await page.locator('.row script, .row img, .row svg, aside img, aside script').count(), 0);
    const shown = (await detail(page).locator('.why').first().innerText()).length;
    assert.ok(shown <= 8192, `${shown} are shown`);
  }
  await page.goto(`${world.address}#/jobs/schedules`);
  await page.locator('.schedules tbody tr', { hasText: hostile }).waitFor();
  await page.context().close();
});

test('the keyboard alone is enough', async () => {
  const first = await crew.tell('add typed mail one');
  const second = await crew.tell('add typed mail two');
  const page = await world.open({ path: '#/jobs/waiting/typed/mail' });
  await row(page, first).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.locator('.row.selected', { hasText: second }).waitFor();
  await page.keyboard.press('Enter');
  await detail(page).locator('h2', { hasText: second }).waitFor();
  await page.keyboard.press('ArrowUp');
  await detail(page).locator('h2', { hasText: first }).waitFor();
  await page.keyboard.press('Escape');
  await detail(page).waitFor({ state: 'detached' });
  assert.match(page.url(), /#\/jobs\/waiting\/typed\/mail$/, 'the list is still there');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?'); // which is handled after the key before it
  await page.locator('dialog[open]').waitFor();
  assert.match(page.url(), /#\/jobs\/waiting\/typed\/mail$/, 'and its filter');
  await page.keyboard.press('Escape');
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
  await page.keyboard.press('1');
  await page.locator('.rail a.on', { hasText: 'Locks' }).waitFor();
  await page.keyboard.press('4');
  await page.locator('.rail a.on', { hasText: 'Jobs' }).waitFor();
  await page.context().close();
});

test('at the width of a phone nothing scrolls sideways', async () => {
  const id = await crew.tell(`add ${encoded('a-name-that-is-quite-long-'.repeat(4))} mail payload`);
  const page = await world.open({ width: 360, height: 740, path: '#/jobs' });
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  for (const tab of ['queues', 'running', 'failed', 'waiting', 'schedules']) {
    await page.goto(`${world.address}#/jobs/${tab}`);
    await page.locator('.jobs .on').waitFor();
    assert.ok(await fits(), tab);
  }
  await page.goto(`${world.address}#/jobs/waiting`);
  await row(page, id).click();
  await detail(page).locator('.tag.waiting').waitFor();
  assert.ok(await fits(), 'details');
  await page.context().close();
});

test('a dashboard that only shows says so and offers nothing', async () => {
  const shy = await World.start([]);
  try {
    const people = shy.jobPuppet('people');
    const id = await people.tell('add shown mail one');
    const page = await shy.open({ path: `#/jobs/waiting/shown/mail/shown/${encodeURIComponent(id)}` });
    await page.locator('.hint', { hasText: '--allow-actions' }).waitFor();
    assert.equal(await page.getByRole('button', { name: /cancel|again/i }).count(), 0);
    assert.equal(await post(page, '/api/jobs/cancel', { name: 'shown', id, state: 'waiting' }), 403);
    assert.deepEqual(shy.problems, []);
  } finally {
    await shy.end();
  }
});

test('nothing went wrong in any page', () => assert.deepEqual(world.problems, []));

test('everything that was started ends', () => world.end());
