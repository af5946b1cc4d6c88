// Jobs in one state, a page at a time: of all queues, one queue after the other, or of one.
import { useEffect, useState } from 'preact/hooks';
import * as api from '../api';
import { now, running, whole } from '../clock';
import { asked } from '../keys';
import { Empty, Name, Since, Ticking } from '../parts/basic';
import { VirtualList } from '../parts/virtual';
import { useNarrow } from '../theme';
import { ActOnQueue, type QueueRef } from './act';
import { Failure, refOf } from './basic';
import { list, type ListedJob, type QueueDeed, useLoaded } from './load';
import { goJobs, type JobState, useJobsRoute } from './route';

const page = 50;
const key = (of: ListedJob) => `${asked(of)} ${of.id}`;

export function JobList({ state }: { state: JobState }) {
  const { name, type, job } = useJobsRoute();
  const narrow = useNarrow();
  const [from, setFrom] = useState(0);
  const [chosen, choose] = useState(''); // not a row's number: others come before it, and it would be another job
  const [acting, act] = useState<QueueRef | null>(null);
  const [told, tell] = useState('');
  useEffect(() => {
    setFrom(0);
    choose('');
    act(null);
    tell('');
  }, [state, name, type]);
  const { value, failed } = useLoaded(`list ${state} ${name} ${type} ${from}`, () => list(state, name, type, from, page));
  const rows = value?.jobs ?? [];
  const selected = chosen === '' ? -1 : rows.findIndex((of) => key(of) === chosen);
  const total = value?.total ?? 0;
  const first = rows[0];
  // Of one queue only: what is pressed for all of them is seldom meant.
  const deed: QueueDeed | null = state === 'completed' ? null : state === 'failed' || state === 'cancelled' ? 'retry-all' : 'cancel-all';
  const open = (of: ListedJob) => {
    choose(key(of));
    goJobs({ job: refOf(of, of.id) });
  };
  const move = (to: number) => {
    const of = rows[to];
    choose(of ? key(of) : '');
    if (of && job) goJobs({ job: refOf(of, of.id) }); // the panel follows
  };
  const turn = (to: number) => {
    setFrom(to);
    choose('');
  };
  return (
    <>
      <Failure text={failed} />
      {!narrow && (
        <div class="columns" aria-hidden="true">
          <span>Job</span>
          <span>{state === 'failed' || state === 'cancelled' ? 'Reason and payload' : state === 'running' ? 'Progress and payload' : 'Payload'}</span>
          <span>Worker</span>
          <span>Failed tries</span>
          <span class="right">{state === 'waiting' ? 'Age' : 'Since'}</span>
        </div>
      )}
      {rows.length > 0 ? (
        <VirtualList rows={rows} height={narrow ? 84 : 52} label={`Jobs: ${state}`} selected={selected} onMove={move} onOpen={open} draw={(of) => <Row of={of} />} />
      ) : (
        <Empty title={value ? (from > 0 ? 'No more' : `No job is ${state}`) : failed ? '' : 'Loading…'} />
      )}
      <div class="tools pager">
        <span class="num muted" role="status">
          {rows.length === 0 && from === 0 ? '' : `${whole(Math.min(from + 1, total))}–${whole(Math.min(from + page, total))} of ${whole(total)}`}
        </span>
        {told && (
          <span class="note" role="status">
            {told}
          </span>
        )}
        <div class="buttons">
          {api.session.actions && deed !== null && name !== '' && first && (
            <button class={`button${deed === 'cancel-all' ? ' danger quiet' : ''}`} onClick={() => act({ name: first.name, type: first.type, state, ...(first.raw ? { raw: first.raw } : {}) })}>
              {deed === 'retry-all' ? 'Run all again' : 'Cancel all'}
            </button>
          )}
          <button class="button" disabled={from === 0} onClick={() => turn(Math.max(0, from - page))}>
            Previous
          </button>
          <button class="button" disabled={from + page >= total} onClick={() => turn(from + page)}>
            Next
          </button>
        </div>
      </div>
      {acting && deed !== null && (
        <ActOnQueue
          deed={deed}
          of={acting}
          onDone={(text) => {
            act(null);
            tell(text ?? '');
          }}
        />
      )}
    </>
  );
}

const said = (of: ListedJob) => (of.state === 'failed' || of.state === 'cancelled' ? of.reason : of.state === 'running' ? of.progress : undefined);

function Row({ of }: { of: ListedJob }) {
  return (
    <>
      <span class="cell-name">
        <span class={`dot state ${of.state}`} title={of.state} />
        <span class="holder">
          <Name text={of.id} />
          <span class="holder-place">
            {of.linked && <span class="tag">flow</span>} <bdi>{of.name}</bdi>
          </span>
        </span>
      </span>
      <span class="cell-holders">
        <span class="holder">
          {said(of) !== undefined && (
            <bdi class={`holder-name${of.state === 'failed' ? ' red' : ''}`} title={said(of)}>
              {said(of)}
            </bdi>
          )}
          <bdi class={said(of) === undefined ? 'holder-name' : 'holder-place'} title={of.payload}>
            {of.payload}
          </bdi>
        </span>
      </span>
      <span class="cell-lease">{of.delayed_until_ms !== undefined ? <Ticking text={() => `runs in ${running(Math.max(0, of.delayed_until_ms! - now()))}`} /> : of.worker ? <bdi class="holder-name">{of.worker}</bdi> : <span class="muted">–</span>}</span>
      <span class="cell-queue num">{of.tries === 0 ? <span class="muted">–</span> : whole(of.tries)}</span>
      <span class="cell-wait right">
        <Since ms={of.since_ms} />
      </span>
    </>
  );
}
