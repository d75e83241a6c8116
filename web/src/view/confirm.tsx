// The step before an answer becomes a rule.
import type { Approval, Rule } from '../wire/messages.ts';
import { Dialog, Exact, Fact } from './text.tsx';

/** Confirm shows the rule that an answer would create, and what else it covers. */
export function Confirm({ of: a, verdict, onYes, onNo }: { of: Approval; verdict: 'allow' | 'deny'; onYes: () => void; onNo: () => void }) {
  const allow = verdict === 'allow';
  const made = allow ? a.always : a.never;
  const rules = made.length === 1 ? 'this rule' : `these ${made.length} rules`;
  const then = allow ? 'allow' : 'deny';
  return (
    <Dialog title={allow ? 'Allow always?' : 'Deny always?'} yes={made.length > 0 ? `Create ${rules} and ${then}` : 'Deny for this session'} danger={!allow} onYes={onYes} onNo={onNo}>
      {made.length === 0 && <p>No rule says exactly this, so it is denied as long as the session runs.</p>}
      {made.length > 0 && <p>{allow ? 'In every session from now on, without asking again:' : 'In no session from now on, without asking again:'}</p>}
      {made.map((r, i) => <Created key={i} rule={r} />)}
      {allow && a.covers.length > 0 && (
        <>
          <h3>It also covers</h3>
          <ul class="covers">{a.covers.map((c, i) => <li key={i}><Exact of={c} label={`Also covered, ${i + 1}`} /></li>)}</ul>
        </>
      )}
      {made.length > 0 && <p class="note">You can see and remove it with <code>bawn policy approved</code>.</p>}
    </Dialog>
  );
}

function Created({ rule }: { rule: Rule }) {
  return (
    <>
      <Exact of={rule.pattern} label="The rule" />
      <dl class="facts"><Fact name="For">{[rule.kind, ...rule.operations].join(', ')}</Fact></dl>
    </>
  );
}
