// The frame around the views.
import { useEffect } from 'preact/hooks';
import { approvals, code, link, me, spoken, tryNow, watchApprovals, watchSessions } from '../live.ts';
import { places, route, to, type Place } from '../route.ts';
import { use } from '../store.ts';
import { Approvals } from './approvals.tsx';
import { Audit } from './audit.tsx';
import { Devices } from './devices.tsx';
import { Door } from './door.tsx';
import { Policy } from './policy.tsx';
import { Sessions } from './sessions.tsx';
import { span, useClock } from './text.tsx';

/** App is the whole page. */
export function App() {
  const self = use(me);
  const pairing = use(code);
  if (!self) return <main class="door"><img src="/icon.svg" width="72" height="72" alt="" /><h1>Bawn</h1><Lost /></main>;
  if (!self.loggedIn || pairing) return <Door key={pairing} code={pairing} onPaired={() => code.set('')} />;
  return <Inside />;
}

function Inside() {
  useEffect(watchApprovals, []);
  useEffect(watchSessions, []);
  const { place, id } = use(route);
  const waiting = [...use(approvals).values()].filter((a) => a.state === 'pending').length;
  useEffect(() => {
    document.title = (waiting > 0 ? `(${waiting}) ` : '') + `${titles[place]} · Bawn`;
  }, [waiting, place]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main')?.focus()}>Skip to the content</button>
      <header class="bar">
        <span class="brand"><img src="/icon.svg" width="28" height="28" alt="" />Bawn</span>
        <nav aria-label="Main"><ul>{places.map((p) => <li key={p}><Tab of={p} here={p === place} waiting={waiting} /></li>)}</ul></nav>
      </header>
      <main tabIndex={-1} key={place}>
        <Lost />
        {place === 'approvals' && <Approvals chosen={id} />}
        {place === 'sessions' && <Sessions chosen={id} />}
        {place === 'audit' && <Audit />}
        {place === 'policy' && <Policy />}
        {place === 'devices' && <Devices />}
      </main>
      <p class="quiet" role="status" aria-live="polite">{use(spoken)}</p>
    </>
  );
}

const titles: Readonly<Record<Place, string>> = { approvals: 'Approvals', sessions: 'Sessions', audit: 'Audit', policy: 'Policy', devices: 'Devices' };
const signs: Readonly<Record<Place, string>> = {
  approvals: 'M5 12.5l4.5 4.5L19 7.5',
  sessions: 'M4 6h16v12H4zM7 10l3 2.5L7 15M12.5 15H16',
  audit: 'M6 5h12M6 10h12M6 15h8M6 20h5',
  policy: 'M12 4l7 3v5c0 4-3 7-7 8-4-1-7-4-7-8V7z',
  devices: 'M8 3h8v18H8zM11 18h2',
};

function Tab({ of: p, here, waiting }: { of: Place; here: boolean; waiting: number }) {
  const n = p === 'approvals' ? waiting : 0;
  return (
    <a href={to(p)} aria-current={here ? 'page' : undefined}>
      <svg viewBox="0 0 24 24" aria-hidden="true"><path d={signs[p]} /></svg>
      <span>{titles[p]}</span>
      {n > 0 && <span class="count"><span class="quiet">, </span>{n > 99 ? '99+' : n}<span class="quiet"> waiting</span></span>}
    </a>
  );
}

// Lost says that what is seen may be old.
function Lost() {
  const { up, next, why } = use(link);
  const now = useClock(1000);
  const silent = up || (next === 0 && why === '');
  return (
    <div role="status">
      {!silent && (
        <div class="lost">
          <p><strong>Not connected.</strong> {why} What you see may be old, and nothing can be answered.</p>
          <p class="meta">{next > now ? <>Trying again in <span aria-hidden="true">{span(next - now)}</span></> : 'Trying…'}</p>
          <button type="button" onClick={tryNow}>Try now</button>
        </div>
      )}
    </div>
  );
}
