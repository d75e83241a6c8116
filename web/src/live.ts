// What this page knows of the server: who it is, what waits, what runs, and
// whether it still hears of changes.
import { plain } from './reveal.ts';
import { Store } from './store.ts';
import { approvals as api, auth, copies as copyApi, sessions as sessionApi, undo, type Reply } from './wire/api.ts';
import { Failure } from './wire/connect.ts';
import type { Approval, Copy, Me, Past, Session } from './wire/messages.ts';

/** A Link is how things stand with the server. */
export interface Link {
  readonly up: boolean;
  /** When the next attempt is due, in milliseconds since 1970; 0 while one is made. */
  readonly next: number;
  readonly why: string;
}

export const me = new Store<Me | undefined>(undefined);
/** What the address brought for pairing. */
export const code = new Store('');
export const link = new Store<Link>({ up: false, next: 0, why: '' });
export const approvals = new Store<ReadonlyMap<string, Approval>>(new Map());
export const sessions = new Store<readonly Session[] | undefined>(undefined);
/** The sessions that have left checkpoints, the newest first. */
export const pasts = new Store<readonly Past[]>([]);
/** The copies of sessions, the newest first. */
export const copies = new Store<readonly Copy[]>([]);
/** The last thing that a screen reader is told. */
export const spoken = new Store('');

const silence = 45_000; // ms; the server says something every 20 s
const longest = 15_000; // ms between attempts

/** signedOut reports whether e says that the login has ended, and notes it. */
export function signedOut(e: unknown): boolean {
  if (!(e instanceof Failure) || e.code !== 'unauthenticated') return false;
  me.set({ loggedIn: false, device: '', name: '', readOnly: false });
  return true;
}

/** words says what went wrong to a human. */
export function words(e: unknown): string {
  if (e instanceof Failure && e.code === 'offline') return 'The machine does not answer.';
  if (e instanceof Failure && ['canceled', 'unavailable', 'aborted'].includes(e.code)) return 'The connection ended.';
  return e instanceof Error ? e.message : String(e);
}

/** identify asks who this browser is. */
export async function identify(): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      me.set(await auth.me());
      return;
    } catch (e) {
      await pause(attempt, (next) => link.set({ up: false, next, why: words(e) }));
    }
  }
}

const wakes = new Set<() => void>();

/** tryNow ends the waits for the next attempts. */
export function tryNow(): void {
  for (const wake of [...wakes]) wake();
}

// pause waits longer with each attempt; it tells when it will end, and then
// that an attempt is made (0).
async function pause(attempt: number, tell: (next: number) => void): Promise<void> {
  const wait = Math.min(longest, 500 * 2 ** Math.min(attempt, 10));
  tell(Date.now() + wait);
  await new Promise<void>((done) => {
    const wake = () => {
      clearTimeout(timer);
      wakes.delete(wake);
      done();
    };
    const timer = setTimeout(wake, wait);
    wakes.add(wake);
  });
  tell(0);
}

// restarts holds what ends the streams that are open, so that they begin anew.
const restarts = new Set<() => void>();

/** A Kept is a stream that is to stay open. */
interface Kept<T> {
  open(signal: AbortSignal): AsyncIterable<T>;
  each(value: T): void;
  /** Called with the first message of each connection. */
  begun(): void;
  /** Called when a connection ended, with the time of the next attempt, and with 0 when it is made. */
  lost(e: unknown, next: number): void;
}

/**
 * keep holds a stream open until the function that it returns is called: it
 * begins anew when the stream ends, is silent for too long, or the page comes
 * back from sleep.
 */
export function keep<T>(stream: Kept<T>): () => void {
  let stopped = false;
  let current = new AbortController();
  const restart = () => current.abort();
  restarts.add(restart);
  const run = async () => {
    for (let attempt = 0; !stopped; attempt++) {
      current = new AbortController();
      const heard = await once(stream, current, restart);
      if (heard.any) attempt = 0;
      if (stopped || signedOut(heard.error)) break;
      await pause(attempt, (next) => stream.lost(heard.error, next));
    }
    restarts.delete(restart);
  };
  void run();
  return () => {
    stopped = true;
    current.abort();
    tryNow();
  };
}

