// The flow to which a job belongs: who waits for whom, from left to right.
import { useMemo } from 'preact/hooks';
import { type Drawing, type Link, nodeHeight, nodeWidth, place } from '../layout';
import { Empty } from '../parts/basic';
import { Failure, StateTag } from './basic';
import { flow, type FlowJob, useLoaded } from './load';
import { goJobs, type JobRef, states } from './route';

interface Node extends FlowJob {
  x: number;
  y: number;
}

function drawn(jobs: FlowJob[]): Drawing<Node, Link<Node>> {
  const nodes = new Map<string, Node>(jobs.map((one) => [one.id, { ...one, x: 0, y: 0 }]));
  const links: Link<Node>[] = [];
  for (const to of nodes.values()) {
    for (const id of to.parents) {
      const from = nodes.get(id);
      if (from) links.push({ from, to, around: 0 });
    }
  }
  // By their ids: the drawing stays as it is whichever of them is open.
  return place([...nodes.values()].sort((a, b) => (a.id < b.id ? -1 : 1)), links, 0);
}

// `of`: the job whose flow it is; `open`: the one that is shown beside it.
export function Flow({ of, open }: { of: JobRef; open: JobRef | undefined }) {
  if (of.name === '' || of.id === '') return <Empty title="No job is chosen">Open a job of a flow, and draw its flow from there.</Empty>;
  return <FlowOf of={of} open={open?.name === of.name ? open.id : ''} />;
}

function FlowOf({ of, open }: { of: JobRef; open: string }) {
  const { value, failed } = useLoaded(`flow ${of.name} ${of.id}`, () => flow(of));
  const drawing = useMemo(() => (value ? drawn(value.jobs) : null), [value]);
  return (
    <div class="scroll graph flow">
      <Failure text={failed} />
      {!drawing ? (
        <Empty title={failed ? '' : 'Loading…'} />
      ) : (
        <>
          <p class="legend">
            {states.map((state) => (
              <StateTag key={state} state={state} />
            ))}
            {!value!.whole && <span class="muted"> · the {value!.jobs.length} jobs nearest to this one; there are more</span>}
            {value!.jobs.length === 1 && <span class="muted"> · it waits for no other job, and none waits for it</span>}
          </p>
          <div class="graph-box">
            <svg width={drawing.width} height={drawing.height} role="group" aria-label={`Flow of ${drawing.nodes.length} jobs`}>
              <defs>
                <marker id="arrow-flow" class="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
                  <path d="M0 0 8 4 0 8z" />
                </marker>
              </defs>
              {drawing.edges.map((edge) => (
                <EdgeOf key={`${edge.from.id}>${edge.to.id}`} of={edge} />
              ))}
              {drawing.nodes.map((node) => (
                <NodeOf key={node.id} of={node} name={of.name} open={node.id === open} />
              ))}
            </svg>
          </div>
        </>
      )}
    </div>
  );
}

function EdgeOf({ of: { from, to } }: { of: Link<Node> }) {
  const y1 = from.y + nodeHeight / 2;
  const y2 = to.y + nodeHeight / 2;
  const x1 = from.x + nodeWidth;
  const bend = Math.max(24, (to.x - x1) / 2);
  return <path class={`edge ${from.state}`} d={`M${x1} ${y1} C${x1 + bend} ${y1}, ${to.x - bend} ${y2}, ${to.x} ${y2}`} marker-end="url(#arrow-flow)" />;
}

const typeOf = (id: string) => {
  const type = id.slice(0, id.indexOf('/'));
  return type.length > 20 ? `${type.slice(0, 19)}…` : type;
};
// An id ends with what tells it from the others.
const endOf = (id: string) => {
  const number = id.slice(id.indexOf('/') + 1);
  return number.length > 10 ? `…${number.slice(-9)}` : number;
};
const stateOf = (of: FlowJob) => (of.state === 'unknown' ? 'forgotten' : of.state);

function NodeOf({ of, name, open }: { of: Node; name: string; open: boolean }) {
  const choose = () => goJobs({ job: { name, id: of.id } });
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose();
  };
  return (
    <g
      class={`node job ${of.state}${open ? ' open' : ''}`}
      transform={`translate(${of.x} ${of.y})`}
      role="button"
      tabindex={0} // as it is written: names of attributes have their case in an SVG
      aria-label={`${of.id}, ${stateOf(of)}`}
      aria-current={open ? 'true' : undefined}
      onClick={choose}
      onKeyDown={pressed}
    >
      <title>{`${of.id}\n${of.state === 'unknown' ? 'it ended long ago' : of.state}`}</title>
      <rect width={nodeWidth} height={nodeHeight} rx={8} />
      <text class="node-title" x={12} y={19}>
        {typeOf(of.id)}
      </text>
      <text class="node-sub" x={12} y={34}>
        {stateOf(of)} · {endOf(of.id)}
      </text>
    </g>
  );
}
