// What a session has changed, and how it is taken back.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { me, readPasts, signedOut, words } from '../live.ts';
import { touch } from '../passkey.ts';
import { plain } from '../reveal.ts';
import { use } from '../store.ts';
import { undo } from '../wire/api.ts';
import type { ChangedFile, Diff, Hunk, Lines, Past, Preview, Step } from '../wire/messages.ts';
import { Dialog, Failed, Line, size } from './text.tsx';

/** Changes shows the files that a session has changed. */
export function Changes({ of: p }: { of: Past }) {
  const readOnly = use(me)?.readOnly ?? true;
  const [diff, setDiff] = useState<Diff>();
  const [failed, setFailed] = useState('');
  const [round, again] = useState(0);
  useEffect(() => {
    let current = true;
    const read = undo.diff(p.session);
    read.then((d) => { if (current) { setDiff(d); setFailed(''); } }, (e: unknown) => current && (signedOut(e) || setFailed(words(e))));
    return () => {
      current = false;
    };
  }, [p.session, p.runs, round]);
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">What it has changed</h2>
      <Failed why={failed} />
      <p class="sub" role="status">{diff ? total(diff.files, diff.more) : !failed && 'Comparing…'}</p>
      <ul class="files">{diff?.files.map((f) => <li key={f.id}><File of={f} read={() => undo.lines(p.session, f.id)} round={round} /></li>)}</ul>
      {diff && diff.git.length > 0 && <h3>In git</h3>}
      <Steps of={diff?.git ?? []} />
      {diff && diff.more > 0 && <p class="note">{diff.more.toLocaleString('en')} more: <code>bawn diff {plain(p.session.slice(0, 8))}</code> shows them.</p>}
      <div class="actions start">
        <button type="button" onClick={() => again(round + 1)}>Compare again</button>
      </div>
      {!readOnly && p.runs && <p class="note">A session still runs there. When it has ended, this can be taken back.</p>}
      {!readOnly && !p.runs && <Undo of={p} onDone={() => again(round + 1)} />}
    </section>
  );
}

/** total sums up files. */
export function total(files: readonly ChangedFile[], more: number): string {
  if (files.length === 0) return 'No file differs.';
  const sum = (of: 'added' | 'deleted') => files.reduce((n, f) => n + f[of], 0);
  const n = files.length + more;
  return `${n.toLocaleString('en')} file${n > 1 ? 's' : ''}, +${sum('added')} −${sum('deleted')} lines`;
}

/** File is one that differs, with its lines once it is opened; read gets them. */
export function File({ of: f, read, round, children }: { of: ChangedFile; read: () => Promise<Lines>; round: number; children?: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const known = f.kind !== 'unspecified';
  return (
    <details class={'file ' + f.kind} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {known && <span class="what">{f.kind}</span>} <span class="name"><Line of={f.name} mono /></span>{' '}
        {known && <span class="meta">{f.counted && f.added + f.deleted > 0 ? `+${f.added} −${f.deleted}` : `${size(f.oldSize)} to ${size(f.newSize)}`}</span>}
      </summary>
      {f.oldMode !== f.newMode && <p class="note">Mode {f.oldMode || 'none'} to {f.newMode || 'none'}.</p>}
      {children}
      {open && known && (f.binary ? <p class="note">Its content is no text.</p> : <Text key={round} read={read} />)}
    </details>
  );
}

function Text({ read }: { read: () => Promise<Lines> }) {
  const [lines, setLines] = useState<Lines>();
  const [failed, setFailed] = useState('');
  useEffect(() => {
    let current = true;
    read().then((l) => current && setLines(l), (e: unknown) => current && (signedOut(e) || setFailed(words(e))));
    return () => {
      current = false;
    };
  }, []);
  if (!lines) return failed ? <Failed why={failed} /> : <p class="sub" role="status">Comparing…</p>;
  return (
    <>
      {lines.missing && <p class="note">Its content can't be shown: <Line of={lines.missing} /></p>}
      {lines.hunks.length > 0 && (
        <pre class="diff" tabIndex={0} role="region" aria-label="Changed lines">{lines.hunks.map((h, i) => <Hunks key={i} of={h} />)}</pre>
      )}
      {lines.hunks.length === 0 && !lines.missing && <p class="note">No line differs.</p>}
      {lines.cut && <p class="note warn">It is too long; there is more than is shown here: look at it with <code>bawn diff</code>.</p>}
    </>
  );
}

const kinds: Readonly<Record<string, string>> = { '+': 'new', '-': 'old', '\\': 'none' };

/** tabbed writes a line with everything odd spelled out, but for tabs. */
export function tabbed(line: string): string {
  return line.split('\t').map(plain).join('\t');
}

function Hunks({ of: h }: { of: Hunk }) {
  return (
    <>
      <span class="at">@@ −{h.oldStart},{h.oldLines} +{h.newStart},{h.newLines} @@{'\n'}</span>
      {h.lines.map((l, i) => <span key={i} class={kinds[l[0] ?? ''] ?? 'same'}>{tabbed(l)}{'\n'}</span>)}
    </>
  );
}

function Undo({ of: p, onDone }: { of: Past; onDone: () => void }) {
  const [seen, setSeen] = useState<Preview>();
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const [done, setDone] = useState('');
  const attempt = async (what: () => Promise<void>) => {
    setBusy(true);
    setFailed('');
    try {
      await what();
    } catch (e) {
      setSeen(undefined);
      if (!signedOut(e)) setFailed(words(e));
    }
    setBusy(false);
  };
  const look = () => attempt(async () => {
    setDone('');
    setSeen(await undo.preview(p.session));
  });
  const take = (of: Preview) => attempt(async () => {
    const undone = await undo.undo(p.session, of, await touch(of.options));
    setSeen(undefined);
    setDone(`${undone.done} change${undone.done === 1 ? '' : 's'} taken back. “bawn undo ${undone.before}” undoes that.`);
    setFailed(undone.failed);
    onDone();
    readPasts();
  });
  return (
    <div class="end">
      <button type="button" class="deny" disabled={busy} onClick={look}>{busy && !seen ? 'Comparing…' : 'Undo what it has changed…'}</button>
      <p class="note" role="status">{done && plain(done)}</p>
      <Failed why={failed} />
      {seen && (
        <Dialog title="Take this back?" yes={seen.ceremony ? 'Undo with your passkey' : 'Close'} danger={seen.ceremony !== ''}
          onYes={() => { if (!seen.ceremony) setSeen(undefined); else if (!busy) void take(seen); }} onNo={() => setSeen(undefined)}>
          {seen.killed && <p class="note warn">The session was killed: whatever differs from its start counts as its own.</p>}
          {seen.steps.length === 0 && <p>There is nothing to undo.</p>}
          <Steps of={seen.steps} />
          {seen.kept.length > 0 && <h3>This stays as you have made it</h3>}
          <Steps of={seen.kept} />
          {seen.more > 0 && <p class="note warn">{seen.more.toLocaleString('en')} more are not listed here.</p>}
          {seen.ceremony && <p class="note">What is there now is kept before, so that this can be undone.</p>}
        </Dialog>
      )}
    </div>
  );
}

/** Steps lists what a plan does. */
export function Steps({ of }: { of: readonly Step[] }) {
  if (of.length === 0) return null;
  return <ul class="steps plan">{of.map((s, i) => <li key={i}><strong>{plain(s.what)}</strong> <Line of={s.name} mono />{s.detail && <> <Line of={s.detail} /></>}</li>)}</ul>;
}
