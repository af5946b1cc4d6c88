// What happened over time, and which names are fought over.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { statistics } from '../api';
import { micros, whole } from '../clock';
import { thingKey } from '../keys';
import { model, useModel } from '../model';
import { Empty, Kind, Name } from '../parts/basic';
import { go } from '../route';
import { useTheme } from '../theme';
import type { Sample, Statistics } from '../types';

interface Line {
  title: string;
  colour: string; // a variable of the style sheet
  of: (sample: Sample) => number | null;
}
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

function Plot({ title, samples, lines, show }: { title: string; samples: Sample[]; lines: Line[]; show: (n: number) => string }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const theme = useTheme();
  const data = useMemo<uPlot.AlignedData>(() => [samples.map((s) => s.at_ms / 1000), ...lines.map((line) => samples.map(line.of))], [samples]);

  useLayoutEffect(() => {
    const at = box.current!;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const made = new uPlot(
      {
        width: Math.max(220, at.clientWidth),
        height: 190,
        padding: [8, 8, 0, 0],
        cursor: { points: { size: 6 }, drag: { x: false, y: false } },
        legend: { live: true },
        axes: [
          { ...axis, space: 70, size: 30, values: (_, all) => all.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })) },
          { ...axis, size: 62, values: (_, all) => all.map((n) => (n === null ? '' : show(n))) },
        ],
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.1)] } },
        series: [
          { label: 'at', value: (_, s) => (s === null ? '' : new Date(s * 1000).toLocaleTimeString([], { hour12: false })) },
          ...lines.map((line) => ({
            label: line.title,
            stroke: colour(line.colour),
            width: 1.75,
            fill: `${colour(line.colour)}18`,
            points: { show: false },
            value: (_: uPlot, n: number | null) => (n === null ? '–' : show(n)),
          })),
        ],
      },
      data,
      at,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(220, at.clientWidth), height: 190 }));
    watch.observe(at);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [theme]);
  useEffect(() => plot.current?.setData(data), [data]);

  const last = samples[samples.length - 1];
  return (
    <figure class="plot card">
      <figcaption>
        <span>{title}</span>
        <span class="plot-now">
          {lines.map((line) => {
            const value = last ? line.of(last) : null;
            return (
              <span key={line.title}>
                <i class={`swatch ${line.colour.slice(2)}`} /> {line.title} <b class="num">{value === null ? '–' : show(value)}</b>
              </span>
            );
          })}
        </span>
      </figcaption>
      <div ref={box} class="plot-box" />
    </figure>
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
