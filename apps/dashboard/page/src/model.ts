// The state as the page has it: maps that messages change, and indexes over them. Views read it; `useModel` draws them again.
import { useEffect, useState } from 'preact/hooks';
import { heard, now } from './clock';
import { holdKey, thingKey, waitKey } from './keys';
import { type Ring, rings } from './rings';
import type { AuditEntry, Client, Hold, Sample, StateMessage, Thing, Wait } from './types';

export interface LogEntry {
  n: number;
  at_ms: number;
  what: 'acquired' | 'ended' | 'stale' | 'waits' | 'joined' | 'left' | 'deadlock';
  name?: string;
  kind?: string;
  who?: Client;
  detail?: string;
}

const mostLog = 500;
const mostSamples = 1800;

class Model {
  things = new Map<string, Thing>();
  holds = new Map<string, Hold>();
  waits = new Map<string, Wait>();
  clients = new Map<string, Client>();
  holdsOf = new Map<string, Hold[]>(); // by thingKey
  waitsOf = new Map<string, Wait[]>();
  samples: Sample[] = [];
  log: LogEntry[] = [];
  audit: AuditEntry[] = [];
  auditAsked = 0; // changes when the audit has to be read again
  trouble: string | null = null;
  link: 'connecting' | 'live' | 'lost' = 'connecting';
  loaded = false;
  version = ''; // the last message's: after a pause only what is new since is sent
  leftOut = 0;
  notes: string[] = []; // what could not be read
  stale = 0;
  waiting = 0;
  deadlocks: Ring[] = [];
  changes = 0; // of anything that is drawn

  private logged = 0;
  private listeners = new Set<() => void>();
  private due = 0;
  private drawn = 0;
  private ringsAt = -Infinity; // the page's own clock begins at 0: the first search is not too soon
  private ringsDue = 0;

  client(id: string): Client {
    return this.clients.get(id) ?? { id, name: '', host: '', pid: 0, version: '', since_ms: 0, connected: false, held: 0, waiting: 0 };
  }

  apply(message: StateMessage): void {
    heard(message.at_ms);
    const touched = new Set<string>();
    const first = !this.loaded;
    if (message.whole) this.forgetAllBut(message, touched);
    for (const key of message.gone.holds ?? []) this.dropHold(key, touched);
    for (const key of message.gone.waits ?? []) this.dropWait(key, touched);
    for (const key of message.gone.objects ?? []) this.things.delete(key);
    for (const one of message.set.clients) this.setClient(one, first);
    for (const one of message.set.objects) this.things.set(thingKey(one), one);
    for (const one of message.set.holds) this.setHold(one, message.at_ms, first, touched);
    for (const one of message.set.waits) this.setWait(one, first, touched);
    for (const key of message.gone.clients ?? []) this.dropClient(key);
    this.index(touched);
    this.leftOut = message.left_out;
    this.notes = message.notes ?? [];
    this.version = message.version;
    this.loaded = true;
    this.count();
    this.changed();
  }

  // Everything came anew: what is not among it is gone.
  private forgetAllBut(message: StateMessage, touched: Set<string>): void {
    const keep = <T>(map: Map<string, T>, keys: Set<string>, drop: (key: string) => void) => {
      for (const key of [...map.keys()]) if (!keys.has(key)) drop(key);
    };
    keep(this.holds, new Set(message.set.holds.map(holdKey)), (key) => this.dropHold(key, touched));
    keep(this.waits, new Set(message.set.waits.map(waitKey)), (key) => this.dropWait(key, touched));
    keep(this.things, new Set(message.set.objects.map(thingKey)), (key) => this.things.delete(key));
    keep(this.clients, new Set(message.set.clients.map((one) => one.id)), (key) => this.dropClient(key));
  }

  private setClient(one: Client, first: boolean): void {
    const before = this.clients.get(one.id);
    this.clients.set(one.id, one);
    if (first) return;
    if (!before && one.connected) this.say({ what: 'joined', who: one });
    if (before?.connected && !one.connected) this.say({ what: 'left', who: one });
  }

  private setHold(one: Hold, at: number, first: boolean, touched: Set<string>): void {
    const key = holdKey(one);
    const before = this.holds.get(key);
    one.span = Math.max(before?.span ?? 0, one.ends_at_ms - at, 1);
    this.holds.set(key, one);
    touched.add(thingKey(one));
    if (first) return;
    if (one.fence !== '0' && (!before || before.fence === '0')) {
      this.say({ what: 'acquired', name: one.name, kind: one.kind, who: this.client(one.owner), detail: `fence ${one.fence}` });
    }
    if (one.stale && !before?.stale) {
      this.say({ what: 'stale', name: one.name, kind: one.kind, who: this.client(one.owner), detail: `fence ${one.fence}` });
    }
  }

