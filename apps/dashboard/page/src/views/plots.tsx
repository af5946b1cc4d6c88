// What happened over time, and which names are fought over.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { statistics } from '../api';
import { micros, whole } from '../clock';
import { thingKey } from '../keys';
import { model, useModel } from '../model';
import { Empty, Kind, Name } from '../parts/basic';
import { Plot } from '../parts/plot';
import { go } from '../route';
import type { Statistics } from '../types';

const orNull = (value: number | undefined) => value ?? null;

export function Plots() {
  useModel();
  const spans = { '5 min': 300, '15 min': 900, '1 hour': 3600 } as const;
  const [range, setRange] = useState<keyof typeof spans>('5 min');
  const samples = useMemo(() => {
    const last = model.samples[model.samples.length - 1];
    return last ? model.samples.filter((one) => one.at_ms > last.at_ms - spans[range] * 1000) : [];
  }, [model.samples.length, model.samples[model.samples.length - 1], range]);
  return (
    <section class="scroll plots" aria-label="Plots">
      <div class="tools">
        <div class="segments" role="group" aria-label="How far back">
          {(Object.keys(spans) as (keyof typeof spans)[]).map((one) => (
            <button key={one} class={one === range ? 'on' : ''} aria-pressed={one === range} onClick={() => setRange(one)}>
              {one}
            </button>
          ))}
        </div>
        <span class="count">sampled every 2 s while somebody looks</span>
      </div>
      <div class="plot-grid">
        <Plot title="Held and waiting" samples={samples} lines={[{ title: 'held', colour: '--accent', of: (s) => s.holds }, { title: 'waiting', colour: '--amber', of: (s) => s.waiting }]} show={whole} />
        <Plot title="Acquired per second" samples={samples} lines={[{ title: 'acquired', colour: '--green', of: (s) => orNull(s.acquired_per_s) }, { title: 'timed out', colour: '--red', of: (s) => orNull(s.timed_out_per_s) }]} show={(n) => n.toFixed(n < 10 ? 1 : 0)} />
        <Plot title="Time to acquire" samples={samples} lines={[{ title: 'average', colour: '--accent', of: (s) => orNull(s.wait_average_us) }, { title: 'p99, all time', colour: '--violet', of: (s) => s.wait_p99_us }]} show={micros} />
        <Plot title="Clients and stale holds" samples={samples} lines={[{ title: 'clients', colour: '--accent', of: (s) => s.clients }, { title: 'stale', colour: '--red', of: (s) => s.stale }]} show={whole} />
      </div>
      <Contention />
    </section>
  );
}

const top = 25;

function Contention() {
  const [all, set] = useState<Statistics[] | null>(null);
  const [failed, setFailed] = useState('');
  useEffect(() => {
    let over = false;
    let timer = 0;
    const load = async () => {
      try {
        if (!document.hidden) {
          const now = await statistics();
          if (over) return;
          set(now.filter((one) => one.name !== ''));
          setFailed('');
        }
      } catch (failure) {
        if (!over) setFailed((failure as Error).message);
      }
      if (!over) timer = window.setTimeout(load, 4000);
    };
    void load();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  const waited = (of: Statistics) => of.waited.average_us * of.waited.count;
  const rows = (all ?? []).filter((of) => of.waits > 0 || of.timeouts > 0).sort((a, b) => waited(b) - waited(a)).slice(0, top);
  const most = Math.max(1, ...rows.map(waited));
  return (
    <section class="card contention">
      <h3>Most time spent waiting</h3>
      {failed && <p class="failure">{failed}</p>}
      {rows.length === 0 ? (
        <Empty title={all ? 'Nobody had to wait yet' : 'Loading…'} />
      ) : (
        <div class="table-box">
          <table class="figures wide">
            <thead>
              <tr>
                <th class="left">Name</th>
                <th>acquired</th>
                <th>waited</th>
                <th>timed out</th>
                <th>average wait</th>
                <th>p99</th>
                <th>max</th>
                <th class="left share">share</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((of) => (
                <tr key={thingKey(of)}>
                  <td class="left">
                    <button class="thing-link" onClick={() => go({ view: 'plots', open: thingKey(of) })}>
                      <Name text={of.name} />
                    </button>{' '}
                    <Kind kind={of.kind} />
                  </td>
                  <td class="num">{whole(of.acquisitions)}</td>
                  <td class="num">{whole(of.waits)}</td>
                  <td class="num">{whole(of.timeouts)}</td>
                  <td class="num">{micros(of.waited.average_us)}</td>
                  <td class="num">{micros(of.waited.p99_us)}</td>
                  <td class="num">{micros(of.waited.max_us)}</td>
                  <td class="left share">
                    <span class="share-bar" style={{ width: `${(waited(of) / most) * 100}%` }} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
