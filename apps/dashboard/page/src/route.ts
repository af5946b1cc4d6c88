// Where we are, in the address: #/locks, #/locks/lock:report. So that it can be sent to somebody, and Back goes back.
import { useEffect, useState } from 'preact/hooks';

export const views = ['locks', 'clients', 'graph', 'jobs', 'plots', 'health', 'log'] as const;
export type View = (typeof views)[number];
export interface Route {
  view: View;
  open?: string; // key of what the detail panel shows
}

function parse(hash: string): Route {
  const [view = '', ...rest] = hash.replace(/^#\/?/, '').split('/');
  if (!(views as readonly string[]).includes(view)) return { view: 'locks' };
  if (view === 'jobs') return { view }; // the rest of it: jobs/route.ts
  try {
    const open = decodeURIComponent(rest.join('/'));
    return open ? { view: view as View, open } : { view: view as View };
  } catch {
    return { view: view as View };
  }
}

export const route = () => parse(location.hash);
export const go = (to: Route) => {
  location.hash = `#/${to.view}${to.open ? `/${encodeURIComponent(to.open)}` : ''}`;
};

export function useRoute(): Route {
  const [at, set] = useState(route());
  useEffect(() => {
    const changed = () => set(route());
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return at;
}
