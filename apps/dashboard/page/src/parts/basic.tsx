// Small things that every view shows. Names are text, always: nothing here makes markup of what came from outside.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { now, onTick, running } from '../clock';
import { go } from '../route';
import { thingKey } from '../keys';
import type { Client, Hold } from '../types';

const icons = {
  locks: 'M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z',
  clients: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 4.3a3.5 3.5 0 0 1 0 6.4M17.5 14a6.5 6.5 0 0 1 4 6',
  graph: 'M6 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM18 21a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM6 9v4a5 5 0 0 0 5 5h4',
  jobs: 'M9 4h6v3H9zM9 5H5v16h14V5h-4M8.5 14l2.5 2.5 4.5-5',
  plots: 'M4 4v16h16M8 15l3.5-4 3 2.5L20 7',
  health: 'M3 12h4l2.5-6 4.5 12 2.5-6H21',
  log: 'M5 6h14M5 12h14M5 18h9',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  close: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9.3 9.3a2.8 2.8 0 0 1 5.4.9c0 1.8-2.7 2.5-2.7 3.8M12 17.2v.1',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  warn: 'M12 4 2.8 20h18.4ZM12 10v4.5M12 17.2v.1',
  eye: 'M2 12s3.6-7 10-7 10 7 10 7-3.6 7-10 7-10-7-10-7ZM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
};
export type IconName = keyof typeof icons;
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={icons[name]} />
  </svg>
);

const marks: Record<string, string> = {
  lock: 'Lock', recursive: 'Recursive', shared: 'Shared', semaphore: 'Semaphore', event: 'Event', election: 'Election',
  broadcast: 'Broadcast', latch: 'Latch', barrier: 'Barrier', queue: 'Queue', lanes: 'Stealing queue', stream: 'Stream', value: 'Value', map: 'Map',
  counter: 'Counter', board: 'Leaderboard', breaker: 'Breaker', jobs: 'Jobs', bus: 'Bus', sessions: 'Sessions', limiter: 'Limiter',
};
export const kindName = (kind: string) => marks[kind] ?? kind;
export const Kind = ({ kind }: { kind: string }) => <span class={`kind kind-${marks[kind] ? kind : 'other'}`}>{kindName(kind)}</span>;

// In its own direction: a name that is written from right to left must not turn what stands beside it.
export const Name = ({ text }: { text: string }) => (
  <bdi class="name" title={text}>
    {text}
  </bdi>
);

export const clientLabel = (of: Client) => of.name || (of.id ? `client ${of.id.slice(0, 8)}` : 'unknown');
export const clientPlace = (of: Client) => (of.host ? `${of.host} · ${of.pid}` : 'has not said who it is');

function hash(text: string): number {
  let sum = 7;
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) | 0;
  return Math.abs(sum);
}
const initials = (of: Client) => {
  const words = (of.name || of.id).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return ((words.length > 1 ? [...words[0]!][0]! + [...words[1]!][0]! : [...(words[0] ?? '?')].slice(0, 2).join('')) || '?').toUpperCase();
};
export const Avatar = ({ of, small = false, title }: { of: Client; small?: boolean; title?: string }) => (
  <span class={`avatar a${hash(of.id) % 8}${small ? ' small' : ''}${of.connected ? '' : ' gone'}`} title={title ?? `${clientLabel(of)}, ${clientPlace(of)}`} aria-hidden="true">
    {initials(of)}
  </span>
);

// Text that is a function of the time.
export function Ticking({ text, name }: { text: () => string; name?: string }) {
  const at = useRef<HTMLSpanElement>(null);
  const latest = useRef(text);
  latest.current = text;
  useEffect(
    () =>
      onTick(() => {
        const next = latest.current();
        if (at.current && at.current.textContent !== next) at.current.textContent = next;
      }),
    [],
  );
  // Ours to change from here on: a text node of preact's would be its own to change.
  useLayoutEffect(() => {
    const next = text();
    if (at.current && at.current.textContent !== next) at.current.textContent = next;
  });
  return <span ref={at} class={`num ${name ?? ''}`} />;
}
export const Since = ({ ms }: { ms: number | null }) => <Ticking text={() => (ms === null ? '–' : running(now() - ms))} />;

// A lease that runs down, until the next message says that it was renewed. In steps, four a second: an animation of the browser's own
// would draw sixty times a second, for each of them, all day.
export function Lease({ of, label = true }: { of: Hold; label?: boolean }) {
  const fill = useRef<HTMLSpanElement>(null);
  const latest = useRef(of);
  latest.current = of;
  const draw = () => {
    const hold = latest.current;
    const part = Math.max(0, Math.min(1, (hold.ends_at_ms - now()) / (hold.span ?? 1)));
    if (fill.current) fill.current.style.transform = `scaleX(${part.toFixed(3)})`;
  };
  useLayoutEffect(draw);
  useEffect(() => onTick(draw), []);
  const state = of.stale ? 'stale' : of.offered ? 'offered' : '';
  return (
    <span class={`lease ${state}`}>
      <span class="lease-bar" role="progressbar" aria-label="lease" aria-valuetext={of.stale ? 'its owner is gone' : undefined}>
        <span class="lease-fill" ref={fill} />
      </span>
      {label && <Ticking name="lease-text" text={() => running(of.ends_at_ms - now())} />}
    </span>
  );
}

export const ThingLink = ({ name, kind }: { name: string; kind: string }) => (
  <button class="thing-link" onClick={() => go({ view: 'locks', open: thingKey({ kind, name }) })}>
    <Name text={name} />
  </button>
);

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children && <p>{children}</p>}
  </div>
);
