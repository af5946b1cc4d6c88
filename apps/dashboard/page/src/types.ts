// What the server sends. The stream has the form of state.cpp, the rest that of apps/common/json.hpp.

export type Kind = 'lock' | 'recursive' | 'shared' | 'semaphore' | 'event' | 'election' | 'broadcast' | 'latch' | 'barrier' | string;

export interface Client {
  id: string;
  name: string;
  host: string;
  pid: number;
  version: string;
  since_ms: number;
  connected: boolean;
  held: number;
  waiting: number;
}

interface Named {
  name: string;
  kind: Kind;
  raw?: string; // percent-encoded, when the name is not UTF-8
}

export interface Thing extends Named {
  count: number; // of a counter beyond 2^50 it is a text
  taken: number;
  holders: number;
  queue: number;
  delayed?: number;
  dead?: number;
  blocked?: number;
  paused?: boolean; // a queue, or a type of jobs
  type?: string; // of jobs
  groups?: Group[]; // of a stream; channels of a bus
}

export interface Group {
  name: string;
  consumers: number;
  pending: number;
  lag: number | null; // null: the server does not know
}

export interface Hold extends Named {
  use: string;
  id: string;
  owner: string;
  fence: string;
  permits: number;
  offered: boolean;
  stale: boolean;
  queue: number;
  since_ms: number;
  ends_at_ms: number;
  candidate?: string; // of an election: the leader's id
  span?: number; // how long its lease was when it was longest, as far as we saw
}

export interface Wait extends Named {
  use: string;
  id: string;
  who: string;
  position: number;
  waiters: number;
  permits: number;
  priority?: number;
  since_ms: number | null;
}

export interface StateMessage {
  whole: boolean;
  version: string;
  at_ms: number;
  left_out: number;
  notes?: string[]; // what could not be read
  set: { objects: Thing[]; holds: Hold[]; waits: Wait[]; clients: Client[] };
  gone: { objects?: string[]; holds?: string[]; waits?: string[]; clients?: string[] };
}

export interface Sample {
  at_ms: number;
  objects: number;
  holds: number;
  waiting: number;
  stale: number;
  clients: number;
  acquisitions: number;
  acquired_per_s?: number;
  timed_out_per_s?: number;
  wait_average_us?: number;
  wait_p99_us: number;
  held_p99_us: number;
}

export interface Timing {
  count: number;
  average_us: number;
  p50_us: number;
  p95_us: number;
  p99_us: number;
  max_us: number;
}

export interface Statistics {
  name: string;
  kind: Kind;
  acquisitions: number;
  waits: number;
  timeouts: number;
  losses: number;
  held: Timing;
  waited: Timing;
}

export interface Link {
  waiter: Client;
  name: string;
  kind: Kind;
  holder: Client;
}

export interface Explanation {
  name: string;
  chain: Link[];
  cycles: Link[][];
  text: string;
}

export interface HistoryEntry {
  id: string;
  what: string;
  kind: Kind;
  use: string;
  name: string;
  hold: string;
  detail: string;
  owner: string;
  fence: number | string;
  permits: number;
  at_ms: number;
  waited_us: number;
  held_us: number;
}

export interface LeaderChange {
  what: string;
  id: string;
  host: string;
  pid: number;
  term: number | string;
  at_ms: number;
  position: string;
}

export interface AuditEntry {
  id: string;
  at_ms: number;
  action: string;
  name: string;
  kind: Kind;
  hold: string; // of a job: its id
  fence: number | string;
  owner: string;
  by: string;
  reason: string;
  outcome: string;
}

export interface Health {
  state: 'healthy' | 'degraded' | 'unhealthy';
  server: string;
  findings: { check: string; state: 'healthy' | 'degraded' | 'unhealthy'; found: string; advice: string; took_us: number }[];
}

export interface Session {
  known: boolean;
  wants_token: boolean;
  actions?: boolean;
  server?: string;
}
