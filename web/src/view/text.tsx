// Texts that others wrote, and small pieces that each view uses.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { plain, reveal, spelled, type Piece, type View } from '../reveal.ts';

/** Line shows a text of one line that others wrote. */
export function Line({ of, mono }: { of: string; mono?: boolean }) {
  return <span class={mono ? 'line mono' : 'line'}>{plain(of)}</span>;
}

/** Prose shows words that others wrote, which may have several lines. */
export function Prose({ of }: { of: string }) {
  return <span class="prose">{of.split('\n').map((line, i) => [i > 0 && <br />, plain(line)])}</span>;
}

function Mark({ of }: { of: Piece }) {
  if (of.kind === 'text') return <>{of.text}</>;
  return (
    <>
      <span class={'mark ' + of.kind} title={of.name}>{of.text}</span>
      {of.ends && '\n'}
    </>
  );
}

const many = (n: number, one: string, more: string) => `${n.toLocaleString('en')} ${n === 1 ? one : more}`;

/** remarks says in words what is odd about a text. */
export function remarks(view: View): string[] {
  const out: string[] = [];
  if (view.hidden > 0) out.push(`${many(view.hidden, 'character', 'characters')} that can't be seen or that move${view.hidden === 1 ? 's' : ''} others, shown in boxes`);
  if (view.foreign > 0) out.push(`${many(view.foreign, 'character', 'characters')} outside ASCII, underlined: they can look like others`);
  if (view.lines > 1) out.push(many(view.lines, 'line', 'lines'));
  if (view.characters > 1000) out.push(many(view.characters, 'character', 'characters'));
  return out;
}

/** Exact shows a text character for character; onWhole says whether all of it is shown. */
export function Exact({ of, label, onWhole }: { of: string; label: string; onWhole?: (whole: boolean) => void }) {
  const view = useMemo(() => reveal(of), [of]);
  const [all, showAll] = useState(false);
  const whole = all || view.omitted === 0;
  const long = view.characters > 2000 || view.lines > 60;
  useEffect(() => onWhole?.(whole), [whole]);
  const notes = remarks(view);
  return (
    <div class={long ? 'exact long' : 'exact'}>
      <pre tabIndex={0} role="region" aria-label={label}>{all ? spelled(of) : view.pieces.map((p, i) => <Mark key={i} of={p} />)}</pre>
      {notes.length > 0 && <p class="note">{notes.join(' · ')}{view.characters > 1000 && whole && '. All of it is shown.'}</p>}
      {long && <p class="note">It is long: scroll in the box. Its last 200 characters:</p>}
      {long && <pre>{spelled(Array.from(of).slice(-200).join(''))}</pre>}
      {!whole && (
        <p class="note warn">
          {many(view.omitted, 'character', 'characters')} between the box and the end {view.omitted === 1 ? 'is' : 'are'} not shown.{' '}
          <button type="button" class="plain" onClick={() => showAll(true)}>Show all</button>
        </p>
      )}
    </div>
  );
}

/** Fact is one row of a list of facts; without content it is left out. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === '' || children == null || children === false) return null;
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** useClock draws a component anew every step milliseconds. */
export function useClock(step: number): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), step);
    return () => clearInterval(timer);
  }, [step]);
  return now;
}

/** span writes a number of milliseconds: 45 s, 4 min, 2 h. */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} days`;
}

/** size writes a number of bytes. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let n = bytes;
  let unit = 0;
  for (; n >= 1000 && unit < units.length - 1; unit++) n /= 1000;
  return `${n < 10 && unit > 0 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/** At shows a time. */
export function At({ time }: { time: Date | undefined }) {
  if (!time) return null;
  return <time dateTime={time.toISOString()}>{time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}</time>;
}

/** Title is the heading of a view; it takes the focus when the view opens. */
export function Title({ children }: { children: ComponentChildren }) {
  const at = useRef<HTMLHeadingElement>(null);
  useEffect(() => at.current?.focus({ preventScroll: true }), []);
  return <h1 ref={at} tabIndex={-1}>{children}</h1>;
}

/** Dialog asks before something that can't be undone. */
export function Dialog({ title, children, yes, danger, onYes, onNo }: {
  title: string;
  children: ComponentChildren;
  yes: string;
  danger?: boolean;
  onYes: () => void;
  onNo: () => void;
}) {
  const at = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = at.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={at} aria-labelledby="dialog-title" onCancel={(e) => { e.preventDefault(); onNo(); }}>
      <h2 id="dialog-title">{title}</h2>
      <div class="body">{children}</div>
      <div class="actions">
        <button type="button" autofocus onClick={onNo}>Back</button>
        <button type="button" class={danger ? 'deny' : 'allow'} onClick={onYes}>{yes}</button>
      </div>
    </dialog>
  );
}

/** Failed shows what went wrong. */
export function Failed({ why }: { why: string }) {
  return why ? <p class="note warn" role="alert">{plain(why)}</p> : null;
}
