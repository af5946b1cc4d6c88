// Asking for a hold, or ending it: only after showing whose it is and what that means.
import { useState } from 'preact/hooks';
import { ask, release } from '../api';
import { running, now } from '../clock';
import { model } from '../model';
import type { Hold } from '../types';
import { clientLabel, clientPlace, Name, Ticking } from './basic';
import { Dialog } from './dialog';

export type Action = 'ask' | 'release' | 'force';

const texts: Record<Action, { title: string; what: string; button: string }> = {
  ask: {
    title: 'Ask to release',
    what: 'Its process is told that somebody wants it. It decides itself when to let go; nothing is taken from it.',
    button: 'Ask',
  },
  release: {
    title: 'Release a stale hold',
    what: 'Its owner is gone and will not release it. The next in line gets it now, with a larger fence, instead of when the lease has run out.',
    button: 'Release',
  },
  force: {
    title: 'Force release',
    what:
      'Its owner is alive and may be in the middle of its work. It will hear that the lease is lost, but perhaps late: whatever it writes after that is only stopped by something that checks the fence.',
    button: 'Force release',
  },
};

export function Act({ action, of, onDone }: { action: Action; of: Hold; onDone: (said?: string) => void }) {
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const owner = model.client(of.owner);
  const text = texts[action];
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailed('');
    const order = { name: of.name, kind: of.kind, hold: of.id, reason, force: action === 'force', ...(of.raw ? { raw: of.raw } : {}) };
    try {
      const { done } = await (action === 'ask' ? ask(order) : release(order));
      if (action === 'ask') onDone(done ? 'Its process was told.' : 'Its process could not be reached.');
      else onDone(done ? 'Released.' : 'It was over already.');
    } catch (failure) {
      setFailed((failure as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={text.title} onClose={() => onDone()}>
      <form onSubmit={submit}>
        <dl class="facts">
          <dt>Name</dt>
          <dd>
            <Name text={of.name} />
          </dd>
          <dt>Owner</dt>
          <dd>
            <bdi>{clientLabel(owner)}</bdi> <span class="muted">{clientPlace(owner)}</span>
          </dd>
          <dt>Fence</dt>
          <dd class="num">{of.fence}</dd>
          <dt>Lease</dt>
          <dd>
            <Ticking text={() => running(of.ends_at_ms - now())} /> left
          </dd>
        </dl>
        <p class={action === 'force' ? 'warning' : ''}>{text.what}</p>
        <label class="field">
          Reason, for the audit
          <input value={reason} maxLength={200} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {failed && (
          <p class="failure" role="alert">
            {failed}
          </p>
        )}
        <div class="buttons">
          <button type="button" class="button" onClick={() => onDone()}>
            Cancel
          </button>
          <button type="submit" class={`button ${action === 'ask' ? 'primary' : 'danger'}`} disabled={busy}>
            {text.button}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
