// Makes the pictures of docs/images, of a live system: node pictures.mjs <folder>. Not a test; needs what the tests need.
import { join } from 'node:path';
import { eventually, row, World } from './harness.mjs';

const folder = process.argv[2];
const only = process.argv[3];
const world = await World.start(['--actions'], 16379);
try {
  const crew = ['billing-worker', 'report-builder', 'nightly', 'ingest', 'api-server', 'scheduler', 'mailer', 'indexer'];
  const people = crew.map((name) => world.puppet(name, 20_000));
  const [billing, report, nightly, ingest, api, scheduler, mailer, indexer] = people;
  await billing.tell('lock invoices/2026-11');
  await billing.tell('lock tenants/acme/export');
  await report.tell('lock ledger');
  await report.tell('lock reports/daily');
  await scheduler.tell('lock leader/scheduler');
  await nightly.tell('lock cron/nightly');
  await indexer.tell('lock index/rebuild');
  await ingest.tell('permits gpu 4 2');
  await api.tell('permits uploads 8 3');
  await mailer.tell('permits smtp 5 1');
  for (let i = 0; i < 9; i += 1) await people[i % 8].tell(`lock orders/${10_482 + i * 37}`);
  await mailer.tell('many shards/ 24');
  const doomed = world.puppet('migration', 60_000);
  await doomed.tell('lock schema/v42');
  await report.tell('want invoices/2026-11');
  await nightly.tell('want invoices/2026-11');
  await api.tell('want invoices/2026-11');
  for (const one of [nightly, ingest, mailer, indexer, scheduler]) await one.tell('want ledger');
  await api.tell('want schema/v42');
  const busy = world.puppet('cache-warmer', 20_000);
  await busy.tell('many cache/ 6');
  await busy.tell('churn cache/ 6 12');
  await billing.tell('want ledger');
  const shop = world.jobPuppet('shop-worker');
  for (const type of ['fetch', 'report', 'mail', 'thumbnail']) await shop.tell(`work shop ${type}`);
  await shop.tell('many shop thumbnail 40');
  await shop.tell('many shop invoice 212');
  for (let i = 0; i < 4; i += 1) await shop.tell(`add shop mail bad-address-${i} 3`);
  await shop.tell('add shop report slow-2026-11');
  await shop.tell('cron shop nightly report 30%202%20*%20*%20*');
  await shop.tell('cron shop cleanup report @weekly');
  await shop.tell('pause shop cleanup');
  const flow = (
    await shop.tell(
      'flow shop orders:fetch:orders: prices:fetch:bad-prices: stock:fetch:stock: sales:report:sales:orders,prices shelves:report:shelves:stock ' +
        'summary:report:summary:sales,shelves big:thumbnail:slow-cover:orders,stock print:invoice:print:big,shelves',
    )
  ).split(' ');
  const shot = async (name, options, prepare) => {
    if (only && !name.includes(only)) return;
    const page = await world.open({ width: 1280, height: 800, ...options });
    await eventually(async () => /\d/.test(await page.locator('.totals').innerText()), 'counts');
    await prepare(page);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    await page.context().close();
  };
  const first = await world.open();
  await first.fill('#search', 'schema');
  await eventually(async () => /migration/.test(await row(first, 'schema/v42').innerText()), 'all have said who they are');
  await doomed.kill();
  await row(first, 'schema/v42').locator('.dot.stale').waitFor();
  const settle = (page) => page.waitForTimeout(4000); // for a picture, not for a test
  await shot('dashboard-dark', { theme: 'dark' }, async (page) => {
    await page.selectOption('select[aria-label=Order]', 'queue');
    await settle(page);
  });
  await shot('dashboard-light', { path: '#/locks/lock%3Ainvoices%2F2026-11' }, async (page) => {
    await page.selectOption('select[aria-label=Order]', 'queue');
    await page.locator('.why').waitFor();
    await settle(page);
  });
  await shot('dashboard-locks-light', {}, settle);
  await shot('dashboard-detail-dark', { theme: 'dark', path: '#/locks/lock%3Acache%2F00001' }, async (page) => {
    await page.locator('.timeline .bar-hold').first().waitFor();
    await settle(page);
    await page.locator('.detail-body').evaluate((body) => body.scrollTo(0, 10_000));
  });
  await shot('dashboard-graph', { path: '#/graph' }, settle);
  await shot('dashboard-graph-dark', { path: '#/graph', theme: 'dark' }, settle);
  await shot('dashboard-clients', { path: '#/clients' }, settle);
  await shot('dashboard-jobs-queues', { path: '#/jobs' }, async (page) => {
    for (let i = 0; i < 15; i += 1) {
      await shop.tell(`many shop thumbnail ${20 + ((i * 37) % 60)}`);
      if (i % 4 === 0) await shop.tell(`add shop mail bad-${i}`);
      await page.waitForTimeout(2000);
    }
  });
  await shot('dashboard-jobs', { path: `#/jobs/flow/shop/${encodeURIComponent(flow[1])}/shop/${encodeURIComponent(flow[1])}`, width: 1440, height: 640 }, settle);
  await shot('dashboard-jobs-failed-dark', { path: `#/jobs/failed/shop/mail`, theme: 'dark' }, async (page) => {
    await page.locator('.row').first().click();
    await settle(page);
  });
  await shot('dashboard-jobs-schedules', { path: '#/jobs/schedules' }, settle);
  await shot('dashboard-plots', { path: '#/plots', theme: 'dark' }, async (page) => page.waitForTimeout(30_000));
  await shot('dashboard-health', { path: '#/health' }, settle);
  await shot('dashboard-log', { path: '#/log' }, settle);
  await shot('dashboard-phone', { width: 390, height: 780 }, async (page) => {
    await page.selectOption('select[aria-label=Order]', 'queue');
    await settle(page);
  });
  await shot('dashboard-confirm', { path: '#/locks/lock%3Aledger' }, async (page) => {
    await settle(page);
    await page.getByRole('button', { name: 'Force release' }).click();
  });
  console.log(world.problems);
} finally {
  await world.end();
}