// once reads one connection to its end.
async function once<T>(stream: Kept<T>, current: AbortController, restart: () => void): Promise<{ any: boolean; error: unknown }> {
  let any = false;
  let watchdog = setTimeout(restart, silence);
  try {
    for await (const value of stream.open(current.signal)) {
      clearTimeout(watchdog);
      watchdog = setTimeout(restart, silence);
      if (!any) stream.begun();
      any = true;
      stream.each(value);
    }
    return { any, error: new Failure('offline', 'the connection ended') };
  } catch (error) {
    return { any, error };
  } finally {
    clearTimeout(watchdog);
  }
}

/** watchApprovals keeps approvals up to date. */
export function watchApprovals(): () => void {
  let known = false; // questions that were there first are not news
  return keep({
    open: api.watch,
    each: (message) => {
      if (message.approval) put(message.approval, known);
    },
    begun: () => {
      link.set({ up: true, next: 0, why: '' });
      void settle().finally(() => {
        if (!known && waiting() > 0) spoken.set(`${waiting()} waiting.`);
        known = true;
      });
    },
    lost: (e, next) => link.set({ up: false, next, why: words(e) }),
  });
}

// all is what is known; approvals is published from it a little later, so
// that a thousand questions at once are drawn once.
const all = new Map<string, Approval>();
let fresh: Approval[] = [];
let due: ReturnType<typeof setTimeout> | undefined;

/** put stores what the server says of a question; an answer is never undone. */
export function put(a: Approval, news: boolean): void {
  const before = all.get(a.id);
  if (before && before.state !== 'pending' && a.state === 'pending') return;
  if (!before && a.state !== 'pending') return; // answered before this page looked
  all.set(a.id, a);
  if (!before && news) fresh.push(a);
  due ??= setTimeout(publish, 30);
}

function waiting(): number {
  return [...all.values()].filter((a) => a.state === 'pending').length;
}

function publish(): void {
  clearTimeout(due);
  due = undefined;
  approvals.set(new Map(all));
  if (fresh.length === 1) spoken.set(`New question from ${plain(fresh[0]?.agent || 'a session')}. ${waiting()} waiting.`);
  if (fresh.length > 1) spoken.set(`${fresh.length} new questions. ${waiting()} waiting.`);
  fresh = [];
}

// settle finds out what became of questions while nobody listened.
async function settle(): Promise<void> {
  try {
    const now = new Map((await api.pending()).map((a) => [a.id, a]));
    for (const a of now.values()) put(a, false);
    for (const [id, a] of all) {
      if (a.state === 'pending' && !now.has(id)) put((await api.get(id)) ?? { ...a, state: 'withdrawn' }, false);
    }
  } catch (e) {
    signedOut(e); // the stream tells the rest
  }
}

/** forget takes the questions away that are answered. */
export function forget(): void {
  for (const [id, a] of all) if (a.state !== 'pending') all.delete(id);
  publish();
}

/** reply sends an answer; it returns whether it was the one that counts. */
export async function reply(id: string, r: Reply): Promise<boolean> {
  try {
    const { approval, first } = await api.answer(id, r);
    if (approval) put(approval, false);
    publish();
    return first;
  } catch (e) {
    signedOut(e);
    throw e;
  }
}

/** watchSessions keeps sessions up to date. */
export function watchSessions(): () => void {
  return keep({
    open: sessionApi.watch,
    each: (m) => {
      if (m.changed) sessions.set(m.sessions);
    },
    begun: () => {},
    lost: () => {},
  });
}

/** readPasts looks which sessions have left checkpoints and copies. */
export function readPasts(): void {
  undo.list().then((list) => pasts.set(list), signedOut); // without it the page shows what runs
  copyApi.list().then((list) => copies.set(list), signedOut);
}

let hidden = 0;

/** follow notices when the machine or the page comes back. */
export function follow(): void {
  const again = () => {
    for (const restart of [...restarts]) restart();
    tryNow();
  };
  addEventListener('online', again);
  addEventListener('offline', again);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'hidden') hidden = Date.now();
    else if (hidden && Date.now() - hidden > 10_000) again();
  });
}
