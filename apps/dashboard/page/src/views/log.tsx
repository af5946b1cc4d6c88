// What was seen to happen since the page was opened, and what people did to holds.
import { useEffect, useState } from 'preact/hooks';
import { audit } from '../api';
import { clockTime, dayTime } from '../clock';
import { type LogEntry, model, useModel } from '../model';
import { refOf } from '../jobs/basic';
import { jobsHash } from '../jobs/route';
import { clientLabel, Empty, Icon, Name, ThingLink } from '../parts/basic';
import type { AuditEntry } from '../types';

const words: Record<LogEntry['what'], string> = {
  acquired: 'acquired', ended: 'ended', stale: 'owner gone', waits: 'waits', joined: 'joined', left: 'left', deadlock: 'deadlock',
};
const shown = 120;

// What had the hold or the job; queues have nobody.
const Owner = ({ of }: { of: AuditEntry }) => {
  const owner = of.kind === 'job' ? of.name : of.owner;
  return owner === '' ? null : (
    <>
      <span class="muted">of</span> <bdi>{owner}</bdi>{' '}
    </>
  );
};

export function Log() {
  useModel();
  const [which, setWhich] = useState<'events' | 'audit'>('events');
  const [search, setSearch] = useState('');
  const [failed, setFailed] = useState('');
  useEffect(() => {
    audit()
      .then((all) => model.set('audit', all))
      .catch((failure: Error) => setFailed(failure.message));
  }, [model.auditAsked]);
  const word = search.toLowerCase();
  const events = model.log.filter((one) => word === '' || `${one.name ?? ''} ${one.what} ${one.who ? clientLabel(one.who) : ''}`.toLowerCase().includes(word)).slice(-shown).reverse();
  const entries = model.audit.filter((one) => word === '' || `${one.name} ${one.hold} ${one.action} ${one.owner} ${one.by} ${one.reason}`.toLowerCase().includes(word));
  return (
    <section class="scroll log" aria-label="Event log">
      <div class="tools">
        <div class="segments" role="group" aria-label="Which">
          <button class={which === 'events' ? 'on' : ''} aria-pressed={which === 'events'} onClick={() => setWhich('events')}>
            events
          </button>
          <button class={which === 'audit' ? 'on' : ''} aria-pressed={which === 'audit'} onClick={() => setWhich('audit')}>
            audit {model.audit.length > 0 && <span class="num">{model.audit.length}</span>}
          </button>
        </div>
        <label class="search">
          <Icon name="search" />
          <input id="search" type="search" placeholder="Search" aria-label="Search" autocomplete="off" spellcheck={false} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          <kbd>/</kbd>
        </label>
      </div>
      {which === 'events' ? (
        events.length === 0 ? (
          <Empty title="Nothing happened yet">What comes and goes while this page is open is listed here. What was before is in the history of a name.</Empty>
        ) : (
          <ul class="events card">
            {events.map((one) => (
              <li key={one.n}>
                <time class="num muted">{clockTime(one.at_ms)}</time>
                <span class={`what ${one.what}`}>{words[one.what]}</span>
                <span class="event-text">
                  {one.who && <bdi>{clientLabel(one.who)}</bdi>} {one.name !== undefined && <ThingLink name={one.name} kind={one.kind ?? ''} />}
                </span>
                <span class="num muted right">{one.detail}</span>
              </li>
            ))}
          </ul>
        )
      ) : entries.length === 0 ? (
        <Empty title={failed || 'Nobody asked for a hold, ended one, or changed a job'} />
      ) : (
        <ul class="events audit card">
          {entries.map((one) => (
            <li key={one.id}>
              <time class="num muted" title={dayTime(one.at_ms)}>
                {clockTime(one.at_ms)}
              </time>
              <span class={`what ${one.action}`}>{one.action}</span>
              <span class="event-text">
                {one.kind === 'job' ? (
                  <a class="thing-link" href={jobsHash({ tab: 'queues', name: '', type: '', job: refOf(one, one.hold) })}>
                    <Name text={one.hold} />
                  </a>
                ) : (
                  <ThingLink name={one.name} kind={one.kind} />
                )}{' '}
                <Owner of={one} />
                <span class="muted">by</span> <bdi>{one.by}</bdi>
                {one.reason && <bdi class="reason">“{one.reason}”</bdi>}
              </span>
              <span class="num muted right">
                {Number(one.fence) === 0 ? one.outcome : `${one.outcome} · fence ${one.fence}`}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
