// The frame: where to go, how it stands, what the keyboard does.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import * as api from './api';
import { whole } from './clock';
import { model, useModel } from './model';
import { Icon, type IconName } from './parts/basic';
import { Detail } from './parts/detail';
import { Dialog } from './parts/dialog';
import { JobDetail } from './jobs/detail';
import { goJobs, jobsRoute, useJobsRoute } from './jobs/route';
import { go, useRoute, type View, views } from './route';
import { toggleTheme, useTheme } from './theme';
import { Clients } from './views/clients';
import { Graph } from './views/graph';
import { Health } from './views/health';
import { Jobs } from './views/jobs';
import { Locks } from './views/locks';
import { Log } from './views/log';
import { Plots } from './views/plots';

const titles: Record<View, string> = { locks: 'Locks', clients: 'Clients', graph: 'Graph', jobs: 'Jobs', plots: 'Plots', health: 'Health', log: 'Log' };
const drawn: Record<View, ComponentType> = { locks: Locks, clients: Clients, graph: Graph, jobs: Jobs, plots: Plots, health: Health, log: Log };

export function Shell() {
  const at = useRoute();
  const [help, setHelp] = useState(false);
  useKeys(setHelp);
  const Shown = drawn[at.view];
  const { job } = useJobsRoute();
  const hasDetail = at.view === 'jobs' ? job !== undefined : at.open !== undefined;
  return (
    <div class={`shell${hasDetail ? ' with-detail' : ''}`}>
      <Head onHelp={() => setHelp(true)} />
      <Rail at={at.view} />
      <main id="main" tabIndex={-1}>
        <Banner />
        <Shown />
      </main>
      {at.open && <Detail open={at.open} />}
      {at.view === 'jobs' && job && <JobDetail of={job} />}
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

function Head({ onHelp }: { onHelp: () => void }) {
  useModel();
  const theme = useTheme();
  const totals: [string, number, string][] = [
    ['names', model.things.size, ''],
    ['held', model.holds.size, 'accent'],
    ['waiting', model.waiting, model.waiting > 0 ? 'amber' : ''],
    ['stale', model.stale, model.stale > 0 ? 'red' : ''],
  ];
  return (
    <header class="head">
      <div class="brand">
        <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
          <rect class="mark-box" width="32" height="32" rx="8" />
          <path class="mark-bow" d="M10 15v-3.5a6 6 0 0 1 12 0V15" />
          <rect class="mark-bar" x="7.5" y="14.5" width="17" height="3.2" rx="1.6" />
          <rect class="mark-bar two" x="7.5" y="19.4" width="12" height="3.2" rx="1.6" />
          <rect class="mark-bar three" x="7.5" y="24.3" width="7" height="3.2" rx="1.6" />
        </svg>
        <div class="brand-text">
          <span class="brand-name">Lockstep</span>
          <span class="server" title={api.session.server}>{api.session.server}</span>
        </div>
      </div>
      <dl class="totals">
        {totals.map(([title, value, colour]) => (
          <div key={title}>
            <dd class={`num ${colour}`}>{whole(value)}</dd>
            <dt>{title}</dt>
          </div>
        ))}
      </dl>
      <div class="head-end">
        <span class={`link ${model.link}`} role="status">
          <span class="link-dot" />
          <span class="link-text">{model.link === 'live' ? 'Live' : model.link === 'lost' ? 'Reconnecting' : 'Connecting'}</span>
        </span>
        <button class="icon-button" aria-label={theme === 'dark' ? 'Light colours' : 'Dark colours'} title="Colours (t)" onClick={toggleTheme}>
          <Icon name={theme === 'dark' ? 'sun' : 'moon'} />
        </button>
        <button class="icon-button help-button" aria-label="Help" title="Help (?)" onClick={onHelp}>
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}

function Rail({ at }: { at: View }) {
  useModel();
  return (
    <nav class="rail" aria-label="Views">
      {views.map((view) => (
        <a key={view} href={`#/${view}`} class={view === at ? 'on' : ''} aria-current={view === at ? 'page' : undefined}>
          <Icon name={view as IconName} />
          <span>{titles[view]}</span>
          {view === 'graph' && model.deadlocks.length > 0 && <b class="badge" aria-label={`${model.deadlocks.length} rings of waiting`}>{model.deadlocks.length}</b>}
        </a>
      ))}
    </nav>
  );
}

function Banner() {
  useModel();
  if (model.link === 'lost') {
    return (
      <p class="banner lost" role="alert">
        The connection to the dashboard is lost; what you see is how it was. Trying again…
      </p>
    );
  }
  if (model.trouble !== null) {
    return (
      <p class="banner trouble" role="alert">
        Redis does not answer as it should: {model.trouble}
      </p>
    );
  }
  if (model.notes.length > 0) {
    return (
      <p class="banner trouble" role="status">
        Not shown: {model.notes.join('; ')}
      </p>
    );
  }
  return null;
}

// Keys that work everywhere, unless somebody is writing.
function useKeys(setHelp: (on: boolean) => void) {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const target = event.target as HTMLElement;
      const writing = target.matches?.('input, textarea, select');
      if (event.key === 'Escape') {
        if (writing) target.blur();
        else if (jobsRoute().job) goJobs({ job: undefined });
        else if (location.hash.split('/').length > 2 && !location.hash.startsWith('#/jobs/')) go({ view: (location.hash.split('/')[1] ?? 'locks') as View });
        return;
      }
      if (writing) return;
      const list = document.querySelector<HTMLElement>('.virtual');
      const send = (key: string) => {
        list?.focus();
        list?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: false }));
      };
      const number = Number(event.key);
      if (event.key === '/') document.querySelector<HTMLInputElement>('#search')?.focus();
      else if (event.key === '?') setHelp(true);
      else if (event.key === 't') toggleTheme();
      else if (event.key === 'j') send('ArrowDown');
      else if (event.key === 'k') send('ArrowUp');
      else if (number >= 1 && number <= views.length) go({ view: views[number - 1]! });
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', pressed);
    return () => window.removeEventListener('keydown', pressed);
  }, []);
}

const keys: [string, string][] = [
  ['/', 'search'],
  ['j  k', 'next, previous (arrows too)'],
  ['Enter', 'details'],
  ['Esc', 'close'],
  ['1 – 7', 'views'],
  ['t', 'dark or light'],
  ['?', 'this'],
];

const Help = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <dl class="keys">
      {keys.map(([key, what]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
    <p class="muted">Bars are leases: they run down, and are renewed by a holder that lives. A red dot is a hold whose owner is gone.</p>
    <div class="buttons">
      {api.session.wants_token && (
        <button class="button" onClick={() => void api.logOut().then(() => location.reload())}>
          Log out
        </button>
      )}
      <button class="button primary" autofocus onClick={onClose}>
        Close
      </button>
    </div>
  </Dialog>
);

// `refused`: why the link that led here did not log in.
export function LogIn({ refused, onDone }: { refused: string; onDone: () => void }) {
  const [token, setToken] = useState('');
  const [failed, setFailed] = useState(refused);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await api.logIn(token);
      onDone();
    } catch (failure) {
      setFailed((failure as Error).message);
    }
  };
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <h1>Lockstep</h1>
        <p class="muted">This dashboard wants the token it was started with.</p>
        <label class="field">
          Token
          <input type="password" autocomplete="current-password" autofocus value={token} onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        {failed && (
          <p class="failure" role="alert">
            {failed}
          </p>
        )}
        <div class="buttons">
          <button class="button primary" type="submit">
            Log in
          </button>
        </div>
      </form>
    </main>
  );
}
