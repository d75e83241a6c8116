// What a session has changed on its copy, and how it is taken over or discarded.
import { useEffect, useState } from 'preact/hooks';
import { me, readPasts, signedOut, spoken, words } from '../live.ts';
import { supported, touch } from '../passkey.ts';
import { plain } from '../reveal.ts';
import { use } from '../store.ts';
import { copies as api, type Selection } from '../wire/api.ts';
import type { ChangedFile, Copy, Listing, Taking } from '../wire/messages.ts';
import { File, Steps, total } from './changes.tsx';
import { Dialog, Failed, Line } from './text.tsx';

/** OnCopy shows a copy: what is held back first. */
export function OnCopy({ of: c }: { of: Copy }) {
  const readOnly = use(me)?.readOnly ?? true;
  const [seen, setSeen] = useState<Listing>();
  const [failed, setFailed] = useState('');
  const [round, again] = useState(0);
  useEffect(() => {
    let current = true;
    const read = api.files(c.session);
    read.then((l) => { if (current) { setSeen(l); setFailed(''); } }, (e: unknown) => current && (signedOut(e) || setFailed(words(e))));
    return () => {
      current = false;
    };
  }, [c.session, c.runs, round]);
  const may = !readOnly && !c.runs && supported();
  return (
    <section aria-labelledby="copy">
      <h2 id="copy">What it has changed on its copy</h2>
      <Failed why={failed} />
      <p class="sub" role="status">{seen ? total(seen.files, seen.more) : !failed && 'Comparing…'}</p>
      {c.runs && <p class="note">The session runs: this is as it was at the last comparison. When it has ended, this can be taken over.</p>}
      {seen && <Files key={seen.listing} of={c} seen={seen} round={round} may={may} onDone={() => again(round + 1)} />}
      <div class="actions start">
        <button type="button" onClick={() => again(round + 1)}>Compare again</button>
      </div>
      <p class="note">
        {!readOnly && !supported() && 'This browser has no passkey for this page, and without a touch nothing is taken over here. '}
        At a terminal: <code>bawn diff {plain(c.name)}</code>, <code>bawn apply {plain(c.name)}</code>, <code>bawn discard {plain(c.name)}</code>.
      </p>
    </section>
  );
}

interface Shown {
  readonly of: Copy;
  readonly seen: Listing;
  readonly round: number;
  readonly may: boolean;
  readonly onDone: () => void;
}

function Files({ of: c, seen, round, may, onDone }: Shown) {
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const [wish, setWish] = useState<Wish>();
  const held = seen.files.filter((f) => f.held);
  const stays = seen.files.filter((f) => f.stays);
  const rest = seen.files.filter((f) => !f.held && !f.stays);
  const read = (f: ChangedFile) => () => api.lines(c.session, f.id);
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  return (
    <>
      {held.length > 0 && <h3>Held back</h3>}
      <ul class="files">{held.map((f) => (
        <li key={f.id}><File of={f} read={read(f)} round={round}>
          <p class="note warn"><Line of={f.held} /></p>
          {may && <button type="button" class="deny" onClick={() => setWish({ files: [f], held: true })}>Open this one…</button>}
          <p class="note">At a terminal: <code>{byHand(c, f)}</code></p>
        </File></li>
      ))}</ul>
      {stays.length > 0 && <h3>Can’t be taken over</h3>}
      <ul class="files">{stays.map((f) => <li key={f.id}><File of={f} read={read(f)} round={round}><p class="note"><Line of={f.stays} /></p></File></li>)}</ul>
      {rest.length > 0 && <h3>Changed</h3>}
      <ul class="files">{rest.map((f) => (
        <li key={f.id} class={may ? 'choice' : ''}>
          {may && <input type="checkbox" aria-label={'Choose ' + plain(f.name)} checked={chosen.has(f.id)} onChange={() => toggle(f.id)} />}
          <File of={f} read={read(f)} round={round} />
        </li>
      ))}</ul>
      {seen.more > 0 && <p class="note">{seen.more.toLocaleString('en')} more: <code>bawn diff {plain(c.name)}</code> shows them.</p>}
      {seen.commits.length > 0 && <h3>In git</h3>}
      <Steps of={seen.commits} />
      {may && (
        <div class="actions start">
          <button type="button" class="allow" disabled={chosen.size === 0 && rest.length === 0} onClick={() => setWish({ files: rest.filter((f) => chosen.has(f.id)), held: false })}>
            {chosen.size === 0 ? 'Apply all…' : `Apply the chosen ${chosen.size}…`}
          </button>
        </div>
      )}
      {may && <Take of={c} listing={seen.listing} wish={wish} onDone={onDone} onEnd={() => setWish(undefined)} />}
      {may && <Discard of={c} listing={seen.listing} files={seen.files.length + seen.more} />}
    </>
  );
}

