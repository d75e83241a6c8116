// Readers of the API's JSON. What is absent has its zero value, as protobuf
// has it; what has another type than it should is an error, never a guess.

/** A Reader turns a JSON value into a T, or throws. */
export type Reader<T> = (value: unknown) => T;
/** Shape is what a message's reader returns. */
export type Shape<R> = R extends Reader<infer T> ? T : never;

function wrong(want: string, value: unknown): never {
  throw new TypeError(`the server sent ${typeof value}; want ${want}`);
}

export const text: Reader<string> = (v) => (v == null ? '' : typeof v === 'string' ? v : wrong('text', v));
export const flag: Reader<boolean> = (v) => (v == null ? false : typeof v === 'boolean' ? v : wrong('true or false', v));

/** 64-bit numbers come as text. */
export const number: Reader<number> = (v) => {
  const n = v == null ? 0 : typeof v === 'number' || typeof v === 'string' ? Number(v) : wrong('a number', v);
  return Number.isFinite(n) ? n : wrong('a number', v);
};

export const time: Reader<Date | undefined> = (v) => {
  if (v == null) return undefined;
  const t = new Date(text(v));
  return Number.isNaN(t.getTime()) ? wrong('a time', v) : t;
};

export const bytes: Reader<Uint8Array> = (v) => Uint8Array.from(atob(text(v)), (c) => c.charCodeAt(0));

/** A choice is an enum; a name that this page does not know is the first, which refuses. */
export function choice<const N extends readonly [string, ...string[]]>(prefix: string, names: N): Reader<N[number]> {
  return (v) => names.find((name) => prefix + name.toUpperCase() === v) ?? names[0];
}

export function list<T>(of: Reader<T>): Reader<T[]> {
  return (v) => (v == null ? [] : Array.isArray(v) ? v.map(of) : wrong('a list', v));
}

export function optional<T>(of: Reader<T>): Reader<T | undefined> {
  return (v) => (v == null ? undefined : of(v));
}

export const texts: Reader<Map<string, string>> = (v) =>
  new Map(Object.entries(v == null ? {} : typeof v === 'object' ? v : wrong('a map', v)).map(([k, x]) => [k, text(x)]));

/** message reads an object; names it does not know are passed over. */
export function message<F extends Record<string, Reader<unknown>>>(fields: F): Reader<{ [K in keyof F]: Shape<F[K]> }> {
  return (v) => {
    if (v != null && (typeof v !== 'object' || Array.isArray(v))) wrong('an object', v);
    const from = (v ?? {}) as Record<string, unknown>;
    const to: Record<string, unknown> = {};
    for (const [name, read] of Object.entries(fields)) to[name] = read(Object.hasOwn(from, name) ? from[name] : undefined);
    return to as { [K in keyof F]: Shape<F[K]> };
  };
}