  private setWait(one: Wait, first: boolean, touched: Set<string>): void {
    const key = waitKey(one);
    const fresh = !this.waits.has(key);
    this.waits.set(key, one);
    touched.add(thingKey(one));
    if (fresh && !first) this.say({ what: 'waits', name: one.name, kind: one.kind, who: this.client(one.who), detail: one.position > 0 ? `place ${one.position}` : one.use });
  }

  private dropHold(key: string, touched: Set<string>): void {
    const one = this.holds.get(key);
    if (!one) return;
    this.holds.delete(key);
    touched.add(thingKey(one));
    this.say({ what: 'ended', name: one.name, kind: one.kind, who: this.client(one.owner), detail: `fence ${one.fence}` });
  }

  private dropWait(key: string, touched: Set<string>): void {
    const one = this.waits.get(key);
    if (!one) return;
    this.waits.delete(key);
    touched.add(thingKey(one));
  }

  private dropClient(id: string): void {
    const one = this.clients.get(id);
    this.clients.delete(id);
    if (one?.connected) this.say({ what: 'left', who: one });
  }

  private index(touched: Set<string>): void {
    if (touched.size === 0) return;
    const collect = <T extends Hold | Wait>(from: Map<string, T>, into: Map<string, T[]>, order: (a: T, b: T) => number) => {
      for (const key of touched) into.delete(key);
      for (const one of from.values()) {
        const key = thingKey(one);
        if (!touched.has(key)) continue;
        const list = into.get(key);
        if (list) list.push(one);
        else into.set(key, [one]);
      }
      for (const key of touched) into.get(key)?.sort(order);
    };
    collect(this.holds, this.holdsOf, (a, b) => a.since_ms - b.since_ms);
    collect(this.waits, this.waitsOf, (a, b) => a.position - b.position || (a.since_ms ?? 0) - (b.since_ms ?? 0));
  }

  private count(): void {
    this.stale = 0;
    for (const one of this.holds.values()) if (one.stale) this.stale += 1;
    this.waiting = 0;
    for (const one of this.waits.values()) this.waiting += one.waiters;
    const wait = this.ringsAt + 1000 - performance.now();
    if (wait <= 0 || this.deadlocks.length > 0) return this.findRings();
    // The last change may be the one that closes a ring.
    this.ringsDue ||= window.setTimeout(() => {
      this.findRings();
      this.changed();
    }, wait);
  }

  private findRings(): void {
    clearTimeout(this.ringsDue);
    this.ringsDue = 0;
    this.ringsAt = performance.now();
    const before = new Set(this.deadlocks.map((ring) => ring.id));
    this.deadlocks = rings(this.holdsOf, this.waits.values());
    for (const ring of this.deadlocks) {
      if (before.has(ring.id)) continue;
      this.say({ what: 'deadlock', detail: `${ring.possible ? 'possible: ' : ''}${ring.clients.map((id) => this.client(id).name || id).join(' → ')}` });
    }
  }

  private say(entry: Omit<LogEntry, 'n' | 'at_ms'>): void {
    this.log.push({ ...entry, n: (this.logged += 1), at_ms: now() });
    if (this.log.length > mostLog * 2) this.log = this.log.slice(-mostLog);
  }

  addSample(sample: Sample): void {
    this.samples.push(sample);
    if (this.samples.length > mostSamples) this.samples.shift();
    this.changed();
  }

  set<K extends 'trouble' | 'link' | 'audit' | 'auditAsked' | 'samples'>(what: K, value: Model[K]): void {
    (this as Model)[what] = value;
    this.changed(true);
  }

  // Draws at most five times a second, however much comes in; what a person did is drawn at once.
  private changed(soon = false): void {
    this.changes += 1;
    if (this.due) return;
    const wait = soon ? 0 : Math.max(0, 200 - (performance.now() - this.drawn));
    this.due = window.setTimeout(() => {
      this.due = 0;
      this.drawn = performance.now();
      for (const listener of this.listeners) listener();
    }, wait);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const model = new Model();

export function useModel(): Model {
  const [, draw] = useState(0);
  useEffect(() => model.subscribe(() => draw((n) => n + 1)), []);
  return model;
}
