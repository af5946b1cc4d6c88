// How parts of the state are known: as state.cpp makes them.
import type { Hold, Thing, Wait } from './types';

export const thingKey = (of: { kind: string; name: string; type?: string }) => `${of.kind}:${of.name}${of.type ? `/${of.type}` : ''}`;
export const holdKey = (of: Hold) => `${of.kind}:${of.id}:${of.name}`;
export const waitKey = (of: Wait) => `${of.kind}:${of.id === '' ? `${of.who}/${of.use}` : of.id}:${of.name}`;

// What a name is asked for by.
export const asked = (of: Thing | { name: string; raw?: string }) => of.raw ?? encodeURIComponent(of.name);
