// Requests to the server this page came from, and the stream of what changes.
import { accessHeaders, borrowSession, keepSession } from './access';
import { heard } from './clock';
import { readEvents } from './events';
import { model } from './model';
import type { AuditEntry, Explanation, Health, HistoryEntry, LeaderChange, Sample, Session, StateMessage, Statistics } from './types';

export let session: Session = { known: false, wants_token: false };
let askToLogIn = () => {};
export const onLogIn = (handler: () => void) => {
  askToLogIn = handler;
};

export async function read<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await fetch(path, { credentials: 'omit', cache: 'no-store', ...init, headers: { ...accessHeaders(), ...init.headers } });
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (answer.ok) return body as T;
  if (answer.status === 401 && !path.startsWith('/api/login')) askToLogIn();
  throw new Error((body as { error?: string }).error ?? `the server answered ${answer.status}`);
}

export const post = <T>(path: string, body: unknown) =>
  read<T>(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

export async function loadSession(): Promise<Session> {
  session = await read<Session>('/api/session');
  if (!session.known && session.wants_token && (await borrowSession())) session = await read<Session>('/api/session');
  return session;
}
const logInWith = async (path: string, body: unknown) => keepSession((await post<{ session?: string }>(path, body)).session ?? '');
export const logIn = (token: string) => logInWith('/api/login', { token });
export const logInByCode = (code: string) => logInWith('/api/login/code', { code });
export async function logOut(): Promise<void> {
  await post<unknown>('/api/logout', {});
  keepSession('');
}

const named = (path: string, name: string) => `${path}?name=${name}`; // already encoded: keys.ts, asked()
export const why = (name: string) => read<Explanation>(named('/api/why', name));
export const history = (name: string) => read<HistoryEntry[]>(named('/api/history', name));
export const changes = (name: string) => read<LeaderChange[]>(named('/api/changes', name));
export const statisticsOf = (name: string) => read<Statistics[]>(named('/api/statistics', name));
export const statistics = () => read<Statistics[]>('/api/statistics');
export const health = () => read<Health>('/api/health');
export const audit = () => read<AuditEntry[]>('/api/audit');
const samples = () => read<Sample[]>('/api/samples');

export interface Order {
  name: string;
  raw?: string;
  kind: string;
  hold: string;
  reason: string;
  force?: boolean;
}
export const ask = (order: Order) => post<{ done: boolean }>('/api/ask', order);
export const release = (order: Order) => post<{ done: boolean }>('/api/release', order);

// What is lost is asked for again, unless the server refused; a connection that only seems to be there is closed by us.
const silence = 12_000;
let source: AbortController | null = null;
let lastWord = 0;
let retry = 0;
let pause = 500;

function dispatch(event: string, data: string): void {
  lastWord = Date.now();
  if (model.link !== 'live') model.set('link', 'live');
  pause = 500;
  if (event === 'state') model.apply(JSON.parse(data) as StateMessage);
  else if (event === 'sample') model.addSample(JSON.parse(data) as Sample);
  else if (event === 'trouble') model.set('trouble', (JSON.parse(data) as { trouble: string | null }).trouble);
  else if (event === 'audit') model.set('auditAsked', model.auditAsked + 1);
  else if (event === 'beat') {
    const { at_ms } = JSON.parse(data) as { at_ms?: number };
    if (at_ms !== undefined) heard(at_ms);
  }
}

async function receive(mine: AbortController): Promise<void> {
  const answer = await fetch(`/api/stream?seen=${encodeURIComponent(model.version)}`, { credentials: 'omit', cache: 'no-store', headers: accessHeaders(), signal: mine.signal });
  if (!answer.ok || !answer.body) throw new Error(`the server answered ${answer.status}`);
  lastWord = Date.now();
  // Another server may be there now, and it may want to know who we are.
  loadSession()
    .then((now) => (now.known ? samples().then((all) => model.set('samples', all)) : askToLogIn()))
    .catch(() => {});
  await readEvents(answer.body, (event, data) => {
    if (source === mine) dispatch(event, data);
  });
}

export function follow(): void {
  unfollow();
  const mine = new AbortController();
  source = mine;
  lastWord = Date.now();
  receive(mine)
    .catch(() => {})
    .then(() => {
      if (source === mine) lost();
    });
}

function lost(): void {
  model.set('link', 'lost');
  unfollow();
  again();
}

function again(): void {
  clearTimeout(retry);
  retry = window.setTimeout(() => {
    // Lost or refused: ask which it is.
    loadSession()
      .then((now) => (now.known ? follow() : askToLogIn()))
      .catch(again);
  }, pause);
  pause = Math.min(pause * 1.6, 4000);
}

export function unfollow(): void {
  clearTimeout(retry);
  source?.abort();
  source = null;
}

setInterval(() => {
  if (source && Date.now() - lastWord > silence) lost();
}, 2000);
