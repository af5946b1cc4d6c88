// Where the nodes of a graph are drawn: in columns, those of the wait-for graph by how far they are from those who wait for nobody.
import { thingKey } from './keys';
import { clientLabel, clientPlace } from './parts/basic';
import type { model } from './model';

type Model = typeof model;

interface Placed {
  id: string;
  x: number;
  y: number;
}
export interface Link<N> {
  from: N;
  to: N;
  around: number; // closes a ring: which line below everything it takes; 0: it goes straight
}
export interface Node extends Placed {
  type: 'client' | 'thing' | 'more';
  title: string;
  sub: string;
  kind: string;
  bad: boolean;
}
export interface Edge extends Link<Node> {
  bad: boolean;
  waits: boolean; // otherwise: is held by
}
export interface Drawing<N, E> {
  nodes: N[];
  edges: E[];
  width: number;
  height: number;
  leftOut: number;
}

export const nodeWidth = 168;
export const nodeHeight = 44;
const columnGap = 64;
const rowGap = 16;
const mostThings = 40;
const mostWaiters = 6; // of one thing; the others become one node

export function layOut(model: Model): Drawing<Node, Edge> {
  const bad = new Set<string>();
  for (const ring of model.deadlocks) for (const id of [...ring.clients.map((c) => `c ${c}`), ...ring.things.map((t) => `t ${t}`)]) bad.add(id);

  // The most wanted first, and what is part of a deadlock before all.
  const contended = [...model.waitsOf.entries()].filter(([, waits]) => waits.length > 0);
  contended.sort((a, b) => Number(bad.has(`t ${b[0]}`)) - Number(bad.has(`t ${a[0]}`)) || b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
  const nodes = new Map<string, Node>();
  const edges: Edge[] = [];
  const client = (id: string): Node => {
    const key = `c ${id}`;
    const of = model.client(id);
    let node = nodes.get(key);
    if (!node) nodes.set(key, (node = { id: key, type: 'client', title: clientLabel(of), sub: of.connected ? clientPlace(of) : 'gone', kind: '', bad: bad.has(key), x: 0, y: 0 }));
    return node;
  };
  const join = (from: Node, to: Node, waits: boolean) => edges.push({ from, to, waits, bad: from.bad && to.bad, around: 0 });
  for (const [key, waits] of contended.slice(0, mostThings)) {
    const first = waits[0]!;
    const thing: Node = { id: `t ${thingKey(first)}`, type: 'thing', title: first.name, sub: '', kind: first.kind, bad: bad.has(`t ${key}`), x: 0, y: 0 };
    nodes.set(thing.id, thing);
    const holders = new Set((model.holdsOf.get(key) ?? []).map((hold) => hold.owner));
    for (const owner of [...holders].slice(0, mostWaiters)) join(thing, client(owner), false);
    const waiters = [...new Set(waits.map((wait) => wait.who))].sort((a, b) => Number(bad.has(`c ${b}`)) - Number(bad.has(`c ${a}`)));
    for (const who of waiters.slice(0, mostWaiters)) join(client(who), thing, true);
    if (waiters.length > mostWaiters) {
      const more: Node = { id: `m ${key}`, type: 'more', title: `${waiters.length - mostWaiters} more`, sub: 'wait too', kind: '', bad: false, x: 0, y: 0 };
      nodes.set(more.id, more);
      join(more, thing, true);
    }
  }
  // From processes in rings first: then what closes a ring is that somebody holds, and ends at the far left.
  const all = [...nodes.values()];
  const order = [...all].sort((a, b) => Number(b.bad && b.type === 'client') - Number(a.bad && a.type === 'client'));
  return place(all, edges, Math.max(0, contended.length - mostThings), order);
}

// Columns from left to right, so that edges go to the right, except for those that close a ring.
export function place<N extends Placed, E extends Link<N>>(nodes: N[], edges: E[], leftOut: number, order: N[] = nodes): Drawing<N, E> {
  // Longest way to an end. Rings have none: the edge that closes one is found by walking, and does not count.
  const out = new Map<N, E[]>();
  for (const edge of edges) (out.get(edge.from) ?? out.set(edge.from, []).get(edge.from)!).push(edge);
  const rank = new Map<N, number>();
  const walking = new Set<N>();
  const walk = (node: N): number => {
    const known = rank.get(node);
    if (known !== undefined) return known;
    walking.add(node);
    let most = 0;
    for (const edge of out.get(node) ?? []) if (!walking.has(edge.to)) most = Math.max(most, walk(edge.to) + 1);
    walking.delete(node);
    rank.set(node, most);
    return most;
  };
  for (const node of order) walk(node);
  const last = Math.max(0, ...rank.values());
  const columns: N[][] = Array.from({ length: last + 1 }, () => []);
  for (const node of nodes) columns[last - rank.get(node)!]!.push(node);
  // Beside what they are connected with: a few sweeps of the average place.
  const step = nodeHeight + rowGap;
  columns.forEach((column) => column.forEach((node, i) => (node.y = i * step)));
  const neighbours = new Map<N, N[]>();
  for (const { from, to } of edges) {
    (neighbours.get(from) ?? neighbours.set(from, []).get(from)!).push(to);
    (neighbours.get(to) ?? neighbours.set(to, []).get(to)!).push(from);
  }
  for (let sweep = 0; sweep < 6; sweep += 1) {
    for (const column of columns) {
      const wanted = new Map(column.map((node) => {
        const near = neighbours.get(node) ?? [];
        return [node, near.length > 0 ? near.reduce((sum, one) => sum + one.y, 0) / near.length : node.y];
      }));
      column.sort((a, b) => wanted.get(a)! - wanted.get(b)! || (a.id < b.id ? -1 : 1));
      let free = -Infinity;
      for (const node of column) {
        node.y = Math.max(wanted.get(node)!, free);
        free = node.y + step;
      }
      const shift = column.reduce((sum, node) => sum + node.y - wanted.get(node)!, 0) / Math.max(1, column.length);
      for (const node of column) node.y -= shift;
    }
  }
  const top = Math.min(0, ...nodes.map((node) => node.y));
  columns.forEach((column, c) => column.forEach((node) => {
    node.x = 16 + c * (nodeWidth + columnGap);
    node.y = node.y - top + 16;
  }));
  let lines = 0;
  for (const edge of edges) if (edge.to.x <= edge.from.x) edge.around = lines += 1;
  const margin = lines > 0 ? 36 : 16;
  for (const node of nodes) node.x += margin - 16;
  return {
    nodes,
    edges,
    leftOut,
    width: columns.length * (nodeWidth + columnGap) - columnGap + 2 * margin,
    height: Math.max(120, ...nodes.map((node) => node.y + nodeHeight + 16)) + lines * 12,
  };
}
