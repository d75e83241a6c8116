// A session's terminal.
import { useEffect, useRef, useState } from 'preact/hooks';
import { signedOut, words } from '../live.ts';
import type { Screen } from '../screen.ts';
import { sessions as api } from '../wire/api.ts';
import { Failure } from '../wire/connect.ts';
import { Failed, Line } from './text.tsx';

/** Console opens the terminal on demand; typing has to be switched on. */
export function Console({ session, readOnly }: { session: string; readOnly: boolean }) {
  const [open, setOpen] = useState(false);
  const [typing, setTyping] = useState(false);
  return (
    <section aria-labelledby="terminal">
      <h2 id="terminal">Terminal</h2>
      <div class="actions start">
        <button type="button" aria-pressed={open} onClick={() => { setOpen(!open); setTyping(false); }}>{open ? 'Close' : 'Watch'}</button>
        {open && !readOnly && <button type="button" aria-pressed={typing} onClick={() => setTyping(!typing)}>{typing ? 'Stop typing' : 'Type into it'}</button>}
      </div>
      {open && <p class="note">{typing ? 'What you type goes to the agent. Ctrl+Shift+Escape leaves the terminal.' : 'You are watching; keys do nothing.'}</p>}
      {open && <View key={String(typing)} session={session} typing={typing} leave={() => setTyping(false)} />}
    </section>
  );
}

function View({ session, typing, leave }: { session: string; typing: boolean; leave: () => void }) {
  const at = useRef<HTMLDivElement>(null);
  const [end, setEnd] = useState('');
  const [notice, setNotice] = useState('');
  useEffect(() => {
    if (!at.current) return undefined;
    const stop = new AbortController();
    void watch(at.current, session, typing, leave, setNotice, stop.signal).then(setEnd);
    return () => stop.abort();
  }, [session, typing]);
  return (
    <>
      <div class="console" ref={at} />
      {notice && <p class="note" role="status"><Line of={notice} /></p>}
      <Failed why={end} />
    </>
  );
}

// watch shows the session in an element until signal. The emulator is the
// largest part of the page, so it is fetched when somebody wants it.
async function watch(within: HTMLElement, session: string, typing: boolean, leave: () => void, tell: (notice: string) => void, signal: AbortSignal): Promise<string> {
  const { screen } = await import('../screen.ts');
  if (signal.aborted) return '';
  const typed = new Outgoing();
  const shown = screen(within, { typing, typed: (data) => typed.send(data), resized: (rows, columns) => typing && typed.resize(rows, columns), leave });
  signal.addEventListener('abort', () => shown.close());
  return follow(session, shown, typed, typing, tell, signal);
}

// follow shows the session's output until it ends, and returns why it ended.
async function follow(session: string, shown: Screen, typed: Outgoing, typing: boolean, tell: (notice: string) => void, signal: AbortSignal): Promise<string> {
  try {
    for await (const message of api.attach(session, !typing, shown.rows, shown.columns, signal)) {
      if (message.view) typed.view = message.view;
      if (message.anew) shown.clear();
      if (message.notice) tell(message.notice);
      if (message.output.length > 0) shown.write(message.output);
      if (message.ended) return `The session has ended (${message.ended.why || message.ended.exit}).`;
    }
    return 'The terminal was closed.';
  } catch (e) {
    if (signal.aborted) return '';
    signedOut(e);
    return e instanceof Failure && e.code === 'offline' ? 'The connection broke. Close and watch again.' : words(e);
  }
}

// Outgoing sends one thing after the other: they arrive in the order in which
// they were typed.
class Outgoing {
  view = '';
  private held = '';
  private size: { rows: number; columns: number } | undefined;
  private busy = false;

  send(data: string): void {
    this.held += data;
    void this.flush();
  }

  resize(rows: number, columns: number): void {
    this.size = { rows, columns };
    void this.flush();
  }

  private async flush(): Promise<void> {
    if (this.busy || !this.view) return;
    this.busy = true;
    try {
      while (this.held || this.size) await this.next();
    } catch (e) {
      signedOut(e);
      this.held = ''; // what could not be sent is not sent later
      this.size = undefined;
    } finally {
      this.busy = false;
    }
  }

  private async next(): Promise<void> {
    const { size } = this;
    this.size = undefined;
    if (size) await api.resize(this.view, size.rows, size.columns);
    const data = Array.from(this.held).slice(0, 8192).join('');
    this.held = this.held.slice(data.length);
    if (data) await api.send(this.view, data);
  }
}
