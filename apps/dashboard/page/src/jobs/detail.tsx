// Everything about one job, beside the list.
import { useEffect, useState } from 'preact/hooks';
import * as api from '../api';
import { clockTime, dayTime, whole } from '../clock';
import { Icon, Name, Since } from '../parts/basic';
import { ActOnJob, type Deed } from './act';
import { bytes, Failure, JobLink, StateTag } from './basic';
import { type Job, job, useLoaded } from './load';
import { flowOf, goJobs, type JobRef, jobsHash, jobsRoute } from './route';

const mostParents = 20;

export function JobDetail({ of }: { of: JobRef }) {
  const { value, failed } = useLoaded(`job ${of.name} ${of.id}`, () => job(of));
  const [asked, ask] = useState<{ deed: Deed; of: Job } | null>(null); // the job as it was when the button was pressed
  const [said, setSaid] = useState('');
  useEffect(() => {
    setSaid('');
    ask(null);
  }, [of.name, of.id]);
  const close = () => goJobs({ job: undefined });
  return (
    <aside class="detail" aria-label={`Details of ${of.id}`}>
      <header>
        <div class="detail-title">
          {value ? <StateTag state={value.state} /> : <span class="tag">job</span>}
          <h2>
            <Name text={of.id} />
          </h2>
        </div>
        <button class="icon-button" aria-label="Copy the id" title="Copy the id" onClick={() => void navigator.clipboard?.writeText(of.id)}>
          <Icon name="copy" />
        </button>
        <button class="icon-button" aria-label="Close" title="Close (Esc)" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="detail-body">
        {said && (
          <p class="note" role="status">
            {said}
          </p>
        )}
        <Failure text={failed} />
        {value ? <Known of={value} act={(deed) => ask({ deed, of: value })} at={of} /> : !failed && <p class="muted">Loading…</p>}
      </div>
      {asked && (
        <ActOnJob
          deed={asked.deed}
          of={asked.of}
          onDone={(text) => {
            ask(null);
            if (text) setSaid(text);
          }}
        />
      )}
    </aside>
  );
}

function Known({ of, at, act }: { of: Job; at: JobRef; act: (deed: Deed) => void }) {
  const hasEnded = of.state === 'completed' || of.state === 'failed' || of.state === 'cancelled';
  return (
    <>
      <section>
        <dl class="facts">
          <dt>Jobs</dt>
          <dd>
            <bdi>{of.name}</bdi>
          </dd>
          <dt>{of.state === 'waiting' ? 'Age' : 'Since'}</dt>
          <dd title={dayTime(of.since_ms)}>
            <Since ms={of.since_ms} />
          </dd>
          <dt>Created</dt>
          <dd class="num">{dayTime(of.created_ms)}</dd>
          {of.worker && (
            <>
              <dt>Worker</dt>
              <dd>
                <bdi>{of.worker}</bdi>
              </dd>
            </>
          )}
          {of.cron && (
            <>
              <dt>Schedule</dt>
              <dd>
                <bdi>{of.cron}</bdi>, due {dayTime(of.due_ms ?? 0)}
              </dd>
            </>
          )}
          {of.progress && (
            <>
              <dt>Progress</dt>
              <dd>
                <bdi>{of.progress}</bdi>
              </dd>
            </>
          )}
          <dt>Failed tries</dt>
          <dd class="num">{whole(of.failures.length)}</dd>
          {of.tags && (
            <>
              <dt>Tags</dt>
              <dd class="tags">
                {of.tags.map((tag) => (
                  <bdi key={tag} class="tag">
                    {tag}
                  </bdi>
                ))}
              </dd>
            </>
          )}
        </dl>
        {of.linked && jobsRoute().tab !== 'flow' && (
          <p class="flow-link">
            <a class="button" href={jobsHash(flowOf(at))}>
              <Icon name="graph" /> Draw its flow
            </a>
          </p>
        )}
        {api.session.actions ? (
          <div class="buttons left acts">
            {hasEnded ? (
              <button class="button" onClick={() => act('retry')}>
                Run again
              </button>
            ) : (
              <button class="button danger quiet" onClick={() => act('cancel')}>
                Cancel the job
              </button>
            )}
          </div>
        ) : (
          <p class="hint">
            <Icon name="eye" /> This dashboard only shows. Start it with <code>--allow-actions</code> to run jobs again or to cancel them.
          </p>
        )}
      </section>
      <Trail of={of} />
      {of.parents && (
        <section>
          <h3>Waits for, or waited for · {whole(of.parents_total)}</h3>
          <ul class="parents">
            {of.parents.slice(0, mostParents).map((id) => (
              <li key={id}>
                <JobLink of={{ name: at.name, id }} />
              </li>
            ))}
          </ul>
          {of.parents_total > mostParents && <p class="muted">and {whole(of.parents_total - mostParents)} more</p>}
        </section>
      )}
      <Text title="Payload" text={of.payload} length={of.payload_bytes} />
      {of.result !== undefined && <Text title="Result" text={of.result} length={of.result_bytes ?? 0} />}
    </>
  );
}

function Trail({ of }: { of: Job }) {
  if (of.failures.length === 0) return null;
  return (
    <section>
      <h3>Attempts that failed</h3>
      <ol class="trail card">
        {[...of.failures].reverse().map((one, i) => (
          <li key={of.failures.length - i}>
            <p class="trail-head">
              <time class="num" title={dayTime(one.when_ms)}>
                {clockTime(one.when_ms)}
              </time>
              <bdi class="muted">{one.worker === '-' ? '' : one.worker}</bdi>
            </p>
            <p class="trail-reason">{one.reason}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}

const Text = ({ title, text, length }: { title: string; text: string; length: number }) => (
  <section>
    <h3>
      {title} · {bytes(length)}
    </h3>
    {length === 0 ? <p class="muted">Empty.</p> : <pre class="why">{text}</pre>}
    {length > new TextEncoder().encode(text).length && <p class="muted">Only its beginning is shown.</p>}
  </section>
);
