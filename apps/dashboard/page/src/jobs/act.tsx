// Running a job again, or cancelling it: only after showing which it is and what that means.
import { useState } from 'preact/hooks';
import { Name } from '../parts/basic';
import { Dialog } from '../parts/dialog';
import { Failure, StateTag } from './basic';
import { cancel, type Job, retry } from './load';

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
