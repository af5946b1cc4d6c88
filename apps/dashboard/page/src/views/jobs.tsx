// Jobs: their queues, those in each state, their flows and their schedules.
import { whole } from '../clock';
import { queues, useLoaded } from '../jobs/load';
import { Flow } from '../jobs/flow';
import { JobList } from '../jobs/list';
import { Queues } from '../jobs/queues';
import { goJobs, type JobState, jobsHash, states, type Tab, useJobsRoute } from '../jobs/route';
import { Schedules } from '../jobs/schedules';
import { asked } from '../keys';

const others: Tab[] = states.filter((state) => state !== 'running' && state !== 'failed');

export function Jobs() {
  const at = useJobsRoute();
  const all = useLoaded('queues', queues);
  const rows = all.value?.queues ?? [];
  const queue = at.tab === 'flow' ? { name: '', type: '' } : { name: at.name, type: at.type };
  const chosen = queue.name === '' ? '' : `${queue.name}/${queue.type}`;
  const mine = rows.filter((of) => queue.name === '' || (asked(of) === queue.name && of.type === queue.type));
  const count = (state: 'running' | 'failed') => mine.reduce((sum, of) => sum + of[state], 0);
  const tabs: [Tab, string, boolean, number][] = [
    ['queues', 'queues', at.tab === 'queues', 0],
    ['running', 'running', at.tab === 'running', count('running')],
    ['failed', 'failed', at.tab === 'failed', count('failed')],
    ['waiting', 'others', others.includes(at.tab), 0],
    ['schedules', 'schedules', at.tab === 'schedules', 0],
  ];
  if (at.tab === 'flow') tabs.push(['flow', 'flow', true, 0]);
  const choose = (value: string) => {
    const slash = value.indexOf('/');
    goJobs({ name: value.slice(0, Math.max(0, slash)), type: value.slice(slash + 1), job: undefined });
  };
  return (
    <section class="locks jobs" aria-label="Jobs">
      <div class="tools">
        <nav class="segments" aria-label="Which">
          {tabs.map(([tab, title, on, number]) => (
            <a key={title} class={on ? 'on' : ''} aria-current={on ? 'page' : undefined} href={jobsHash(tab === 'flow' ? at : { ...at, ...queue, tab })}>
              <span class="segment-title">{title}</span> {number > 0 && <span class="num">{whole(number)}</span>}
            </a>
          ))}
        </nav>
        {others.includes(at.tab) && (
          <select aria-label="State" value={at.tab} onChange={(event) => goJobs({ tab: event.currentTarget.value as Tab })}>
            {others.map((state) => (
              <option key={state} value={state}>
                {state}
              </option>
            ))}
          </select>
        )}
        {at.tab !== 'flow' && (
          <select aria-label="Queue" value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">Every queue</option>
            {chosen !== '' && mine.length === 0 && <option value={chosen}>{chosen}</option>}
            {rows.map((of) => (
              <option key={`${asked(of)}/${of.type}`} value={`${asked(of)}/${of.type}`}>
                {of.name} · {of.type}
              </option>
            ))}
          </select>
        )}
      </div>
      {at.tab === 'queues' ? (
        <Queues all={all} />
      ) : at.tab === 'schedules' ? (
        <Schedules />
      ) : at.tab === 'flow' ? (
        <Flow of={{ name: at.name, id: at.type }} open={at.job} />
      ) : (
        <JobList state={at.tab as JobState} />
      )}
    </section>
  );
}
