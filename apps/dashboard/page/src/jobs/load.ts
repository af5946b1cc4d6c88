// What the server tells of jobs (job_pages.hpp), asked for again every two seconds while it is in sight, and as soon as somebody did something.
import { useEffect, useState } from 'preact/hooks';
import { post, read } from '../api';
import { model } from '../model';
import type { JobRef, JobState } from './route';

interface Named {
  name: string;
  raw?: string; // percent-encoded, when the name is not UTF-8
}

export interface Queue extends Named {
  type: string;
  waiting: number;
  delayed: number;
  blocked: number;
  running: number;
  completed: number;
  failed: number;
  cancelled: number;
  ever_completed: number;
  ever_failed: number;
  paused: boolean;
  completed_per_s: number | null;
  failed_per_s: number | null;
}

export interface JobSample {
  at_ms: number;
  waiting: number;
  running: number;
  completed_per_s: number | null;
  failed_per_s: number | null;
}

interface AnyJob extends Named {
  id: string;
  type: string;
  state: JobState;
  created_ms: number;
  since_ms: number;
  attempts: number;
  payload: string;
  payload_bytes: number;
  worker?: string;
  progress?: string;
  delayed_until_ms?: number;
  linked: boolean; // to others, in a flow
}
export interface ListedJob extends AnyJob {
  tries: number;
  reason?: string;
}
export interface Job extends AnyJob {
  failures: { when_ms: number; delivery: number; worker: string; reason: string }[];
  tags?: string[];
  parents?: string[];
  parents_total: number;
  result?: string;
  result_bytes?: number;
  cron?: string;
  due_ms?: number;
}

export interface FlowJob {
  id: string;
  state: JobState | 'unknown';
  since_ms: number;
  parents: string[];
}

export interface Schedule extends Named {
  id: string;
  type: string;
  expression: string;
  zone: string;
  missed: string;
  paused: boolean;
  payload: string;
  next_ms?: number;
  last_ms?: number;
  last_job?: string;
}

// Names come percent-encoded: keys.ts, asked().
export const queues = () => read<{ queues: Queue[]; left_out: number }>('/api/jobs');
export const samples = (name: string, type: string) => read<JobSample[]>(`/api/jobs/samples?name=${name}&type=${type}`);
export const list = (state: JobState, name: string, type: string, from: number, count: number) =>
  read<{ jobs: ListedJob[]; total: number }>(`/api/jobs/list?state=${state}&name=${name}&type=${type}&from=${from}&count=${count}`);
export const job = (of: JobRef) => read<Job>(`/api/jobs/job?name=${of.name}&id=${encodeURIComponent(of.id)}`);
export const flow = (of: JobRef) => read<{ jobs: FlowJob[]; whole: boolean }>(`/api/jobs/flow?name=${of.name}&id=${encodeURIComponent(of.id)}`);
export const schedules = (name: string) => read<{ crons: Schedule[]; total: number; left_out: number }>(`/api/jobs/crons?name=${name}`);

export interface JobOrder extends Named {
  id: string;
  state: JobState;
  reason: string;
}
export type PauseDeed = 'pause' | 'resume';
export type QueueDeed = PauseDeed | 'retry-all' | 'cancel-all';
export interface QueueOrder extends Named {
  type: string;
  state?: JobState; // of the jobs that are meant
  reason: string;
}
export const actOnQueue = (deed: QueueDeed, order: QueueOrder) => post<{ done: boolean; count: number }>(`/api/jobs/${deed}`, order);
// Of a queue that is not one of jobs.
export const pauseQueue = (deed: PauseDeed, order: Named & { reason: string }) => post<{ done: boolean }>(`/api/queues/${deed}`, order);
export const retry = (order: JobOrder) => post<{ done: boolean }>('/api/jobs/retry', order);
export const cancel = (order: JobOrder) => post<{ done: boolean }>('/api/jobs/cancel', order);

export interface Loaded<T> {
  value: T | null;
  failed: string;
}
const lookAgain = 2000;

// `key` says what is loaded: when it is another, what was there is not shown any more.
export function useLoaded<T>(key: string, load: () => Promise<T>): Loaded<T> {
  const [state, set] = useState<Loaded<T> & { key: string }>({ key, value: null, failed: '' });
  const [acted, setActed] = useState(model.auditAsked);
  useEffect(() => model.subscribe(() => setActed(model.auditAsked)), []);
  useEffect(() => {
    let over = false;
    let timer = 0;
    const again = async () => {
      if (!document.hidden) {
        try {
          const value = await load();
          if (!over) set({ key, value, failed: '' });
        } catch (failure) {
          if (!over) set((before) => ({ key, value: before.key === key ? before.value : null, failed: (failure as Error).message }));
        }
      }
      if (!over) timer = window.setTimeout(again, lookAgain);
    };
    void again();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [key, acted]);
  return state.key === key ? state : { value: null, failed: '' };
}
