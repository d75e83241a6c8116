// What the policy would say.
import { useState } from 'preact/hooks';
import { signedOut, words } from '../live.ts';
import { explain, type Ask } from '../wire/api.ts';
import type { Explained, ExplainedStep } from '../wire/messages.ts';
import { Exact, Fact, Failed, Line, Prose, Title } from './text.tsx';

/** Policy is the box in which the policy can be asked. */
export function Policy() {
  const [said, setSaid] = useState<Explained>();
  const [failed, setFailed] = useState('');
  const ask = async (e: SubmitEvent) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const get = (name: string) => String(data.get(name) ?? '');
    const q: Ask = { action: get('action'), kind: get('kind'), operation: get('operation'), dir: get('dir'), mode: get('mode'), contained: data.has('contained') };
    setFailed('');
    try {
      setSaid(await explain(q));
    } catch (wrong) {
      setSaid(undefined);
      if (!signedOut(wrong)) setFailed(words(wrong));
    }
  };
  return (
    <>
      <div class="head"><Title>Policy</Title><p class="sub">What would happen, and why. Nothing is done and nobody is asked.</p></div>
      <form class="filters" onSubmit={ask} aria-label="Ask the policy">
        <label class="field whole">Action<textarea name="action" rows={2} required spellcheck={false} placeholder="git push --force origin main" /></label>
        <label class="field">Kind
          <select name="kind">{['command', 'filesystem', 'network', 'tool'].map((k) => <option key={k}>{k}</option>)}</select>
        </label>
        <label class="check"><input type="checkbox" name="contained" checked /> In a sandbox</label>
        <details>
          <summary>More</summary>
          <div class="grid">
            <label class="field">Operation
              <select name="operation"><option value="">the usual one</option>{['read', 'write', 'create', 'delete', 'exec', 'connect', 'call'].map((k) => <option key={k}>{k}</option>)}</select>
            </label>
            <label class="field">Working directory<input name="dir" autocomplete="off" placeholder="/home/you/project" /></label>
            <label class="field">Mode<input name="mode" autocomplete="off" placeholder="as configured" /></label>
          </div>
        </details>
        <div class="actions start"><button type="submit" class="allow">Explain</button></div>
      </form>
      <Failed why={failed} />
      <div aria-live="polite">{said && <Said of={said} />}</div>
    </>
  );
}

const heads: Readonly<Record<string, string>> = { allow: 'Allowed', deny: 'Denied', ask: 'A human is asked' };

function Said({ of: x }: { of: Explained }) {
  return (
    <section class={'card said ' + (x.verdict in heads ? x.verdict : 'deny')} aria-label="Answer">
      <h2>{heads[x.verdict] ?? x.verdict}</h2>
      <p><Prose of={x.reason} /></p>
      {x.canonical && <Exact of={x.canonical} label="What would run" />}
      <dl class="facts">
        <Fact name="Rule">{x.rule && <Line of={x.rule} mono />}</Fact>
        <Fact name="From">{x.source && <Line of={x.source} />}</Fact>
        <Fact name="Mode"><Line of={[x.mode, x.autonomy, x.contained ? 'in a sandbox' : 'without a sandbox'].filter(Boolean).join(', ')} /></Fact>
        <Fact name="In">{x.cwd && <Line of={x.cwd} mono />}</Fact>
      </dl>
      <Steps of={x.steps} />
      {x.parts.length > 1 && x.parts.map((p, i) => (
        <details key={i}>
          <summary><Line of={p.verdict} />: <Line of={p.text} mono /></summary>
          <p><Prose of={p.reason} />{p.unproven && <> (<Line of={p.unproven} />)</>}</p>
          <Steps of={p.steps} />
        </details>
      ))}
      {x.alternatives.length > 0 && (
        <>
          <h3>It would be otherwise</h3>
          <ul>{x.alternatives.map((a, i) => <li key={i}><strong>{heads[a.verdict] ?? a.verdict}</strong>: <Prose of={a.change} /></li>)}</ul>
        </>
      )}
      {x.advice && <p class="note"><Prose of={x.advice} /></p>}
    </section>
  );
}

function Steps({ of }: { of: readonly ExplainedStep[] }) {
  if (of.length === 0) return null;
  return (
    <details>
      <summary>Step by step</summary>
      <ol class="steps">{of.map((s, i) => <li key={i}><strong><Line of={s.stage} /></strong> {s.verdict && <em><Line of={s.verdict} /></em>} <Prose of={s.why} /></li>)}</ol>
    </details>
  );
}
