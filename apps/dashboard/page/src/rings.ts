// Clients each of which waits for what the next one holds: strongly connected parts of the wait-for graph (Tarjan's, without recursion).
import { thingKey } from './keys';
import type { Hold, Wait } from './types';

export interface Ring {
  id: string;
  clients: string[];
  things: string[]; // keys of what they wait for
  possible: boolean; // one of them has several holders: another may let go first
}

export function rings(holdsOf: Map<string, Hold[]>, waits: Iterable<Wait>): Ring[] {
  const next = new Map<string, Map<string, Set<string>>>(); // waiter -> holder -> keys
  for (const wait of waits) {
    const key = thingKey(wait);
    for (const hold of holdsOf.get(key) ?? []) {
      if (hold.owner === wait.who) continue; // other threads of the same process: not ours to judge
      let to = next.get(wait.who);
      if (!to) next.set(wait.who, (to = new Map()));
      const keys = to.get(hold.owner) ?? new Set();
      to.set(hold.owner, keys.add(key));
    }
  }
  const found: Ring[] = [];
  for (const part of components(next)) {
    if (part.length < 2) continue;
    const inside = new Set(part);
    const things = new Set<string>();
    for (const one of part) for (const [to, keys] of next.get(one) ?? []) if (inside.has(to)) for (const key of keys) things.add(key);
    const clients = [...part].sort();
    const possible = [...things].some((key) => key.startsWith('semaphore:') || (holdsOf.get(key)?.length ?? 0) > 1);
    found.push({ id: clients.join(' '), clients, things: [...things], possible });
  }
  return found;
}

function components(next: Map<string, Map<string, unknown>>): string[][] {
  const number = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const all: string[][] = [];
  for (const root of next.keys()) {
    if (number.has(root)) continue;
    const work: { at: string; rest: string[] }[] = [];
    const enter = (at: string) => {
      number.set(at, number.size);
      low.set(at, number.get(at)!);
      stack.push(at);
      onStack.add(at);
      work.push({ at, rest: [...(next.get(at)?.keys() ?? [])] });
    };
    enter(root);
    while (work.length > 0) {
      const { at, rest } = work[work.length - 1]!;
      const to = rest.pop();
      if (to !== undefined) {
        if (!number.has(to)) enter(to);
        else if (onStack.has(to)) low.set(at, Math.min(low.get(at)!, number.get(to)!));
        continue;
      }
      work.pop();
      const parent = work[work.length - 1];
      if (parent) low.set(parent.at, Math.min(low.get(parent.at)!, low.get(at)!));
      if (low.get(at) !== number.get(at)) continue;
      const part: string[] = [];
      for (let one = ''; one !== at; ) {
        one = stack.pop()!;
        onStack.delete(one);
        part.push(one);
      }
      all.push(part);
    }
  }
  return all;
}
