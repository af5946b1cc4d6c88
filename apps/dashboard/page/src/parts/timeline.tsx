// Who held a name when, drawn: a lane for each owner, a bar for each hold, a thin line while it waited.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clockTime, micros, span } from '../clock';
import type { HistoryEntry } from '../types';

interface Bar {
  owner: string;
  waited: number; // when it began to wait, ms
  from: number;
  to: number;
  end: 'released' | 'lost' | 'open';
  fence: string;
}

export function barsOf(records: HistoryEntry[], until: number): Bar[] {
  const open = new Map<string, Bar>();
  const bars: Bar[] = [];
  for (const one of records) {
    if (one.what === 'acquired') {
      if (one.use === 'owner' || one.use === 'writer') {
        // It has it alone: whoever still seemed to hold it died without a word. A record that comes late says better.
        for (const old of open.values()) {
          if (old.end !== 'open' || BigInt(old.fence) >= BigInt(one.fence)) continue;
          old.to = one.at_ms;
          old.end = 'lost';
        }
      }
      const bar: Bar = { owner: one.owner, waited: one.at_ms - one.waited_us / 1000, from: one.at_ms, to: until, end: 'open', fence: String(one.fence) };
      open.set(one.hold, bar);
      bars.push(bar);
    } else if (one.what === 'released' || one.what === 'lost') {
      const bar = open.get(one.hold);
      open.delete(one.hold);
      if (bar) {
        bar.to = one.at_ms;
        bar.end = one.what;
      } else {
        const from = one.at_ms - one.held_us / 1000;
        bars.push({ owner: one.owner, waited: from, from, to: one.at_ms, end: one.what, fence: String(one.fence) });
      }
    }
  }
  return bars;
}

const lane = 26;
const mostLanes = 12;
const mostBars = 400;

export function Timeline({ records, until }: { records: HistoryEntry[]; until: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(380);
  useLayoutEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry!.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);

  const bars = barsOf(records, until).slice(-mostBars);
  if (bars.length === 0) return <div ref={box} class="muted">Nothing was recorded. Programs record with client_options::record.</div>;
  const owners = [...new Set(bars.map((bar) => bar.owner))].slice(-mostLanes);
  const begin = Math.min(...bars.map((bar) => bar.waited));
  const end = Math.max(...bars.map((bar) => bar.to), begin + 1);
  const x = (ms: number) => ((ms - begin) / (end - begin)) * (width - 2) + 1;
  const height = owners.length * lane + 22;
  return (
    <div ref={box} class="timeline">
      <svg width={width} height={height} role="img" aria-label={`${bars.length} holds by ${owners.length} owners in ${span(end - begin)}`}>
        {owners.map((owner, i) => (
          <g key={owner}>
            <line class="lane" x1="0" x2={width} y1={i * lane + 21} y2={i * lane + 21} />
            <text class="lane-name" x="2" y={i * lane + 9}>
              {owner || 'unknown'}
            </text>
          </g>
        ))}
        {bars.map((bar, i) => {
          const at = owners.indexOf(bar.owner);
          if (at < 0) return null;
          return (
            <g key={i}>
              <title>{`${bar.owner}\nfence ${bar.fence}\nheld ${span(bar.to - bar.from)} from ${clockTime(bar.from)}${bar.from - bar.waited > 1 ? `\nwaited ${span(bar.from - bar.waited)}` : ''}`}</title>
              <line class="bar-wait" x1={x(bar.waited)} x2={x(bar.from)} y1={at * lane + 17} y2={at * lane + 17} />
              <rect class={`bar-hold ${bar.end}`} x={x(bar.from)} y={at * lane + 13} width={Math.max(2, x(bar.to) - x(bar.from))} height="8" rx="2" />
            </g>
          );
        })}
        <text class="axis" x="0" y={height - 4}>
          {clockTime(begin)}
        </text>
        <text class="axis end" x={width} y={height - 4}>
          {clockTime(end)}
        </text>
      </svg>
    </div>
  );
}

const lastShown = 30;
export const Records = ({ records }: { records: HistoryEntry[] }) => (
  <table class="records">
    <tbody>
      {records
        .slice(-lastShown)
        .reverse()
        .map((one) => (
          <tr key={one.id}>
            <td class="num muted">{clockTime(one.at_ms)}</td>
            <td>
              <span class={`what ${one.what}`}>{one.what}</span>
            </td>
            <td class="grow">
              <bdi>{one.owner}</bdi>
            </td>
            <td class="num muted right">{one.what === 'acquired' ? (one.waited_us > 0 ? `waited ${micros(one.waited_us)}` : '') : one.held_us > 0 ? `held ${micros(one.held_us)}` : one.detail}</td>
          </tr>
        ))}
    </tbody>
  </table>
);
