// Everything about one name, beside the list.
import { useEffect, useRef, useState } from 'preact/hooks';
import * as api from '../api';
import { clockTime, micros, now, whole } from '../clock';
import { ActOnQueue } from '../jobs/act';
import type { PauseDeed } from '../jobs/load';
import { asked, thingKey } from '../keys';
import { model, useModel } from '../model';
import { go, route } from '../route';
import type { Explanation, HistoryEntry, Hold, LeaderChange, Statistics, Thing, Wait } from '../types';
import { Act, type Action } from './act';
import { Avatar, clientLabel, clientPlace, Icon, Kind, Lease, Name, Since } from './basic';
import { Records, Timeline } from './timeline';

interface More {
  statistics: Statistics[];
  why: Explanation | null;
  history: HistoryEntry[] | null; // null: not read
  changes: LeaderChange[]; // of an election
  until: number;
  failed: string;
}
const nothing: More = { statistics: [], why: null, history: null, changes: [], until: 0, failed: '' };
const lookAgain = 2000;

// What is asked for rather than pushed: again every two seconds while it is open and in sight.
function useMore(name: string, kind: string): More {
  const [more, set] = useState<More>(nothing);
  useEffect(() => {
    set(nothing);
    if (!name) return;
    let over = false;
    let timer = 0;
    const load = async () => {
      if (!document.hidden) {
        const [statistics, why, history, changes] = await Promise.allSettled([
          api.statisticsOf(name),
          api.why(name),
          api.history(name),
          kind === 'election' ? api.changes(name) : [],
        ]);
        if (over) return;
        const failed = [statistics, why, history, changes].find((one) => one.status === 'rejected') as PromiseRejectedResult | undefined;
        set({
          statistics: statistics.status === 'fulfilled' ? statistics.value : [],
          why: why.status === 'fulfilled' ? why.value : null,
          history: history.status === 'fulfilled' ? history.value : null,
          changes: changes.status === 'fulfilled' ? changes.value : [],
          until: now(),
          failed: failed ? (failed.reason as Error).message : '',
        });
      }
      timer = window.setTimeout(load, lookAgain);
    };
    void load();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [name, kind]);
  return more;
}

export function Detail({ open }: { open: string }) {
  useModel();
  const known = model.things.get(open);
  const last = useRef<Thing>();
  if (known) last.current = known;
  const of = known ?? (last.current && thingKey(last.current) === open ? last.current : undefined);
  const [acting, setActing] = useState<{ action: Action; hold: Hold } | null>(null);
  const [pausing, setPausing] = useState<PauseDeed | null>(null);
  const [said, setSaid] = useState('');
  useEffect(() => setSaid(''), [open]);
  const close = () => go({ view: route().view });
  const colon = open.indexOf(':');
  const name = of?.name ?? open.slice(colon + 1);
  const kind = of?.kind ?? open.slice(0, colon);
  const more = useMore(asked(of ?? { name }), kind); // what is not there now may have been
  const records = more.history?.filter((one) => one.kind === kind);
  const holds = model.holdsOf.get(open) ?? [];
  const waits = model.waitsOf.get(open) ?? [];
  return (
    <aside class="detail" aria-label={`Details of ${name}`}>
      <header>
        <div class="detail-title">
          <Kind kind={kind} />
          <h2>
            <Name text={of?.type ? `${name} ${of.type}` : name} />
          </h2>
        </div>
        <button class="icon-button" aria-label="Copy the name" title="Copy the name" onClick={() => void navigator.clipboard?.writeText(name)}>
          <Icon name="copy" />
        </button>
        <button class="icon-button" aria-label="Close" title="Close (Esc)" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="detail-body">
        {!known && model.loaded && <p class="note">The server has nothing of this name now.</p>}
        {said && (
          <p class="note" role="status">
            {said}
          </p>
        )}
        <Holders of={of} holds={holds} act={(action, hold) => setActing({ action, hold })} />
        {of?.kind === 'queue' && <Deliveries of={of} act={setPausing} />}
        <QueueOf of={of} waits={waits} />
        <Why of={more.why} />
        <Changes all={more.changes} />
        <Numbers all={more.statistics.filter((one) => one.name !== '' && one.kind === kind)} />
        <section>
          <h3>History</h3>
          {records ? <Timeline records={records} until={more.until} /> : <p class="muted">{more.failed ? 'It could not be read.' : 'Loading…'}</p>}
          {records && records.length > 0 && <Records records={records} />}
        </section>
        {more.failed && <p class="failure">{more.failed}</p>}
      </div>
      {acting && (
        <Act
          action={acting.action}
          of={model.holdsOf.get(open)?.find((hold) => hold.id === acting.hold.id) ?? acting.hold}
          onDone={(text) => {
            setActing(null);
            if (text) setSaid(text);
          }}
        />
      )}
      {pausing && of && (
        <ActOnQueue
          deed={pausing}
          of={{ name: of.name, ...(of.raw ? { raw: of.raw } : {}) }}
          onDone={(text) => {
            setPausing(null);
            if (text) setSaid(text);
          }}
        />
      )}
    </aside>
  );
}

function Holders({ of, holds, act }: { of: Thing | undefined; holds: Hold[]; act: (action: Action, hold: Hold) => void }) {
  const title = of?.kind === 'election' ? 'Led by' : of && of.kind === 'semaphore' && of.count >= 0 ? `Held by · ${of.taken} of ${of.count} permits` : 'Held by';
  return (
    <section>
      <h3>{title}</h3>
      {holds.length === 0 && <p class="muted">Nobody.</p>}
      {holds.slice(0, 50).map((hold) => {
        const owner = model.client(hold.owner);
        return (
          <div key={hold.id} class={`card hold ${hold.stale ? 'stale' : ''}`}>
            <div class="card-head">
              <Avatar of={owner} />
              <div class="holder">
                <bdi class="holder-name">{hold.candidate ?? clientLabel(owner)}</bdi>
                <span class="holder-place">{clientPlace(owner)}</span>
              </div>
              {hold.stale && <span class="tag bad">owner is gone</span>}
              {hold.offered && <span class="tag">offered</span>}
              {hold.use !== 'owner' && <span class="tag">{hold.permits > 1 ? `${hold.permits} ${hold.use}` : hold.use}</span>}
            </div>
            <Lease of={hold} />
            <dl class="facts inline">
              <dt>{hold.kind === 'election' ? 'Term' : 'Fence'}</dt>
              <dd class="num">{hold.fence}</dd>
              <dt>{hold.kind === 'election' ? 'Leads for' : 'Held for'}</dt>
              <dd>
                <Since ms={hold.since_ms} />
              </dd>
            </dl>
            {api.session.actions ? (
              <div class="buttons left">
                {!hold.stale && (
                  <button class="button" onClick={() => act('ask', hold)}>
                    Ask to release
                  </button>
                )}
                {hold.stale ? (
                  <button class="button danger" onClick={() => act('release', hold)}>
                    Release
                  </button>
                ) : (
                  <button class="button danger quiet" onClick={() => act('force', hold)}>
                    Force release
                  </button>
                )}
              </div>
            ) : null}
          </div>
        );
      })}
      {holds.length > 50 && <p class="muted">and {whole(holds.length - 50)} more</p>}
      {holds.length > 0 && !api.session.actions && (
        <p class="hint">
          <Icon name="eye" /> This dashboard only shows. Start it with <code>--allow-actions</code> to ask for holds or to end them.
        </p>
      )}
    </section>
  );
}

function Deliveries({ of, act }: { of: Thing; act: (deed: PauseDeed) => void }) {
  return (
    <section>
      <h3>Deliveries</h3>
      <p>{of.paused ? <span class="tag paused">paused</span> : <span class="muted">Items are delivered.</span>}</p>
      {api.session.actions && (
        <div class="buttons left">
          <button class="button" onClick={() => act(of.paused ? 'resume' : 'pause')}>
            {of.paused ? 'Resume' : 'Pause'}
          </button>
        </div>
      )}
    </section>
  );
}

function QueueOf({ of, waits }: { of: Thing | undefined; waits: Wait[] }) {
  const all = Math.max(of?.queue ?? 0, waits.length);
  if (all === 0) return null;
  return (
    <section>
      <h3>Waiting · {whole(all)}</h3>
      <ol class="waiters">
        {waits.slice(0, 100).map((wait) => {
          const who = model.client(wait.who);
          return (
            <li key={wait.id || wait.who + wait.use}>
              <span class="place num">{wait.position || '·'}</span>
              <Avatar of={who} small />
              <span class="holder">
                <bdi class="holder-name">{clientLabel(who)}</bdi>
                <span class="holder-place">{clientPlace(who)}</span>
              </span>
              {wait.waiters > 1 && <span class="tag">×{wait.waiters}</span>}
              {wait.permits > 1 && <span class="tag">{wait.permits} permits</span>}
              {wait.priority !== undefined && <span class="tag">priority {wait.priority}</span>}
              {(wait.use === 'reader' || wait.use === 'writer') && <span class="tag">{wait.use}</span>}
              <span class="right">
                <Since ms={wait.since_ms} />
              </span>
            </li>
          );
        })}
      </ol>
      {all > waits.length && <p class="muted">and {whole(all - waits.length)} more</p>}
    </section>
  );
}

function Why({ of }: { of: Explanation | null }) {
  if (!of || of.text.trim() === '') return null;
  return (
    <section>
      <h3>Why</h3>
      {of.cycles.map((ring, i) => (
        <p key={i} class="deadlock" role="alert">
          <Icon name="warn" />
          <span>Deadlock, unless one of them has another thread that lets go: {ring.map((link) => clientLabel(link.waiter)).join(' → ')} → {ring[0] ? clientLabel(ring[0].waiter) : ''}</span>
        </p>
      ))}
      <pre class="why">{of.text.trim()}</pre>
    </section>
  );
}

function Changes({ all }: { all: LeaderChange[] }) {
  if (all.length === 0) return null;
  return (
    <section>
      <h3>Changes of the leader</h3>
      <ul class="events card">
        {all.slice(0, 20).map((one) => (
          <li key={one.position}>
            <time class="num muted">{clockTime(one.at_ms)}</time>
            <span class={`what ${one.what}`}>{one.what}</span>
            <span class="event-text">
              <bdi>{one.id}</bdi> <span class="muted">{one.host} {one.pid}</span>
            </span>
            <span class="num muted right">term {one.term}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const Numbers = ({ all }: { all: Statistics[] }) => {
  const of = all[0];
  if (!of) return null;
  const tiles: [string, string][] = [
    ['Acquired', whole(of.acquisitions)],
    ['Had to wait', whole(of.waits)],
    ['Timed out', whole(of.timeouts)],
    ['Lost', whole(of.losses)],
  ];
  const rows: [string, Statistics['held']][] = [
    ['Held', of.held],
    ['Waited', of.waited],
  ];
  return (
    <section>
      <h3>Statistics</h3>
      <div class="tiles">
        {tiles.map(([title, value]) => (
          <div key={title} class={`tile ${title === 'Lost' && of.losses > 0 ? 'bad' : ''}`}>
            <span class="tile-value num">{value}</span>
            <span class="tile-title">{title}</span>
          </div>
        ))}
      </div>
      <table class="figures">
        <thead>
          <tr>
            <th />
            <th>average</th>
            <th>p50</th>
            <th>p95</th>
            <th>p99</th>
            <th>max</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([title, time]) => (
            <tr key={title}>
              <th>{title}</th>
              {[time.average_us, time.p50_us, time.p95_us, time.p99_us, time.max_us].map((us, i) => (
                <td key={i} class="num">
                  {time.count > 0 ? micros(us) : '–'}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};
