// Whether what locks need works, tried every ten seconds while somebody looks.
import { useEffect, useState } from 'preact/hooks';
import { health } from '../api';
import { micros } from '../clock';
import { Empty } from '../parts/basic';
import type { Health as Report } from '../types';

export function Health() {
  const [report, set] = useState<Report | null>(null);
  const [failed, setFailed] = useState('');
  useEffect(() => {
    let over = false;
    let timer = 0;
    const load = async () => {
      try {
        const now = await health();
        if (over) return;
        set(now);
        setFailed('');
      } catch (failure) {
        if (!over) setFailed((failure as Error).message);
      }
      if (!over) timer = window.setTimeout(load, 10_000);
    };
    void load();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  if (!report && !failed) return <Empty title="Trying…" />;
  return (
    <section class="scroll health" aria-label="Health">
      {failed && (
        <p class="failure" role="alert">
          {failed}
        </p>
      )}
      {report && (
        <>
          <div class={`verdict ${report.state}`} role="status">
            <span class={`dot ${report.state}`} />
            <span class="verdict-state">{report.state}</span>
            <span class="muted">{report.server}</span>
          </div>
          <ul class="findings">
            {report.findings.map((one, i) => (
              <li key={i} class="card finding">
                <span class={`dot ${one.state}`} title={one.state} />
                <div>
                  <p>
                    <b>{one.check.replace(/_/g, ' ')}</b> <span class="found">{one.found}</span>
                  </p>
                  {one.advice && <p class="advice">{one.advice}</p>}
                </div>
                <span class="num muted right">{one.took_us > 0 ? micros(one.took_us) : ''}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
