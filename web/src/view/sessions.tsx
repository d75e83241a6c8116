// The tree of sessions, and one of them.
import { useEffect, useState } from 'preact/hooks';
import { copies, me, pasts, readPasts, sessions, words } from '../live.ts';
import { to } from '../route.ts';
import { use } from '../store.ts';
import { sessions as api } from '../wire/api.ts';
import type { Connection, Copy, Past, Session } from '../wire/messages.ts';
import { Changes } from './changes.tsx';
import { Console } from './console.tsx';
import { OnCopy } from './copy.tsx';
import { At, Dialog, Fact, Failed, Line, size, span, Title, useClock } from './text.tsx';

/** A Branch is a session with its children. */
export interface Branch {
  readonly of: Session;
  readonly below: readonly Branch[];
}

/** tree hangs sessions below their parents; one whose parent is not there stands on its own. */
export function tree(all: readonly Session[]): Branch[] {
  const ids = new Set(all.map((s) => s.id));
  const seen = new Set<string>();
  const grow = (of: Session): Branch => {
    seen.add(of.id);
    return { of, below: all.filter((s) => s.parent === of.id && !seen.has(s.id)).map(grow) };
  };
  const roots = all.filter((s) => !s.parent || !ids.has(s.parent)).map(grow);
  return [...roots, ...all.filter((s) => !seen.has(s.id)).map(grow)]; // a ring has no root
}

/** Sessions is the tree, or the chosen session. */
export function Sessions({ chosen }: { chosen: string }) {
  const all = use(sessions);
  const past = use(pasts);
  const ended = all?.filter((s) => !s.alive).length;
  useEffect(readPasts, [all?.length, ended]); // a session has begun or ended
  const one = all?.find((s) => s.id === chosen);
  const gone = past.find((p) => p.session === chosen);
  const copied = use(copies);
  const copy = copied.find((c) => c.session === chosen);
  if (chosen && one) return <One key={one.id} of={one} past={gone} copy={copy} />;
  if (chosen && copy) return <Left key={copy.session} of={copy} />;
  if (chosen && gone) return <Gone key={gone.session} of={gone} />;
  return (
    <>
      <div class="head">
        <Title>Sessions</Title>
        <p class="sub">{all ? `${all.filter((s) => s.alive).length} running` : 'Looking…'}</p>
      </div>
      {chosen && all && <p class="note">The session <Line of={chosen} mono /> is not there any more.</p>}
      {all?.length === 0 && <div class="empty"><p>No session runs. Start one with <code>bawn run -- AGENT</code>.</p></div>}
      {all && <Tree of={tree(all)} />}
      <Copies of={copied} />
      <Before of={past.filter((p) => !all?.some((s) => s.id === p.session))} />
    </>
  );
}

function Tree({ of }: { of: readonly Branch[] }) {
  if (of.length === 0) return null;
  return <ul class="tree">{of.map((b) => <li key={b.of.id}><Row of={b.of} /><Tree of={b.below} /></li>)}</ul>;
}

function Row({ of: s }: { of: Session }) {
  const now = useClock(10_000);
  return (
    <a class={s.alive ? 'row' : 'row ended'} href={to('sessions', s.id)}>
      <span class="name"><Line of={s.agent || s.command} /></span>
      <span class="meta">
        {s.alive ? 'running' : 'ended'} · {s.started && span(now - s.started.getTime())} · <Line of={s.mode} />
        {s.split && ' · split'}{s.connections.length > 0 && ` · ${s.connections.length} open connection${s.connections.length > 1 ? 's' : ''}`}
      </span>
      <span class="meta mono"><Line of={s.id.slice(0, 8)} /> <Line of={s.dir} /></span>
    </a>
  );
}

