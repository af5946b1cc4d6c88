// Who waits for whom. Rings are deadlocks, unless one of them has other threads that will let go.
import { useMemo } from 'preact/hooks';
import { whole } from '../clock';
import { type Edge, layOut, type Node, nodeHeight, nodeWidth } from '../layout';
import { model, useModel } from '../model';
import { clientLabel, Empty, Icon, kindName } from '../parts/basic';
import { go } from '../route';

const cut = (text: string, most: number) => {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : text;
};

export function Graph() {
  useModel();
  const drawing = useMemo(() => layOut(model), [model.changes]);
  return (
    <section class="scroll graph" aria-label="Wait-for graph">
      {model.deadlocks.map((ring) => (
        <p key={ring.id} class="deadlock" role="alert">
          <Icon name="warn" />
          <span>
            {ring.possible ? 'Possible deadlock' : 'Deadlock'}: {ring.clients.map((id) => `${clientLabel(model.client(id))} (${model.client(id).pid})`).join(', ')} wait for each other over{' '}
            {ring.things.map((key) => key.slice(key.indexOf(':') + 1)).join(', ')}
          </span>
        </p>
      ))}
      {drawing.nodes.length === 0 ? (
        <Empty title={model.loaded ? 'Nobody waits' : 'Loading…'}>When a process waits for what another one holds, both are drawn here.</Empty>
      ) : (
        <>
          <p class="legend">
            <span class="legend-line waits" /> waits for <span class="legend-line holds" /> is held by
            {drawing.leftOut > 0 && <span class="muted"> · {whole(drawing.leftOut)} names with fewer waiters are not drawn</span>}
          </p>
          <div class="graph-box">
            <svg width={drawing.width} height={drawing.height} role="img" aria-label={`${drawing.nodes.length} processes and names, ${model.deadlocks.length} deadlocks`}>
              <defs>
                {['waits', 'holds', 'bad'].map((kind) => (
                  <marker key={kind} id={`arrow-${kind}`} class={`arrow ${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
                    <path d="M0 0 8 4 0 8z" />
                  </marker>
                ))}
              </defs>
              {drawing.edges.map((edge) => (
                <EdgeOf key={`${edge.from.id}>${edge.to.id}`} of={edge} height={drawing.height} />
              ))}
              {drawing.nodes.map((node) => (
                <NodeOf key={node.id} of={node} />
              ))}
            </svg>
          </div>
        </>
      )}
    </section>
  );
}

// Out to the right, below everything to the left, and up again, with round corners.
function wayAround(x1: number, y1: number, x2: number, y2: number, bottom: number): string {
  const r = 8;
  const right = x1 + 18;
  const left = x2 - 18;
  return (
    `M${x1} ${y1} H${right - r} Q${right} ${y1} ${right} ${y1 + r} V${bottom - r} Q${right} ${bottom} ${right - r} ${bottom} ` +
    `H${left + r} Q${left} ${bottom} ${left} ${bottom - r} V${y2 + r} Q${left} ${y2} ${left + r} ${y2} H${x2}`
  );
}

function EdgeOf({ of, height }: { of: Edge; height: number }) {
  const { from, to } = of;
  const y1 = from.y + nodeHeight / 2;
  const y2 = to.y + nodeHeight / 2;
  const x1 = from.x + nodeWidth;
  const x2 = to.x;
  const bend = Math.max(36, Math.abs(x2 - x1) / 2);
  const path = of.around > 0 ? wayAround(x1, y1, x2, y2, height - of.around * 12) : `M${x1} ${y1} C${x1 + bend} ${y1}, ${x2 - bend} ${y2}, ${x2} ${y2}`;
  const kind = of.bad ? 'bad' : of.waits ? 'waits' : 'holds';
  return <path class={`edge ${kind}${of.waits ? ' dashed' : ''}`} d={path} marker-end={`url(#arrow-${kind})`} />;
}

function NodeOf({ of }: { of: Node }) {
  const open = () => {
    if (of.type === 'thing') go({ view: 'graph', open: of.id.slice(2) });
  };
  const opens = of.type === 'thing' ? { role: 'button' as const, tabindex: 0 /* as it is written: names of attributes have their case in an SVG */, onClick: open, onKeyDown: (event: KeyboardEvent) => event.key === 'Enter' && open() } : {};
  return (
    <g class={`node ${of.type}${of.bad ? ' bad' : ''}`} transform={`translate(${of.x} ${of.y})`} {...opens}>
      <title>{`${of.title}\n${of.sub || kindName(of.kind)}`}</title>
      <rect width={nodeWidth} height={nodeHeight} rx={of.type === 'thing' ? nodeHeight / 2 : 8} />
      <text class="node-title" x={of.type === 'thing' ? nodeWidth / 2 : 12} y="19">
        {cut(of.title, 21)}
      </text>
      <text class="node-sub" x={of.type === 'thing' ? nodeWidth / 2 : 12} y="34">
        {cut(of.sub || kindName(of.kind), 25)}
      </text>
    </g>
  );
}
