// Small things that the views of jobs share.
import { asked } from '../keys';
import { Name } from '../parts/basic';
import { jobsHash, jobsRoute, type JobRef } from './route';

export const refOf = (of: { name: string; raw?: string }, id: string): JobRef => ({ name: asked(of), id });

// Beside what is shown now.
export const JobLink = ({ of }: { of: JobRef }) => (
  <a class="thing-link" href={jobsHash({ ...jobsRoute(), job: of })}>
    <Name text={of.id} />
  </a>
);

export const StateTag = ({ state }: { state: string }) => <span class={`tag state ${state}`}>{state}</span>;

export const Failure = ({ text }: { text: string }) =>
  text === '' ? null : (
    <p class="failure" role="alert">
      {text}
    </p>
  );

export const bytes = (n: number) => (n < 1024 ? `${n} bytes` : n < 1_048_576 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1_048_576).toFixed(1)} MiB`);
