// Where the human is: the fragment of the address, #approvals, #sessions/ID.
import { Store } from './store.ts';

export const places = ['approvals', 'sessions', 'audit', 'policy', 'devices'] as const;
export type Place = (typeof places)[number];

/** A Route is a place and what is chosen in it. */
export interface Route {
  readonly place: Place;
  readonly id: string;
}

/** parse reads a fragment; what it does not know is approvals. */
export function parse(fragment: string): Route {
  const [name = '', ...rest] = fragment.replace(/^#\/?/, '').split('/');
  const place = places.find((p) => p === name) ?? 'approvals';
  return { place, id: place === name ? decode(rest.join('/')) : '' };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** to writes the address of a place. */
export function to(place: Place, id = ''): string {
  return '#' + place + (id ? '/' + encodeURIComponent(id) : '');
}

export const route = new Store<Route>(parse(''));

/** follow keeps route at the address. */
export function follow(): void {
  const read = () => route.set(parse(location.hash));
  addEventListener('hashchange', read);
  read();
}
