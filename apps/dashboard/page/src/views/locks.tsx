// Every name there is: who has it, how long yet, who waits.
import { useMemo, useRef, useState } from 'preact/hooks';
import { now, running, whole } from '../clock';
import { thingKey } from '../keys';
import { model, useModel } from '../model';
import { Avatar, clientLabel, clientPlace, Empty, Icon, Kind, kindName, Lease, Name, Ticking } from '../parts/basic';
import { VirtualList } from '../parts/virtual';
import { go, route } from '../route';
import { useNarrow } from '../theme';
import type { Hold, Thing, Wait } from '../types';

type Filter = 'all' | 'held' | 'waiting' | 'stale' | 'free';
type Order = 'name' | 'queue' | 'lease' | 'wait';
const filters: Filter[] = ['all', 'held', 'waiting', 'stale', 'free'];
const none: never[] = [];

const holdsOf = (of: Thing): Hold[] => model.holdsOf.get(thingKey(of)) ?? none;
const waitsOf = (of: Thing): Wait[] => model.waitsOf.get(thingKey(of)) ?? none;
const queueOf = (of: Thing) => Math.max(of.queue, waitsOf(of).length);
const longest = (of: Thing) => waitsOf(of).reduce<number | null>((first, wait) => (wait.since_ms !== null && (first === null || wait.since_ms < first) ? wait.since_ms : first), null);

function fits(of: Thing, filter: Filter): boolean {
  switch (filter) {
    case 'held': return of.holders > 0;
    case 'waiting': return queueOf(of) > 0;
    case 'stale': return holdsOf(of).some((hold) => hold.stale);
    case 'free': return of.holders === 0;
    default: return true;
  }
}

// Words in any order, in the name, its kind, and who has it or waits for it.
function matcher(search: string): (of: Thing) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = new Map<string, string>(); // of clients: many holds have the same
  const clientText = (id: string) => {
    let text = texts.get(id);
    if (text === undefined) {
      const of = model.client(id);
      texts.set(id, (text = ` ${of.name} ${of.host} ${of.pid}`.toLowerCase()));
    }
    return text;
  };
  return (of) => {
    let text = lowered(of);
    if (words.every((word) => text.includes(word))) return true;
    for (const hold of holdsOf(of)) text += `${clientText(hold.owner)} ${hold.fence}`;
    for (const wait of waitsOf(of)) text += clientText(wait.who);
    return words.every((word) => text.includes(word));
  };
}
const lowerings = new WeakMap<Thing, string>();
function lowered(of: Thing): string {
  let text = lowerings.get(of);
  if (text === undefined) lowerings.set(of, (text = `${of.name} ${of.kind} ${of.type ?? ''}`.toLowerCase()));
  return text;
}

const byName = (a: Thing, b: Thing) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : (a.type ?? '') < (b.type ?? '') ? -1 : 1);
const orders: Record<Order, (a: Thing, b: Thing) => number> = {
  name: byName,
  queue: (a, b) => queueOf(b) - queueOf(a) || byName(a, b),
  lease: (a, b) => ends(a) - ends(b) || byName(a, b),
  wait: (a, b) => (longest(a) ?? Infinity) - (longest(b) ?? Infinity) || byName(a, b),
};
const ends = (of: Thing) => holdsOf(of).reduce((first, hold) => Math.min(first, hold.ends_at_ms), Infinity);

