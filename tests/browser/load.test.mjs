// Thousands of locks and hundreds of changes a second: the page stays usable. How usable is measured and printed; the test only asks
// that everything works, since other tests may run beside it. LOCKSTEP_BROWSER_LOCKS, _RATE and _SECONDS change what is done.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eventually, World } from './harness.mjs';

const locks = Number(process.env.LOCKSTEP_BROWSER_LOCKS ?? 5000);
const rate = Number(process.env.LOCKSTEP_BROWSER_RATE ?? 500);
const rounds = Number(process.env.LOCKSTEP_BROWSER_ROUNDS ?? 4);

const world = await World.start(); // not in a hook: those of a whole file do not run in Node 18.13

// From the input to the next picture, as the browser itself measures it.
const watchInteractions = (page) =>
  page.evaluate(() => {
    window.seen = { interactions: [], slow: [], long: [], frames: [] };
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) if (one.interactionId) {
        window.seen.interactions.push(one.duration);
        window.seen.slow.push([one.duration, Math.round(one.processingEnd - one.processingStart), one.name, one.target?.className || one.target?.id || one.target?.textContent?.slice(0, 12) || '', location.hash]);
      }
    }).observe({ type: 'event', durationThreshold: 16, buffered: false });
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) window.seen.long.push(one.duration);
    }).observe({ type: 'longtask' });
    let last = performance.now();
    const frame = (now) => {
      window.seen.frames.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });

const lastSample = (page) => page.evaluate(async () => (await (await fetch('/api/samples')).json()).at(-1));
const part = (all, share) => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * share))] ?? 0;

test(`${locks} locks with ${rate} changes a second`, { timeout: 170_000 }, async () => {
  const crowd = ['a', 'b', 'c', 'd'].map((letter) => ({ letter, process: world.puppet(`crowd-${letter}`, 30_000) }));
  const each = Math.floor(locks / crowd.length);
  await Promise.all(crowd.map(({ letter, process }) => process.tell(`many load/${letter} ${each}`)));
  const page = await world.open();
  await eventually(async () => (await page.locator('.count').innerText()) === locks.toLocaleString('en-US'), 'all are listed', 60_000);
  assert.ok((await page.locator('.row').count()) < 60, 'only what can be seen is drawn');
  for (const { letter, process } of crowd) await process.tell(`churn load/${letter} ${each} ${rate / crowd.length}`);
  await eventually(async () => ((await lastSample(page))?.acquired_per_s ?? 0) > rate * 0.5, 'it changes', 60_000);

  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' }); // time of the page's main thread, whatever else runs here
  const spent = async () => (await devtools.send('Performance.getMetrics')).metrics.find((one) => one.name === 'TaskDuration').value;
  const [began, busy] = [Date.now(), await spent()];
  await watchInteractions(page);
  const first = await lastSample(page);
  for (let round = 0; round < rounds; round += 1) {
    for (const view of ['clients', 'graph', 'plots', 'log', 'locks']) await page.click(`.rail a[href="#/${view}"]`);
    await page.locator('.row').first().waitFor();
    await page.click('#search');
    await page.keyboard.type('load/a0012', { delay: 40 });
    await eventually(async () => (await page.locator('.row').count()) === 10, 'ten fit');
    await page.locator('.row').nth(3).click();
    await page.locator('.detail h2', { hasText: 'load/a00123' }).waitFor();
    await page.keyboard.press('Escape');
    await page.fill('#search', '');
    for (const filter of ['held', 'free', 'all']) await page.locator('.segments button', { hasText: filter }).click();
    await page.locator('.virtual').focus();
    for (let i = 0; i < 10; i += 1) await page.keyboard.press('PageDown', { delay: 40 }); // as fast as a key repeats
    await page.keyboard.press('End');
    await page.locator('.row .name', { hasText: `load/d${String(each - 1).padStart(5, '0')}` }).waitFor();
    await page.keyboard.press('Home');
  }
  const seen = await page.evaluate(() => window.seen);
  const sample = await lastSample(page);
  const figures = {
    locks,
    changes_per_s: Math.round((1000 * (sample.acquisitions - first.acquisitions)) / (sample.at_ms - first.at_ms)),
    interactions_over_16_ms: seen.interactions.length,
    p50_ms: part(seen.interactions, 0.5),
    p95_ms: part(seen.interactions, 0.95),
    p98_ms: part(seen.interactions, 0.98),
    max_ms: Math.max(0, ...seen.interactions),
    main_thread_share: Number(((1000 * ((await spent()) - busy)) / (Date.now() - began)).toFixed(2)),
    long_tasks: seen.long.length,
    longest_task_ms: Math.round(Math.max(0, ...seen.long)),
    frame_p99_ms: Math.round(part(seen.frames, 0.99)),
  };
  for (const one of seen.slow.sort((a, b) => b[0] - a[0]).slice(0, 8)) console.log(`# slow ${JSON.stringify(one)}`);
  console.log(`# figures ${JSON.stringify(figures)}`);
  assert.ok(figures.max_ms < 10_000, 'usable, even on a machine that is busy with other tests');
  assert.deepEqual(world.problems, []);
  for (const { process } of crowd) await process.kill();
});

test('everything that was started ends', () => world.end());
