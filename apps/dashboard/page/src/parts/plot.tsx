// Lines over time, with the last value of each beside the title.
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { useTheme } from '../theme';

export interface Line<S> {
  title: string;
  colour: string; // a variable of the style sheet
  of: (sample: S) => number | null;
}

export function Plot<S extends { at_ms: number }>({ title, samples, lines, show }: { title: string; samples: S[]; lines: Line<S>[]; show: (n: number) => string }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const theme = useTheme();
  const data = useMemo<uPlot.AlignedData>(() => [samples.map((s) => s.at_ms / 1000), ...lines.map((line) => samples.map(line.of))], [samples]);

  useLayoutEffect(() => {
    const at = box.current!;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const made = new uPlot(
      {
        width: Math.max(220, at.clientWidth),
        height: 190,
        padding: [8, 8, 0, 0],
        cursor: { points: { size: 6 }, drag: { x: false, y: false } },
        legend: { live: true },
        axes: [
          { ...axis, space: 70, size: 30, values: (_, all) => all.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })) },
          { ...axis, size: 62, values: (_, all) => all.map((n) => (n === null ? '' : show(n))) },
        ],
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.1)] } },
        series: [
          { label: 'at', value: (_, s) => (s === null ? '' : new Date(s * 1000).toLocaleTimeString([], { hour12: false })) },
          ...lines.map((line) => ({
            label: line.title,
            stroke: colour(line.colour),
            width: 1.75,
            fill: `${colour(line.colour)}18`,
            points: { show: false },
            value: (_: uPlot, n: number | null) => (n === null ? '–' : show(n)),
          })),
        ],
      },
      data,
      at,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(220, at.clientWidth), height: 190 }));
    watch.observe(at);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [theme]);
  useEffect(() => plot.current?.setData(data), [data]);

  const last = samples[samples.length - 1];
  return (
    <figure class="plot card">
      <figcaption>
        <span>{title}</span>
        <span class="plot-now">
          {lines.map((line) => {
            const value = last ? line.of(last) : null;
            return (
              <span key={line.title}>
                <i class={`swatch ${line.colour.slice(2)}`} /> {line.title} <b class="num">{value === null ? '–' : show(value)}</b>
              </span>
            );
          })}
        </span>
      </figcaption>
      <div ref={box} class="plot-box" />
    </figure>
  );
}
