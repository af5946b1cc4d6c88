// Running a job again, or cancelling it, or all of a queue, which can be paused, too, as can one that is not of jobs: only after showing which it is and what that means.
import { useState } from 'preact/hooks';
import { Name } from '../parts/basic';
import { Dialog } from '../parts/dialog';
import { Failure, StateTag } from './basic';
import { whole } from '../clock';
import { actOnQueue, cancel, type Job, type PauseDeed, pauseQueue, type QueueDeed, retry } from './load';
import type { JobState } from './route';

export type Deed = 'retry' | 'cancel';

const what = (deed: Deed, of: Job) => {
  if (deed === 'cancel') {
    return of.state === 'running'
      ? 'It is being run. Its handler is asked to stop, and whatever it returns does not count; what it has done already stays done.'
      : 'It is not run. Jobs that wait for it fail, are skipped or go on, as each of them says.';
  }
  return of.state === 'completed'
    ? 'It has completed. It is run once more, and what it did may be done twice.'
    : 'It is run as if it had never been tried. Jobs of its flow that ended because of it wait for it again.';
};

export function ActOnJob({ deed, of, onDone }: { deed: Deed; of: Job; onDone: (said?: string) => void }) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const title = deed === 'retry' ? 'Run again' : 'Cancel the job';
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailed('');
    try {
      await (deed === 'retry' ? retry : cancel)({ name: of.name, id: of.id, state: of.state, reason, ...(of.raw ? { raw: of.raw } : {}) });
      onDone(deed === 'retry' ? 'It will be run again.' : 'Cancelled.');
    } catch (failure) {
      setFailed((failure as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={() => onDone()}>
      <form onSubmit={submit}>
        <dl class="facts">
          <dt>Job</dt>
          <dd>
            <Name text={of.id} />
          </dd>
          <dt>Of</dt>
          <dd>
            <Name text={of.name} />
          </dd>
          <dt>State</dt>
          <dd>
            <StateTag state={of.state} />
          </dd>
        </dl>
        <p class={of.state === 'running' || of.state === 'completed' ? 'warning' : ''}>{what(deed, of)}</p>
        <label class="field">
          Reason, for the audit
          <input value={reason} maxLength={200} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        <Failure text={failed} />
        <div class="buttons">
          <button type="button" class="button" onClick={() => onDone()}>
            Close
          </button>
          <button type="submit" class={`button ${deed === 'retry' ? 'primary' : 'danger'}`} disabled={busy}>
            {title}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

// A queue, as a row of the table or a list of its jobs shows it; the jobs in a state, if that is given.
export interface QueueRef {
  name: string;
  raw?: string;
  type?: string; // undefined: it is not one of jobs
  state?: JobState;
}

const titles: Record<QueueDeed, string> = { pause: 'Pause', resume: 'Resume', 'retry-all': 'Run all again', 'cancel-all': 'Cancel all' };
const meanings: Record<QueueDeed, string> = {
  pause: 'No worker begins a job of this type until it is resumed. Those that run go on; new ones can be scheduled, and wait.',
  resume: 'Workers begin those that wait at once.',
  'retry-all': 'They are run as if they had never been tried. Those that ended because of their parents come back with these.',
  'cancel-all': 'They are not run, and cannot be completed any more. Jobs that wait for them fail, are skipped or go on, as each of them says.',
};
const meaningsOfOthers: Record<PauseDeed, string> = {
  pause: 'Nothing is delivered from it, to any process, until it is resumed. What was delivered stays with its holders; new items can be enqueued, and wait.',
  resume: 'What waits is delivered at once.',
};
const meaning = (deed: QueueDeed, of: QueueRef) => (of.type === undefined && (deed === 'pause' || deed === 'resume') ? meaningsOfOthers[deed] : meanings[deed]);
const done: Record<QueueDeed, (count: number) => string> = {
  pause: (count) => (count > 0 ? 'Paused.' : 'It was paused already.'),
  resume: (count) => (count > 0 ? 'Resumed.' : 'It was not paused.'),
  'retry-all': (count) => `${whole(count)} will be run again.`,
  'cancel-all': (count) => `${whole(count)} cancelled.`,
};

export function ActOnQueue({ deed, of, onDone }: { deed: QueueDeed; of: QueueRef; onDone: (said?: string) => void }) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailed('');
    try {
      const order = { name: of.name, reason, ...(of.raw ? { raw: of.raw } : {}) };
      if (of.type !== undefined) onDone(done[deed]((await actOnQueue(deed, { ...order, type: of.type, ...(of.state ? { state: of.state } : {}) })).count));
      else if (deed === 'pause' || deed === 'resume') onDone(done[deed]((await pauseQueue(deed, order)).done ? 1 : 0));
    } catch (failure) {
      setFailed((failure as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={titles[deed]} onClose={() => onDone()}>
      <form onSubmit={submit}>
        <dl class="facts">
          <dt>{of.type === undefined ? 'Queue' : 'Jobs'}</dt>
          <dd>
            <Name text={of.name} />
          </dd>
          {of.type !== undefined && (
            <>
              <dt>Type</dt>
              <dd>{of.type}</dd>
            </>
          )}
          {of.state && (
            <>
              <dt>State</dt>
              <dd>
                <StateTag state={of.state} />
              </dd>
            </>
          )}
        </dl>
        <p class={deed === 'cancel-all' ? 'warning' : ''}>{meaning(deed, of)}</p>
        <label class="field">
          Reason, for the audit
          <input value={reason} maxLength={200} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        <Failure text={failed} />
        <div class="buttons">
          <button type="button" class="button" onClick={() => onDone()}>
            Close
          </button>
          <button type="submit" class={`button ${deed === 'cancel-all' ? 'danger' : 'primary'}`} disabled={busy}>
            {titles[deed]}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
