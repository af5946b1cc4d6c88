import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import { codeInAddress } from './access';
import * as api from './api';
import { LogIn, Shell } from './shell';
import './style.css';
import { applyTheme } from './theme';

function App() {
  const [state, set] = useState<'starting' | 'unknown' | 'known' | 'away'>('starting');
  const [refused, setRefused] = useState('');
  useEffect(() => {
    api.onLogIn(() => {
      api.unfollow();
      set('unknown');
    });
    const code = codeInAddress();
    const start = async () => {
      try {
        if (code) await api.logInByCode(code).catch((failure: Error) => setRefused(failure.message));
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
  if (state === 'unknown') return <LogIn refused={refused} onDone={() => void api.loadSession().then((now) => set(now.known ? 'known' : 'unknown'))} />;
  return <p class="starting">{state === 'away' ? 'The dashboard’s server does not answer. Trying again…' : ''}</p>;
}

applyTheme();
const root = document.getElementById('app')!;
root.textContent = '';
render(<App />, root);