// Copies lists the sessions on a copy, also those that are over.
function Copies({ of }: { of: readonly Copy[] }) {
  const now = useClock(10_000);
  if (of.length === 0) return null;
  return (
    <section aria-labelledby="copies">
      <h2 id="copies">On a copy</h2>
      <ul class="tree">
        {of.map((c) => (
          <li key={c.session}>
            <a class={c.runs ? 'row' : 'row ended'} href={to('sessions', c.session)}>
              <span class="name"><Line of={c.name} /></span>
              <span class="meta">{copyState(c)} · {c.files >= 0 && `${c.files.toLocaleString('en')} changed file${c.files === 1 ? '' : 's'} · `}begun {c.began && span(now - c.began.getTime())} ago</span>
              <span class="meta mono"><Line of={c.agent} /> <Line of={c.dir} /></span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

const copyState = (c: Copy) => (c.runs ? 'running' : c.killed ? 'killed' : 'ended');

// Left is a session of which only its copy is left.
function Left({ of: c }: { of: Copy }) {
  return (
    <>
      <p><a href={to('sessions')}>← All sessions</a></p>
      <div class="head">
        <Title><Line of={c.name} /></Title>
        <p class="sub">{copyState(c)}</p>
      </div>
      <dl class="facts">
        <Fact name="Session"><Line of={c.session} mono /></Fact>
        <Fact name="Agent"><Line of={c.agent} /></Fact>
        <Fact name="In"><Line of={c.dir} mono /></Fact>
        <Fact name="Since"><At time={c.began} /></Fact>
      </dl>
      <OnCopy of={c} />
    </>
  );
}

// Before lists the sessions that are over, and what they have left.
function Before({ of }: { of: readonly Past[] }) {
  const now = useClock(10_000);
  if (of.length === 0) return null;
  return (
    <section aria-labelledby="before">
      <h2 id="before">What earlier sessions have changed</h2>
      <ul class="tree">
        {of.map((p) => (
          <li key={p.session}>
            <a class="row ended" href={to('sessions', p.session)}>
              <span class="name"><Line of={p.agent || 'session'} /></span>
              <span class="meta">{p.killed ? 'killed' : 'ended'} · begun {p.began && span(now - p.began.getTime())} ago</span>
              <span class="meta mono"><Line of={p.session.slice(0, 8)} /> <Line of={p.dir} /></span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

// Gone is a session of which only its changes are left.
function Gone({ of: p }: { of: Past }) {
  return (
    <>
      <p><a href={to('sessions')}>← All sessions</a></p>
      <div class="head">
        <Title><Line of={p.agent || 'session'} /></Title>
        <p class="sub">{p.killed ? 'killed' : 'ended'}</p>
      </div>
      <dl class="facts">
        <Fact name="Session"><Line of={p.session} mono /></Fact>
        <Fact name="In"><Line of={p.dir} mono /></Fact>
        <Fact name="Since"><At time={p.began} /></Fact>
      </dl>
      <Changes of={p} />
    </>
  );
}

function One({ of: s, past, copy }: { of: Session; past: Past | undefined; copy: Copy | undefined }) {
  const readOnly = use(me)?.readOnly ?? true;
  return (
    <>
      <p><a href={to('sessions')}>← All sessions</a></p>
      <div class="head">
        <Title><Line of={s.agent || s.command} /></Title>
        <p class="sub">{s.alive ? 'running' : 'ended'}</p>
      </div>
      <dl class="facts">
        <Fact name="Session"><Line of={s.id} mono /></Fact>
        <Fact name="Started by">{s.parent && <a href={to('sessions', s.parent)}><Line of={s.parent} mono /></a>}</Fact>
        <Fact name="Command"><Line of={s.command} mono /></Fact>
        <Fact name="In"><Line of={s.dir} mono /></Fact>
        <Fact name="Mode"><Line of={[s.mode, s.autonomy].filter(Boolean).join(', ')} /></Fact>
        <Fact name="Since"><At time={s.started} /></Fact>
        <Fact name="Viewers">{s.viewers > 0 && s.viewers}</Fact>
      </dl>
      {s.alive && s.terminal && <Console session={s.id} readOnly={readOnly} />}
      {past && <Changes of={past} />}
      {copy && <OnCopy of={copy} />}
      {s.alive && <Holds of={s} />}
      {s.alive && <Open of={s.connections} />}
      {s.alive && !readOnly && <Kill of={s} />}
    </>
  );
}

function Holds({ of: s }: { of: Session }) {
  return (
    <section aria-labelledby="holds">
      <h2 id="holds">What holds it</h2>
      {s.enforced.length === 0 && <p class="note warn">Nothing is known to hold this session.</p>}
      <ul class="holds">
        {s.enforced.map((e) => (
          <li key={e.name} class={e.partly ? 'partly' : 'fully'}>
            <strong><Line of={e.name} /></strong> <span>{e.partly && 'in part: '}<Line of={e.how} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Open({ of }: { of: readonly Connection[] }) {
  const now = useClock(1000);
  return (
    <section aria-labelledby="open">
      <h2 id="open">Open connections</h2>
      {of.length === 0 ? <p class="sub">None.</p> : (
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="open">
          <table>
            <thead><tr><th scope="col">Host</th><th scope="col">Open for</th><th scope="col">Sent</th><th scope="col">Received</th></tr></thead>
            <tbody>
              {of.map((c, i) => (
                <tr key={i}><th scope="row"><Line of={c.host} mono />{c.count > 1 && ` ×${c.count}`}</th><td>{c.opened && span(now - c.opened.getTime())}</td><td>{size(c.sent)}</td><td>{size(c.received)}</td></tr>
              ))}
            </tbody>
          </table>
          <p class="note">Bytes are counted when a connection ends.</p>
        </div>
      )}
    </section>
  );
}

function Kill({ of: s }: { of: Session }) {
  const [asks, ask] = useState(false);
  const [failed, setFailed] = useState('');
  const kill = async () => {
    ask(false);
    try {
      await api.kill(s.id);
    } catch (e) {
      setFailed(words(e));
    }
  };
  return (
    <section class="end">
      <button type="button" class="deny" onClick={() => ask(true)}>Kill this session…</button>
      <Failed why={failed} />
      {asks && (
        <Dialog title="Kill this session?" yes="Kill it" danger onYes={kill} onNo={() => ask(false)}>
          <p>Everything in it ends at once, and so do the sessions that it started. What the agent has not written down is lost.</p>
        </Dialog>
      )}
    </section>
  );
}
