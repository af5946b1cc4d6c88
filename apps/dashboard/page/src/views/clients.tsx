// The processes: what each holds, and what each waits for.
import { useMemo, useState } from 'preact/hooks';
import { dayTime, whole } from '../clock';
import { model, useModel } from '../model';
import { Avatar, clientLabel, clientPlace, Empty, Icon, Since, ThingLink } from '../parts/basic';
import type { Client, Hold, Wait } from '../types';

const most = 200; // cards at once; the search finds the others

export function Clients() {
  useModel();
  const [search, setSearch] = useState('');
  const { holds, waits } = useMemo(() => {
    const holds = new Map<string, Hold[]>();
    const waits = new Map<string, Wait[]>();
    for (const one of model.holds.values()) (holds.get(one.owner) ?? holds.set(one.owner, []).get(one.owner)!).push(one);
    for (const one of model.waits.values()) (waits.get(one.who) ?? waits.set(one.who, []).get(one.who)!).push(one);
    return { holds, waits };
  }, [model.changes]);
  const rows = useMemo(() => {
    const word = search.toLowerCase().trim();
    const busy = (of: Client) => (holds.get(of.id)?.length ?? 0) + (waits.get(of.id)?.length ?? 0);
    return [...model.clients.values()]
      .filter((of) => word === '' || `${of.name} ${of.host} ${of.pid} ${of.id}`.toLowerCase().includes(word))
      .sort((a, b) => Number(busy(b) > 0) - Number(busy(a) > 0) || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.pid - b.pid));
  }, [holds, waits, search]);
  return (
    <section class="scroll" aria-label="Clients">
      <div class="tools">
        <label class="search">
          <Icon name="search" />
          <input id="search" type="search" placeholder="Search names, hosts, pids" aria-label="Search" autocomplete="off" spellcheck={false} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          <kbd>/</kbd>
        </label>
        <span class="count num" role="status">
          {rows.length > most ? `${most} of ${whole(rows.length)}` : whole(rows.length)}
        </span>
      </div>
      {rows.length === 0 && <Empty title={model.loaded ? 'No client is connected' : 'Loading…'} />}
      <ul class="cards">
        {rows.slice(0, most).map((of) => (
          <li key={of.id} class={`card client ${of.connected ? '' : 'gone'}`}>
            <div class="card-head">
              <Avatar of={of} />
              <div class="holder">
                <bdi class="holder-name">{clientLabel(of)}</bdi>
                <span class="holder-place">{clientPlace(of)}</span>
              </div>
              {of.connected ? (
                of.since_ms > 0 && (
                  <span class="muted right" title={`since ${dayTime(of.since_ms)}${of.version ? `, Lockstep ${of.version}` : ''}`}>
                    <Since ms={of.since_ms} />
                  </span>
                )
              ) : (
                <span class="tag bad">gone</span>
              )}
            </div>
            <Chips title="Holds" all={holds.get(of.id) ?? []} />
            <Chips title="Waits for" all={waits.get(of.id) ?? []} />
            {!holds.has(of.id) && !waits.has(of.id) && <p class="muted">Holds nothing.</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

const Chips = ({ title, all }: { title: string; all: (Hold | Wait)[] }) =>
  all.length === 0 ? null : (
    <div class="chips">
      <span class="chips-title">
        {title} {all.length > 1 && whole(all.length)}
      </span>
      <div>
        {all.slice(0, 8).map((one) => (
          <ThingLink key={one.kind + one.id + one.name} name={one.name} kind={one.kind} />
        ))}
        {all.length > 8 && <span class="muted">+{whole(all.length - 8)}</span>}
      </div>
    </div>
  );
