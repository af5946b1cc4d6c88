// Times are the server's. Ours may be off: what a message says of its own time tells by how much.
let offset = 0; // server - ours, ms
let known = false;

export function heard(serverMs: number): void {
  const seen = serverMs - Date.now();
  // A message can be late, never early: the largest difference is the best one, but let it drift.
  // One that is off by more than a second was wrong from the start, or somebody has set a clock.
  offset = known && Math.abs(seen - offset) < 1000 ? Math.max(seen, offset - 5) : seen;
  known = true;
}
export const now = () => Date.now() + offset;

// Things that show a time, told four times a second. Cheaper than drawing the page again.
type Tick = () => void;
const ticks = new Set<Tick>();
export function onTick(tick: Tick): () => void {
  ticks.add(tick);
  return () => ticks.delete(tick);
}
setInterval(() => {
  if (!document.hidden) for (const tick of ticks) tick();
}, 250);

export function span(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  const value = Math.max(0, ms);
  if (value < 1) return value === 0 ? '0 ms' : `${(value * 1000).toFixed(0)} µs`;
  if (value < 1000) return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  if (value < 3_600_000) return `${Math.floor(value / 60_000)} m ${Math.floor((value % 60_000) / 1000)} s`;
  if (value < 86_400_000) return `${Math.floor(value / 3_600_000)} h ${Math.floor((value % 3_600_000) / 60_000)} m`;
  return `${Math.floor(value / 86_400_000)} d ${Math.floor((value % 86_400_000) / 3_600_000)} h`;
}
// For what runs: no thousandths that nobody can read.
export const running = (ms: number) => (ms < 1000 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : span(ms));
export const micros = (us: number) => span(us / 1000);
export const clockTime = (ms: number) => new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
export const dayTime = (ms: number) => new Date(ms).toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium' });
export const whole = (n: number) => n.toLocaleString('en-US');
