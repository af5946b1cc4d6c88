// Dark or light: as the system has it, unless somebody chose.
import { useEffect, useState } from 'preact/hooks';

const dark = window.matchMedia('(prefers-color-scheme: dark)');
const chosen = (): string | null => {
  try {
    return localStorage.getItem('lockstep-theme');
  } catch {
    return null; // storage may be forbidden
  }
};
export const theme = () => chosen() ?? (dark.matches ? 'dark' : 'light');
const listeners = new Set<() => void>();

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme();
  for (const listener of listeners) listener();
}
export function toggleTheme(): void {
  const next = theme() === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('lockstep-theme', next);
  } catch {
    document.documentElement.dataset['theme'] = next;
  }
  applyTheme();
}
dark.addEventListener('change', applyTheme);

export function useTheme(): string {
  const [at, set] = useState(theme());
  useEffect(() => {
    const changed = () => set(theme());
    listeners.add(changed);
    return () => {
      listeners.delete(changed);
    };
  }, []);
  return at;
}

const narrow = window.matchMedia('(max-width: 760px)');
export function useNarrow(): boolean {
  const [is, set] = useState(narrow.matches);
  useEffect(() => {
    const changed = () => set(narrow.matches);
    narrow.addEventListener('change', changed);
    return () => narrow.removeEventListener('change', changed);
  }, []);
  return is;
}
