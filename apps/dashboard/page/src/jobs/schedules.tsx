// Jobs by the clock: when each schedule is due next, and what it made last.
import { dayTime, now, running, whole } from '../clock';
import { Empty, Name, Ticking } from '../parts/basic';
import { Failure, JobLink, refOf } from './basic';
import { type Schedule, schedules, useLoaded } from './load';
import { useJobsRoute } from './route';

const most = 300;

export function Schedules() {
  const { name } = useJobsRoute();
  const { value, failed } = useLoaded(`schedules ${name}`, () => schedules(name));
  const all = value?.crons ?? [];
  return (
    <div class="scroll">
      <Failure text={failed} />
      {all.length === 0 ? (
        <Empty title={value ? 'There are no schedules' : failed ? '' : 'Loading…'} />
      ) : (
        <section class="card" aria-label="Schedules">
          <div class="table-box">
            <table class="figures wide schedules">
              <thead>
                <tr>
                  <th class="left">Schedule</th>
                  <th class="left">Jobs</th>
                  <th class="left">Type</th>
                  <th class="left">Expression</th>
                  <th class="left">Next run</th>
                  <th class="left">Last run</th>
                  <th class="left">Missed runs</th>
                </tr>
              </thead>
              <tbody>
                {all.slice(0, most).map((of) => (
                  <Row key={`${of.name} ${of.id}`} of={of} />
                ))}
              </tbody>
            </table>
          </div>
          {(value?.total ?? 0) > Math.min(all.length, most) && <p class="muted">and {whole(value!.total - Math.min(all.length, most))} more</p>}
        </section>
      )}
      {(value?.left_out ?? 0) > 0 && <p class="muted">{whole(value!.left_out)} names are left out: too many, or not to be read</p>}
    </div>
  );
}

const due = (ms: number) => (ms <= now() ? 'now' : `in ${running(ms - now())}`);

const Row = ({ of }: { of: Schedule }) => (
  <tr>
    <td class="left">
      <Name text={of.id} />
    </td>
    <td class="left">
      <bdi>{of.name}</bdi>
    </td>
    <td class="left">{of.type}</td>
    <td class="left">
      <code>{of.expression}</code> <span class="muted">{of.zone}</span>
    </td>
    <td class="left">
      {of.paused || of.next_ms === undefined ? (
        <span class="tag paused">paused</span>
      ) : (
        <>
          <span class="num">{dayTime(of.next_ms)}</span> <span class="muted">{<Ticking text={() => due(of.next_ms!)} />}</span>
        </>
      )}
    </td>
    <td class="left">
      {of.last_ms === undefined ? (
        <span class="muted">–</span>
      ) : (
        <>
          <span class="num">{dayTime(of.last_ms)}</span> {of.last_job && <JobLink of={refOf(of, of.last_job)} />}
        </>
      )}
    </td>
    <td class="left">{of.missed}</td>
  </tr>
);