export function Locks() {
  useModel();
  const narrow = useNarrow();
  const [search, setSearch] = useState('');
  const [filter, setFilter] = useState<Filter>('all');
  const [kind, setKind] = useState('');
  const [order, setOrder] = useState<Order>('name');
  const [at, setAt] = useState(''); // key of what is selected
  const field = useRef<HTMLInputElement>(null);

  const kinds = useMemo(() => [...new Set([...model.things.values()].map((of) => of.kind))].sort(), [model.changes]);
  // In order first: while somebody types only the filter runs again.
  const ordered = useMemo(() => [...model.things.values()].sort(orders[order]), [model.changes, order]);
  const rows = useMemo(() => {
    if (search === '' && filter === 'all' && kind === '') return ordered;
    const found = matcher(search);
    return ordered.filter((of) => (!kind || of.kind === kind) && fits(of, filter) && found(of));
  }, [ordered, search, filter, kind]);
  const chosen = at === '' ? undefined : model.things.get(at);
  const selected = chosen ? rows.indexOf(chosen) : -1;
  const open = (of: Thing) => {
    setAt(thingKey(of));
    go({ view: 'locks', open: thingKey(of) });
  };
  const move = (to: number) => {
    const of = rows[to];
    if (!of) return;
    setAt(thingKey(of));
    if (route().open) go({ view: 'locks', open: thingKey(of) }); // the panel follows
  };

  return (
    <section class="locks" aria-label="Locks">
      <div class="tools">
        <label class="search">
          <Icon name="search" />
          <input
            ref={field}
            id="search"
            type="search"
            placeholder="Search names, holders, hosts"
            aria-label="Search"
            autocomplete="off"
            spellcheck={false}
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'ArrowDown' || event.key === 'Enter') {
                event.preventDefault();
                move(0);
                document.querySelector<HTMLElement>('.virtual')?.focus();
              }
            }}
          />
          <kbd>/</kbd>
        </label>
        <div class="segments" role="group" aria-label="Which">
          {filters.map((one) => (
            <button key={one} class={one === filter ? 'on' : ''} aria-pressed={one === filter} onClick={() => setFilter(one)}>
              {one}
            </button>
          ))}
        </div>
        <select aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">Every kind</option>
          {kinds.map((one) => (
            <option key={one} value={one}>
              {kindName(one)}
            </option>
          ))}
        </select>
        <select aria-label="Order" value={order} onChange={(event) => setOrder(event.currentTarget.value as Order)}>
          <option value="name">By name</option>
          <option value="queue">Longest queue</option>
          <option value="wait">Longest wait</option>
          <option value="lease">Ends first</option>
        </select>
        <span class="count num" role="status">
          {rows.length === model.things.size ? whole(rows.length) : `${whole(rows.length)} of ${whole(model.things.size)}`}
          {model.leftOut > 0 && ` (${whole(model.leftOut)} more are not shown)`}
        </span>
      </div>
      {!narrow && (
        <div class="columns" aria-hidden="true">
          <span>Name</span>
          <span>Held by</span>
          <span>Lease</span>
          <span>Queue</span>
          <span class="right">Longest wait</span>
        </div>
      )}
      {rows.length > 0 ? (
        <VirtualList rows={rows} height={narrow ? 84 : 52} label="Locks" selected={selected} onMove={move} onOpen={open} draw={(of) => <Row of={of} />} />
      ) : (
        <Nothing searched={search !== '' || filter !== 'all' || kind !== ''} />
      )}
    </section>
  );
}

const Nothing = ({ searched }: { searched: boolean }) =>
  !model.loaded ? (
    <Empty title="Loading…" />
  ) : searched ? (
    <Empty title="Nothing fits">Change the search or the filter.</Empty>
  ) : (
    <Empty title="Nothing is held">As soon as a program takes a lock with this prefix, it is here.</Empty>
  );

function Row({ of }: { of: Thing }) {
  const holds = holdsOf(of);
  const waits = waitsOf(of);
  const first = holds.reduce<Hold | undefined>((a, b) => (!a || b.ends_at_ms < a.ends_at_ms ? b : a), undefined);
  const state = holds.some((hold) => hold.stale) ? 'stale' : holds.length > 0 ? 'held' : 'free';
  const since = longest(of);
  return (
    <>
      <span class="cell-name">
        <span class={`dot ${state}`} title={state} />
        <Name text={of.name} />
        <Kind kind={of.kind} />
      </span>
      <span class="cell-holders">
        <Holders of={of} holds={holds} />
      </span>
      <span class="cell-lease">{first ? <Lease of={first} /> : <span class="muted">{measure(of)}</span>}</span>
      <span class="cell-queue">
        <Queue of={of} waits={waits} />
      </span>
      <span class="cell-wait right">{since !== null ? <Ticking text={() => running(now() - since)} /> : <span class="muted">–</span>}</span>
    </>
  );
}

