// The queue of questions.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { approvals, forget, link, me } from '../live.ts';
import { use } from '../store.ts';
import type { Approval } from '../wire/messages.ts';
import { Card } from './card.tsx';
import { Title } from './text.tsx';

const step = 50; // questions that are drawn at a time

/** sorted puts the oldest question first: a new one moves none that is there. */
export function sorted(all: Iterable<Approval>): Approval[] {
  const at = (a: Approval) => a.asked?.getTime() ?? 0;
  return [...all].sort((a, b) => at(a) - at(b) || (a.id < b.id ? -1 : 1));
}

/** Approvals is the view of all questions. */
export function Approvals({ chosen }: { chosen: string }) {
  const all = sorted(use(approvals).values());
  const { up } = use(link);
  const self = use(me);
  const [drawn, draw] = useState(step);
  const waiting = all.filter((a) => a.state === 'pending').length;
  const shown = all.slice(0, drawn);
  const steady = useSteady(shown.map((a) => a.id + a.state).join());
  return (
    <>
      <div class="head">
        <Title>Approvals</Title>
        <p class="sub">{waiting === 0 ? 'Nothing waits for you.' : waiting === 1 ? 'One question waits.' : `${waiting} questions wait.`}</p>
      </div>
      {self?.readOnly && <p class="note">This device may look, and answer nothing.</p>}
      {all.length === 0 && <Empty up={up} />}
      <ol class="cards">
        {shown.map((a) => (
          <li key={a.id}><Card of={a} able={up && !self?.readOnly} steady={steady} chosen={a.id === chosen} /></li>
        ))}
      </ol>
      {all.length > shown.length && (
        <button type="button" class="wide" onClick={() => draw(drawn + step)}>Show {Math.min(step, all.length - shown.length)} more ({all.length - shown.length} not shown)</button>
      )}
      {all.length > waiting && <button type="button" class="wide" onClick={forget}>Clear what is answered</button>}
    </>
  );
}

function Empty({ up }: { up: boolean }) {
  return (
    <div class="empty">
      <p>{up ? 'When an agent wants something that your policy does not settle, it asks here.' : 'Not connected yet.'}</p>
    </div>
  );
}

// A finger that is on its way to a button must not meet another one: after the
// list has changed, answers are refused for a moment.
function useSteady(list: string): () => boolean {
  const changed = useRef(0);
  useLayoutEffect(() => {
    changed.current = performance.now();
  }, [list]);
  return () => performance.now() - changed.current > 400;
}
