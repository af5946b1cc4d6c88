import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import * as api from './api';
import { LogIn, Shell } from './shell';
import './style.css';
import { applyTheme } from './theme';

// The token may come in the address, behind the #: it is not sent to anybody by that, and is taken out of it at once.
function tokenInAddress(): string {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return '';
  history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(found[1]!);
  } catch {
    return '';
  }
}

function App() {
  const [state, set] = useState<'starting' | 'unknown' | 'known' | 'away'>('starting');
  useEffect(() => {
    api.onLogIn(() => {
      api.unfollow();
      set('unknown');
    });
    const start = async () => {
      const token = tokenInAddress();
      try {
        if (token) await api.logIn(token).catch(() => {});
        const session = await api.loadSession();
        set(session.known ? 'known' : 'unknown');
      } catch {
        set('away');
        setTimeout(start, 2000);
      }
    };
    void start();
  }, []);
  useEffect(() => {
    if (state === 'known') api.follow();
  }, [state]);
  if (state === 'known') return <Shell />;
  if (state === 'unknown') return <LogIn onDone={() => void api.loadSession().then((now) => set(now.known ? 'known' : 'unknown'))} />;
  return <p class="starting">{state === 'away' ? 'The dashboard’s server does not answer. Trying again…' : ''}</p>;
}

applyTheme();
const root = document.getElementById('app')!;
root.textContent = '';
render(<App />, root);
