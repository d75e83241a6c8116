// One question.
import { useEffect, useRef, useState } from 'preact/hooks';
import { reply, spoken, words } from '../live.ts';
import { to } from '../route.ts';
import type { Reply } from '../wire/api.ts';
import type { Approval } from '../wire/messages.ts';
import { Confirm } from './confirm.tsx';
import { Exact, Fact, Failed, Line, Prose, span, useClock } from './text.tsx';

const wishes: Readonly<Record<string, string>> = {
  'command exec': 'Run a command', 'network connect': 'Connect to a host', 'filesystem read': 'Read a file', 'filesystem write': 'Change a file',
  'filesystem create': 'Create a file', 'filesystem delete': 'Delete a file', 'tool call': 'Use a tool',
};

/** wish says what a question is about. */
export function wish(a: Approval): string {
  const { kind = '', operation = '' } = a.action ?? {};
  return wishes[`${kind} ${operation}`] ?? `${operation} (${kind})`;
}

interface CardProps {
  of: Approval;
  able: boolean;
  steady: () => boolean;
  chosen: boolean;
}

/** Card is one question with its answers, or what became of it. */
export function Card({ of: a, able, steady, chosen }: CardProps) {
  const at = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen) at.current?.focus();
  }, [chosen]);
  const heading = `q-${a.id}`;
  return (
    <article class={'card ' + a.state} ref={at} tabIndex={-1} aria-labelledby={heading} data-id={a.id}>
      <header>
        <h2 id={heading}>{wish(a)}</h2>
        <p class="who"><Line of={a.agent || 'no name'} /> in <a href={to('sessions', a.session)}><Line of={a.session.slice(0, 8)} mono /></a>{a.state === 'pending' && a.waiting > 1 && ` · ${a.waiting} ask for it; “once” is for one of them`}</p>
        {a.state === 'pending' && <Left until={a.expires} />}
      </header>
      {a.state === 'pending' ? <Open of={a} able={able} steady={steady} /> : <Closed of={a} />}
    </article>
  );
}

function Left({ until }: { until: Date | undefined }) {
  const now = useClock(1000);
  if (!until) return null;
  const left = until.getTime() - now;
  return <p class={left < 60_000 ? 'left soon' : 'left'}>{left > 0 ? `the guest waits, ${span(left)} left` : 'time is up'}</p>;
}

const exactOf = (a: Approval) => a.canonical || a.action?.resource || '';

function Open({ of: a, able, steady }: { of: Approval; able: boolean; steady: () => boolean }) {
  const [whole, setWhole] = useState(true);
  return (
    <>
      <Exact of={exactOf(a)} label="Exactly what would happen" onWhole={setWhole} />
      <Arguments of={a} />
      <dl class="facts">
        <Fact name="In">{a.action?.dir && <Line of={a.action.dir} mono />}</Fact>
        <Fact name="Asks because">{a.reason && <Prose of={a.reason} />}{a.rule && <> <Line of={`(${a.rule})`} mono /></>}</Fact>
        <Fact name="Program">{a.program && <Line of={a.program} mono />}</Fact>
        <Fact name="If allowed">{a.contains && <Prose of={a.contains} />}</Fact>
        <Fact name="A yes is for">{a.reach && <Prose of={a.reach} />}</Fact>
        <Fact name="Suggestion">{suggestion(a)}</Fact>
      </dl>
      {a.justification && (
        <figure class="claim">
          <figcaption>The agent says. Nobody has checked it.</figcaption>
          <blockquote><Prose of={a.justification} /></blockquote>
        </figure>
      )}
      <Answers of={a} able={able} whole={whole} steady={steady} />
    </>
  );
}

function suggestion(a: Approval) {
  if (a.suggested !== 'allow' && a.suggested !== 'deny') return '';
  return <><strong>{a.suggested === 'allow' ? 'Allow' : 'Deny'}</strong>{a.suggestedWhy && <>: <Prose of={a.suggestedWhy} /></>}</>;
}

function Arguments({ of: a }: { of: Approval }) {
  const args = a.action?.args ?? [];
  if (args.length === 0) return null;
  return (
    <details>
      <summary>{args.length === 1 ? 'One argument' : `${args.length} arguments`}, one by one</summary>
      <ol class="args">{args.map((arg, i) => <li key={i}><Exact of={arg} label={`Argument ${i}`} /></li>)}</ol>
    </details>
  );
}

