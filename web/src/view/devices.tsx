// Browsers that may use this page.
import { useEffect, useState } from 'preact/hooks';
import { me, signedOut, words } from '../live.ts';
import * as push from '../push.ts';
import { auth, devices as api } from '../wire/api.ts';
import type { Device } from '../wire/messages.ts';
import { use } from '../store.ts';
import { At, Dialog, Failed, Line, Title } from './text.tsx';

/** Devices lists the paired browsers. */
export function Devices() {
  const [all, setAll] = useState<readonly Device[]>();
  const [failed, setFailed] = useState('');
  const readOnly = use(me)?.readOnly ?? true;
  const run = async (act: () => Promise<unknown>) => {
    try {
      setFailed('');
      await act();
      setAll(await api.list());
    } catch (e) {
      if (!signedOut(e)) setFailed(words(e));
    }
  };
  useEffect(() => void run(async () => undefined), []);
  const out = async () => {
    await auth.logout().catch((e: unknown) => setFailed(words(e)));
    me.set(await auth.me().catch(() => me.value));
  };
  return (
    <>
      <div class="head"><Title>Devices</Title><p class="sub">To add one, run <code>bawn pair</code> on the machine.</p></div>
      <Failed why={failed} />
      <ul class="devices">
        {all?.map((d) => <li key={d.id} class="card"><One of={d} may={!readOnly || d.this} run={run} /></li>)}
      </ul>
      <div class="actions start"><button type="button" onClick={out}>Log out of this browser</button></div>
    </>
  );
}

type Run = (act: () => Promise<unknown>) => Promise<void>;

function One({ of: d, may, run }: { of: Device; may: boolean; run: Run }) {
  const [asks, ask] = useState(false);
  const revoke = () => {
    ask(false);
    void run(() => api.revoke(d.id));
  };
  return (
    <>
      <h2><Line of={d.name} />{d.this && <span class="tag">this one</span>}{d.readOnly && <span class="tag">may look only</span>}</h2>
      <p class="meta">Paired <At time={d.paired} />{d.seen && <> · last seen <At time={d.seen} /></>}</p>
      <div class="actions start">
        {d.this && push.possible() && (d.push ? <button type="button" onClick={() => run(push.off)}>Stop notices</button> : <button type="button" onClick={() => run(push.on)}>Get notices</button>)}
        {may && <button type="button" class="deny" onClick={() => ask(true)}>Revoke…</button>}
      </div>
      {asks && (
        <Dialog title="Revoke this device?" yes="Revoke it" danger onYes={revoke} onNo={() => ask(false)}>
          <p>{d.this ? 'This browser is logged out at once and' : 'It is logged out at once and'} has to be paired anew.</p>
        </Dialog>
      )}
    </>
  );
}
