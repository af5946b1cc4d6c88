// Who this tab is to the server: the id of a session, sent in a header. Kept per tab and per origin, which includes the port; a cookie would go to
// every server on this host. Browsers write it to their disk; the server ends a session that is not used. Tabs of this origin lend it to each other, so that one
// log-in is enough.
const stored = 'lockstep-session';
const patience = 300; // for other tabs to answer
const tabs = new BroadcastChannel(stored);
let session = sessionStorage.getItem(stored) ?? '';
let borrowed: (session: string) => void = () => {};

tabs.onmessage = ({ data }: MessageEvent<{ wanted?: boolean; session?: string }>) => {
  if (data.wanted && session) tabs.postMessage({ session });
  if (data.session) borrowed(data.session);
};

export const accessHeaders = (): Record<string, string> => (session ? { 'X-Lockstep-Session': session } : {});

export function keepSession(id: string): void {
  session = id;
  if (id) sessionStorage.setItem(stored, id);
  else sessionStorage.removeItem(stored);
}

// True if another tab had one that is not the one we have.
export async function borrowSession(): Promise<boolean> {
  const before = session;
  session = ''; // it is of no use, so it is lent to nobody
  const found = await new Promise<string>((done) => {
    const timer = setTimeout(() => done(''), patience);
    borrowed = (id) => {
      if (id === before) return;
      clearTimeout(timer);
      done(id);
    };
    tabs.postMessage({ wanted: true });
  });
  borrowed = () => {};
  keepSession(found);
  return found !== '';
}

// The code of a link, once: it is taken out of the address at once, and no longer good when it has been used.
export function codeInAddress(): string {
  const found = /^#code=(\w+)$/.exec(location.hash);
  if (!found) return '';
  history.replaceState(null, '', location.pathname);
  return found[1]!;
}
