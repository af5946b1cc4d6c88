// A list of which only what can be seen is drawn: rows of one height, placed by their number.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props<T> {
  rows: T[];
  height: number;
  label: string;
  selected: number; // -1: none
  onMove: (to: number) => void;
  onOpen: (row: T) => void;
  draw: (row: T) => ComponentChildren;
}

const around = 4;
const pool = 256; // rows that leave at one end are used again at the other: changing one costs less than making one

export function VirtualList<T>({ rows, height, label, selected, onMove, onOpen, draw }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(800);

  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return;
    const measure = () => setSeen(at.clientHeight);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(at);
    return () => watch.disconnect();
  }, []);

  // What is selected is in sight.
  useEffect(() => {
    const at = box.current;
    if (!at || selected < 0) return;
    const from = selected * height;
    if (from < at.scrollTop) at.scrollTop = from;
    else if (from + height > at.scrollTop + at.clientHeight) at.scrollTop = from + height - at.clientHeight;
  }, [selected, height]);

  const first = Math.max(0, Math.floor(top / height) - around);
  const last = Math.min(rows.length, Math.ceil((top + seen) / height) + around);
  const shown = rows.slice(first, last);
  const page = Math.max(1, Math.floor(seen / height) - 1);

  const onKeyDown = (event: KeyboardEvent) => {
    const to: Record<string, number> = {
      ArrowDown: selected + 1, ArrowUp: selected - 1, PageDown: selected + page, PageUp: selected - page, Home: 0, End: rows.length - 1,
    };
    if (event.key in to) {
      event.preventDefault();
      onMove(Math.max(0, Math.min(rows.length - 1, to[event.key]!)));
    } else if (event.key === 'Enter' && rows[selected] !== undefined) {
      event.preventDefault();
      onOpen(rows[selected]!);
    }
  };

  return (
    <div
      class="virtual"
      ref={box}
      role="listbox"
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={selected >= first && selected < last && rows[selected] !== undefined ? `row-${selected}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div class="virtual-all" style={{ height: `${rows.length * height}px` }}>
        <div class="virtual-shown" style={{ transform: `translateY(${first * height}px)` }}>
          {shown.map((row, i) => (
            <div
              key={(first + i) % pool}
              id={`row-${first + i}`}
              role="option"
              aria-selected={first + i === selected}
              aria-setsize={rows.length}
              aria-posinset={first + i + 1}
              class={`row${first + i === selected ? ' selected' : ''}`}
              style={{ height: `${height}px` }}
              onClick={() => onOpen(row)}
            >
              {draw(row)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
