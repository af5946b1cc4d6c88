// The queues: how many jobs of each name and type are in which state, and how fast they are done.
import { useState } from 'preact/hooks';
import * as api from '../api';
import { whole } from '../clock';
import { asked } from '../keys';
import { Empty, Icon, Name } from '../parts/basic';
import { Plot } from '../parts/plot';
import { ActOnQueue } from './act';
import { Failure } from './basic';
import { type JobSample, type Loaded, type Queue, type QueueDeed, samples, useLoaded } from './load';
import { type JobState, jobsHash, useJobsRoute } from './route';

const most = 200; // rows at once; the search finds the others
const rate = (n: number) => n.toFixed(n < 10 ? 1 : 0);
const counted: [keyof Queue & string, JobState][] = [
  ['waiting', 'waiting'], ['delayed', 'waiting'], ['blocked', 'blocked'], ['running', 'running'], ['failed', 'failed'], ['completed', 'completed'], ['cancelled', 'cancelled'],
];

export function Queues({ all }: { all: Loaded<{ queues: Queue[]; left_out: number }> }) {
  const { name, type } = useJobsRoute();
  const [search, setSearch] = useState('');
  const [acting, act] = useState<{ deed: QueueDeed; of: Queue } | null>(null);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = (all.value?.queues ?? []).filter((of) => {
    const text = `${of.name} ${of.type}`.toLowerCase();
    return (name === '' || (asked(of) === name && of.type === type)) && words.every((word) => text.includes(word));
  });
  return (
    <div class="scroll job-queues">
      <Throughput name={name} type={type} />
      <section class="card contention" aria-label="Queues">
        <div class="tools inside">
          <label class="search">
            <Icon name="search" />
            <input id="search" type="search" placeholder="Search names and types" aria-label="Search" autocomplete="off" spellcheck={false} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
            <kbd>/</kbd>
          </label>
          <span class="count num" role="status">
            {rows.length > most ? `${most} of ${whole(rows.length)}` : whole(rows.length)}
            {(all.value?.left_out ?? 0) > 0 && ` (${whole(all.value!.left_out)} more are not shown)`}
          </span>
        </div>
        <Failure text={all.failed} />
        {rows.length === 0 ? (
          <Nothing loaded={all.value !== null || all.failed !== ''} searched={words.length > 0 || name !== ''} />
        ) : (
          <div class="table-box">
            <table class="figures wide">
              <thead>
                <tr>
                  <th class="left">Jobs</th>
                  <th class="left">Type</th>
                  {counted.map(([column]) => (
                    <th key={column}>{column}</th>
                  ))}
                  <th>done/s</th>
                  <th>failed/s</th>
                  {api.session.actions && <th aria-label="Actions" />}
                </tr>
              </thead>
              <tbody>
                {rows.slice(0, most).map((of) => (
                  <Row key={`${asked(of)} ${of.type}`} of={of} act={(deed) => act({ deed, of })} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {acting && <ActOnQueue deed={acting.deed} of={acting.of} onDone={() => act(null)} />}
    </div>
  );
}

const Nothing = ({ loaded, searched }: { loaded: boolean; searched: boolean }) =>
  !loaded ? (
    <Empty title="Loading…" />
  ) : searched ? (
    <Empty title="Nothing fits">Change the search or the queue.</Empty>
  ) : (
    <Empty title="There are no jobs">As soon as a program schedules one with this prefix, its queue is here.</Empty>
  );

function Row({ of, act }: { of: Queue; act: (deed: QueueDeed) => void }) {
  const at = { name: asked(of), type: of.type };
  return (
    <tr>
      <td class="left">
        <a class="thing-link" href={jobsHash({ tab: 'queues', ...at })}>
          <Name text={of.name} />
        </a>
      </td>
      <td class="left">
        {of.type} {of.paused && <span class="tag paused">paused</span>}
      </td>
      {counted.map(([column, state]) => {
        const count = of[column] as number;
        return (
          <td key={column} class="num">
            {count === 0 ? (
              <span class="muted">0</span>
            ) : (
              <a class={`cell-link ${column}`} href={jobsHash({ tab: state, ...at })} aria-label={`${whole(count)} ${column} of ${of.name} ${of.type}`}>
                {whole(count)}
              </a>
            )}
          </td>
        );
      })}
      <td class="num">{of.completed_per_s === null ? '–' : rate(of.completed_per_s)}</td>
      <td class="num">{of.failed_per_s === null ? '–' : rate(of.failed_per_s)}</td>
      {api.session.actions && (
        <td>
          <button class="button small" aria-label={`${of.paused ? 'Resume' : 'Pause'} ${of.name} ${of.type}`} onClick={() => act(of.paused ? 'resume' : 'pause')}>
            {of.paused ? 'Resume' : 'Pause'}
          </button>
        </td>
      )}
    </tr>
  );
}

function Throughput({ name, type }: { name: string; type: string }) {
  const { value, failed } = useLoaded(`samples ${name} ${type}`, () => samples(name, type));
  const all: JobSample[] = value ?? [];
  return (
    <>
      <Failure text={failed} />
      <div class="plot-grid">
        <Plot title="Done per second" samples={all} lines={[{ title: 'completed', colour: '--green', of: (s) => s.completed_per_s }, { title: 'failed', colour: '--red', of: (s) => s.failed_per_s }]} show={rate} />
        <Plot title="Waiting and running" samples={all} lines={[{ title: 'waiting', colour: '--amber', of: (s) => s.waiting }, { title: 'running', colour: '--accent', of: (s) => s.running }]} show={whole} />
      </div>
    </>
  );
}