function Answers({ of: a, able, whole, steady }: { of: Approval; able: boolean; whole: boolean; steady: () => boolean }) {
  const [why, setWhy] = useState('');
  const [asks, ask] = useState<'allow' | 'deny'>();
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const back = useRef<HTMLElement | null>(null);
  const send = async (verdict: Reply['verdict'], scope: Reply['scope']) => {
    if (!steady()) {
      spoken.set('The list has just changed. Look again.');
      return;
    }
    ask(undefined);
    setBusy(true);
    setFailed('');
    try {
      await reply(a.id, { verdict, scope, why });
    } catch (e) {
      setFailed(words(e));
      setBusy(false);
    }
  };
  const confirm = (verdict: 'allow' | 'deny') => {
    back.current = document.activeElement as HTMLElement | null;
    ask(verdict);
  };
  const no = !able || busy;
  const offers = new Map(a.choices.map((c) => [c.key, c]));
  const press = (key: string) => {
    const c = offers.get(key);
    if (!c || no || (c.verdict === 'allow' && !whole) || (c.verdict !== 'allow' && c.verdict !== 'deny') || c.scope === 'unspecified') return;
    if (c.scope === 'always') confirm(c.verdict);
    else void send(c.verdict, c.scope);
  };
  const ruled = offers.has('a');
  return (
    <>
      <div class="answers" role="group" aria-label="Answer" onKeyDown={(e) => { if (!e.ctrlKey && !e.metaKey && !e.altKey && !asks) press(e.key); }}>
        <button type="button" class={a.suggested === 'deny' ? 'allow against' : 'allow'} disabled={no || !whole || !offers.has('y')} data-key="y" onClick={() => press('y')}>{offers.get('y')?.scope === 'session' ? 'For this session' : 'Allow once'}</button>
        <button type="button" class={a.suggested === 'deny' ? 'deny advised' : 'deny'} disabled={no} data-key="n" onClick={() => press('n')}>Deny</button>
        {offers.has('s') && <button type="button" disabled={no || !whole} data-key="s" onClick={() => press('s')}>For this session</button>}
        <button type="button" disabled={no || !whole || !ruled} data-key="a" onClick={() => press('a')}>Always…</button>
        <button type="button" disabled={no} data-key="N" onClick={() => press('N')}>Never…</button>
      </div>
      {!ruled && a.noAlways && <p class="note">No “always”: <Prose of={a.noAlways} /></p>}
      <details>
        <summary>Add a word to the agent</summary>
        <label class="field">Why<input type="text" maxLength={250} value={why} onInput={(e) => setWhy(e.currentTarget.value)} /></label>
      </details>
      <Failed why={failed} />
      {asks && <Confirm of={a} verdict={asks} onYes={() => send(asks, 'always')} onNo={() => { ask(undefined); back.current?.focus(); }} />}
    </>
  );
}

const ends = { expired: 'Denied: nobody answered in time', withdrawn: 'No longer asked', unspecified: 'Unknown', pending: '', answered: '' } as const;

/** outcome says what became of a question. */
export function outcome(a: Approval): string {
  if (a.state !== 'answered') return ends[a.state];
  const { verdict, scope } = a.answer ?? {};
  if (verdict !== 'allow') return scope === 'always' ? 'Denied, now and always' : scope === 'session' ? 'Denied for this session' : 'Denied';
  return scope === 'always' ? 'Allowed, now and always' : scope === 'session' ? 'Allowed for this session' : 'Allowed once';
}

function Closed({ of: a }: { of: Approval }) {
  const said = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // Whoever pressed a button that is gone now stands here.
    if (document.activeElement === document.body) said.current?.focus();
    spoken.set(`${wish(a)}: ${outcome(a)}.`);
  }, []);
  return (
    <>
      <p class={'outcome ' + (a.answer?.verdict ?? 'deny')} ref={said} tabIndex={-1}>
        <strong>{outcome(a)}</strong>
        {a.answer?.by && <> by <Line of={a.answer.by} /></>}
        {a.answer?.why && <>: “<Prose of={a.answer.why} />”</>}
      </p>
      <details>
        <summary>What was asked</summary>
        <Exact of={exactOf(a)} label="What was asked" />
      </details>
    </>
  );
}
