// Where we are among jobs, in the address: #/jobs/STATE/NAME/TYPE, and behind it NAME/ID of the job that is open. Names stand there as they are
// asked for, percent-encoded: keys.ts, asked().
import { useEffect, useState } from 'preact/hooks';

export const states = ['waiting', 'blocked', 'running', 'completed', 'failed', 'cancelled'] as const;
export type JobState = (typeof states)[number];
export type Tab = 'queues' | 'schedules' | 'flow' | JobState;
export interface JobRef {
  name: string;
  id: string;
}
export interface JobsRoute {
  tab: Tab;
  name: string; // only of this queue; empty: of all. With `flow`: the job whose flow it is
  type: string; // with `flow`: its id
  job?: JobRef | undefined;
}

const tabs: readonly string[] = ['queues', 'schedules', 'flow', ...states];
export const decoded = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not UTF-8: as it is
  }
};
// The same name has one form, whoever wrote the address.
const named = (text: string) => {
  try {
    return encodeURIComponent(decodeURIComponent(text));
  } catch {
    return text;
  }
};

export function jobsRoute(): JobsRoute {
  const [view, tab = '', name = '', type = '', of = '', id = ''] = location.hash.replace(/^#\/?/, '').split('/');
  if (view !== 'jobs' || !tabs.includes(tab)) return { tab: 'queues', name: '', type: '' };
  const job = of !== '' && id !== '' ? { name: named(of), id: decoded(id) } : undefined;
  return { tab: tab as Tab, name: named(name), type: decoded(type), job };
}

// The flow of a job, beside which it is shown.
export const flowOf = (job: JobRef): JobsRoute => ({ tab: 'flow', name: job.name, type: job.id, job });

export const jobsHash = (to: JobsRoute) => {
  const parts = [to.tab, to.name, encodeURIComponent(to.type), to.job?.name ?? '', encodeURIComponent(to.job?.id ?? '')];
  return `#/jobs/${parts.join('/').replace(/\/+$/, '')}`;
};
export const goJobs = (change: Partial<JobsRoute>) => {
  location.hash = jobsHash({ ...jobsRoute(), ...change });
};

export function useJobsRoute(): JobsRoute {
  const [at, set] = useState(jobsRoute());
  useEffect(() => {
    const changed = () => set(jobsRoute());
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return at;
}
