// Requests to the server this page came from, and the stream of what changes.
import { heard } from './clock';
import { model } from './model';
import type { AuditEntry, Explanation, Health, HistoryEntry, LeaderChange, Sample, Session, StateMessage, Statistics } from './types';

export let session: Session = { known: false, wants_token: false };
let askToLogIn = () => {};
export const onLogIn = (handler: () => void) => {
  askToLogIn = handler;
};

export async function read<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await fetch(path, { credentials: 'same-origin', cache: 'no-store', ...init });
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (answer.ok) return body as T;
  if (answer.status === 401 && path !== '/api/login') askToLogIn();
  throw new Error((body as { error?: string }).error ?? `the server answered ${answer.status}`);
}

export const post = <T>(path: string, body: unknown) =>
  read<T>(path, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Lockstep-CSRF': session.csrf ?? '' }, body: JSON.stringify(body) });

export async function loadSession(): Promise<Session> {
  session = await read<Session>('/api/session');
  return session;
}
export const logIn = (token: string) => post<unknown>('/api/login', { token });
export const logOut = () => post<unknown>('/api/logout', {});

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

// The browser connects again by itself, unless the server refused; a connection that only seems to be there is closed by us.
const silence = 12_000;
let source: EventSource | null = null;
let lastWord = 0;
let retry = 0;
let pause = 500;

export function follow(): void {
  clearTimeout(retry);
  source?.close();
  const mine = new EventSource(`/api/stream?seen=${encodeURIComponent(model.version)}`);
  source = mine;
  lastWord = Date.now();
  const on = (event: string, handler: (data: string) => void) =>
    mine.addEventListener(event, (message) => {
      lastWord = Date.now();
      if (model.link !== 'live') model.set('link', 'live');
      pause = 500;
      handler((message as MessageEvent<string>).data);
    });
  on('state', (data) => model.apply(JSON.parse(data) as StateMessage));
  on('sample', (data) => model.addSample(JSON.parse(data) as Sample));
  on('trouble', (data) => model.set('trouble', (JSON.parse(data) as { trouble: string | null }).trouble));
  on('audit', () => model.set('auditAsked', model.auditAsked + 1));
  on('beat', (data) => {
    const { at_ms } = JSON.parse(data) as { at_ms?: number };
    if (at_ms !== undefined) heard(at_ms);
  });
  mine.onopen = () => {
    lastWord = Date.now();
    // Another server may be there now, with another csrf token; and it may want to know who we are.
    loadSession()
      .then((now) => (now.known ? samples().then((all) => model.set('samples', all)) : askToLogIn()))
      .catch(() => {});
  };
  mine.onerror = () => {
    if (source !== mine) return;
    model.set('link', 'lost');
    mine.close();
    again();
  };
}

function again(): void {
  clearTimeout(retry);
  retry = window.setTimeout(() => {
    // A refusal looks like a lost connection to an EventSource: ask which it is.
    loadSession()
      .then((now) => (now.known ? follow() : askToLogIn()))
      .catch(again);
  }, pause);
  pause = Math.min(pause * 1.6, 4000);
}

export function unfollow(): void {
  clearTimeout(retry);
  source?.close();
  source = null;
}

setInterval(() => {
  if (source && Date.now() - lastWord > silence) {
    model.set('link', 'lost');
    source.close();
    source = null;
    again();
  }
}, 2000);