// A Wish is what a human wants to take over: all, if there are no files.
interface Wish {
  readonly files: readonly ChangedFile[];
  readonly held: boolean;
}

// byHand is the command that opens what is held back. A name that a shell could read
// otherwise is not put into it.
function byHand(c: Copy, f: ChangedFile): string {
  return `bawn apply ${c.name} ${/^[\w.][\w./-]*$/.test(f.name) ? f.name : 'PATH'} --held`;
}

// untouched says what else does it, where the human has no passkey to touch.
function untouched(e: unknown, command: string): string {
  return e instanceof DOMException ? `There was no touch of your passkey, so nothing is done. At a terminal: ${command}` : words(e);
}

// Take shows what would be done, and does it with a touch.
function Take({ of: c, listing, wish, onDone, onEnd }: { of: Copy; listing: string; wish: Wish | undefined; onDone: () => void; onEnd: () => void }) {
  const [plan, setPlan] = useState<Taking>();
  const [failed, setFailed] = useState('');
  const [done, setDone] = useState('');
  const [busy, setBusy] = useState(false);
  const one = wish?.held ? wish.files[0] : undefined;
  const selection: Selection = { session: c.session, listing, files: wish?.files.map((f) => f.id) ?? [], held: wish?.held ?? false };
  const attempt = async (what: () => Promise<void>) => {
    setBusy(true);
    setFailed('');
    try {
      await what();
    } catch (e) {
      setPlan(undefined);
      onEnd();
      if (!signedOut(e)) setFailed(untouched(e, one ? byHand(c, one) : `bawn apply ${c.name}`));
    }
    setBusy(false);
  };
  useEffect(() => {
    if (wish) void attempt(async () => {
      setDone('');
      setPlan(await api.preview(selection));
    });
  }, [wish]);
  const end = () => {
    setPlan(undefined);
    onEnd();
  };
  const take = (p: Taking) => attempt(async () => {
    const taken = await api.apply(selection, p, await touch(p.options));
    end();
    setDone(`${taken.done} change${taken.done === 1 ? '' : 's'} taken over. “bawn undo ${taken.before}” takes that back.`);
    setFailed(taken.failed);
    onDone();
  });
  return (
    <>
      <p class="note" role="status">{done ? plain(done) : wish && !plan && 'Comparing…'}</p>
      <Failed why={failed} />
      {wish && plan && (
        <Dialog title={one ? 'Open what is held back?' : 'Take this over?'} yes={plan.ceremony ? 'Apply with your passkey' : 'Close'} danger={one !== undefined}
          onYes={() => { if (!plan.ceremony) end(); else if (!busy) void take(plan); }} onNo={end}>
          {one && <p class="note warn"><Line of={one.name} mono />: <Line of={one.held} /></p>}
          {plan.steps.length === 0 && <p>There is nothing to take over.</p>}
          <Steps of={plan.steps} />
          {plan.conflicts.length > 0 && <h3>You have changed this, too: yours stays</h3>}
          <Steps of={plan.conflicts} />
          {plan.conflicts.length > 0 && <p class="note">At a terminal, <code>bawn apply {plain(c.name)} --conflicts session</code> takes the session’s lines.</p>}
          {plan.ceremony && <p class="note">What is there now is kept before, so that this can be undone.</p>}
        </Dialog>
      )}
    </>
  );
}

// Discard removes the copy, with a touch.
function Discard({ of: c, listing, files }: { of: Copy; listing: string; files: number }) {
  const [asks, ask] = useState(false);
  const [failed, setFailed] = useState('');
  const discard = async () => {
    ask(false);
    setFailed('');
    try {
      const begun = await api.beginDiscard(c.session, listing);
      await api.discard(c.session, listing, begun.ceremony, await touch(begun.options));
      spoken.set('The copy is removed.');
      readPasts();
    } catch (e) {
      if (!signedOut(e)) setFailed(untouched(e, `bawn discard ${c.name}`));
    }
  };
  return (
    <div class="end">
      <button type="button" class="deny" onClick={() => ask(true)}>Discard this copy…</button>
      <Failed why={failed} />
      {asks && (
        <Dialog title="Discard this copy?" yes="Discard with your passkey" danger onYes={discard} onNo={() => ask(false)}>
          <p>{files.toLocaleString('en')} changed file{files === 1 ? '' : 's'} and all commits of this session go. What was taken over stays. Nothing brings the rest back.</p>
        </Dialog>
      )}
    </div>
  );
}