// Of the group that is furthest behind: the others have not more to wait for.
const behind = (of: Thing) => {
  const groups = of.groups ?? [];
  if (groups.length === 0) return '';
  const lags = groups.flatMap((one) => (one.lag === null ? [] : [one.lag]));
  const most = lags.length > 0 ? Math.max(...lags) : '?';
  return `, ${groups.length === 1 ? groups[0]!.name : `${groups.length} groups`}: ${most} behind, ${of.taken} pending`;
};

const counted = (count: number, what: string) => `${whole(count)} ${what}${count === 1 ? '' : 's'}`;
const paused = (of: Thing) => (of.paused ? ', paused' : '');
const jobs = (of: Thing) => {
  const more = [[of.delayed, 'delayed'], [of.blocked, 'blocked'], [of.dead, 'failed']].map(([count, what]) => (count ? `, ${count} ${what}` : ''));
  return `${of.type}: ${of.count - (of.delayed ?? 0)} waiting, ${of.taken} running${more.join('')}${paused(of)}`;
};
const bus = (of: Thing) => `${of.groups?.length === 1 ? of.groups[0]!.name : counted(of.count, 'channel')}: ${counted(of.taken, 'subscriber')}`;

// What those say that nobody holds.
const measure = (of: Thing) => {
  const dead = of.dead ? `, ${of.dead} dead` : '';
  if (of.kind === 'latch') return of.count < 0 ? 'not created' : `${of.count} to go`;
  if (of.kind === 'barrier') return of.count < 0 ? 'not created' : `${of.taken} of ${of.count} arrived`;
  if (of.kind === 'broadcast') return of.taken > 0 ? 'set' : 'not set';
  if (of.kind === 'event') return `${of.count} stored`;
  if (of.kind === 'queue' || of.kind === 'lanes') return `${of.count} waiting, ${of.taken} held${dead}${paused(of)}`;
  if (of.kind === 'stream') return `${of.count} in it${behind(of)}${dead}`;
  if (of.kind === 'jobs') return jobs(of);
  if (of.kind === 'bus') return bus(of);
  if ((of.kind === 'sessions' || of.kind === 'limiter') && of.count < 0) return 'used lately';
  if (of.kind === 'sessions') return counted(of.count, 'session');
  if (of.kind === 'limiter') return counted(of.count, 'key');
  if (of.kind === 'map' || of.kind === 'board') return `${of.count} in it`;
  if (of.kind === 'value') return of.count > 0 ? 'set' : 'not set';
  if (of.kind === 'counter') return `${of.count}`;
  if (of.kind === 'breaker') return ['closed', 'half open', 'open'][of.taken] ?? '';
  return 'free';
};

function Holders({ of, holds }: { of: Thing; holds: Hold[] }) {
  if (holds.length === 0) return <span class="muted">{of.kind === 'semaphore' && of.count >= 0 ? `0 of ${of.count}` : '–'}</span>;
  const first = model.client(holds[0]!.owner);
  return (
    <>
      <span class="stack">
        {holds.slice(0, 4).map((hold) => (
          <Avatar key={hold.id} of={model.client(hold.owner)} small />
        ))}
      </span>
      {holds.length === 1 ? (
        <span class="holder">
          <bdi class="holder-name">{clientLabel(first)}</bdi>
          <span class="holder-place">{holds[0]!.offered ? 'offered' : clientPlace(first)}</span>
        </span>
      ) : (
        <span class="num">{of.kind === 'semaphore' && of.count >= 0 ? `${of.taken} of ${of.count}` : `${holds.length} holders`}</span>
      )}
      {holds.length === 1 && of.kind === 'semaphore' && of.count >= 0 && <span class="num muted">{`${of.taken}/${of.count}`}</span>}
    </>
  );
}

function Queue({ of, waits }: { of: Thing; waits: Wait[] }) {
  const all = queueOf(of);
  if (all === 0) return <span class="muted">–</span>;
  const shown = waits.slice(0, 6);
  return (
    <span class="queue" aria-label={`${all} waiting`}>
      <span class="stack">
        {shown.map((wait) => (
          <Avatar key={wait.id || wait.who} of={model.client(wait.who)} small />
        ))}
      </span>
      {all > shown.length ? <span class="num muted">+{whole(all - shown.length)}</span> : <span class="num muted">{all}</span>}
    </span>
  );
}
