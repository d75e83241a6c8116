// Pairing and login.
import { useState } from 'preact/hooks';
import { me, words } from '../live.ts';
import * as passkey from '../passkey.ts';
import { Failure } from '../wire/connect.ts';
import type { Me } from '../wire/messages.ts';
import { Failed, Title } from './text.tsx';

/** Door lets a browser in: with a code if there is one, else with its passkey. */
export function Door({ code, onPaired }: { code: string; onPaired: () => void }) {
  const [pairs, setPairs] = useState(code !== '');
  if (!passkey.supported()) return <main class="door"><Title>Bawn</Title><p class="note warn">This browser can’t hold a passkey for this address. Use another one, or <code>bawn approvals</code> on the machine.</p></main>;
  return (
    <main class="door">
      <img src="/icon.svg" width="72" height="72" alt="" />
      {pairs ? <Pair code={code} onPaired={onPaired} /> : <Login />}
      <button type="button" class="plain" onClick={() => { if (code) onPaired(); setPairs(!pairs); }}>{pairs ? 'I have paired this browser before' : 'Pair this browser with a code'}</button>
    </main>
  );
}

/** why says in words what kept somebody out. */
export function why(e: unknown): string {
  if (e instanceof DOMException && e.name === 'NotAllowedError') return 'The passkey was not used: it was cancelled, or time was up.';
  if (e instanceof DOMException && e.name === 'InvalidStateError') return 'This browser has a passkey for this machine already; log in with it.';
  if (e instanceof Failure && e.code === 'resource_exhausted') return 'Too many attempts. Wait a minute.';
  return words(e);
}

// useEntry runs one attempt at a time.
function useEntry(enter: () => Promise<Me | undefined>, then: () => void = () => undefined) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const go = async () => {
    setBusy(true);
    setFailed('');
    try {
      me.set(await enter());
      then();
    } catch (e) {
      setFailed(why(e));
      setBusy(false);
    }
  };
  return { busy, failed, go };
}

function Login() {
  const { busy, failed, go } = useEntry(passkey.login);
  return (
    <>
      <Title>Bawn</Title>
      <p>The agents on your machine ask here before they do what your policy does not settle.</p>
      <button type="button" class="allow wide" disabled={busy} onClick={go}>Log in with your passkey</button>
      <Failed why={failed} />
    </>
  );
}

function Pair({ code: given, onPaired }: { code: string; onPaired: () => void }) {
  const [code, setCode] = useState(given);
  const [name, setName] = useState(passkey.nameOf(navigator.userAgent));
  const { busy, failed, go } = useEntry(() => passkey.pair(code.trim(), name.trim()), onPaired);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    void go();
  };
  return (
    <>
      <Title>Pair this browser</Title>
      <p>Run <code>bawn pair</code> on the machine: it prints the code. The passkey stays on this device.</p>
      <form onSubmit={submit}>
        <label class="field">Code<input required autocomplete="one-time-code" autocapitalize="off" spellcheck={false} value={code} onInput={(e) => setCode(e.currentTarget.value)} /></label>
        <label class="field">Name of this device<input required maxLength={64} value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <button type="submit" class="allow wide" disabled={busy}>Create a passkey</button>
      </form>
      <Failed why={failed} />
    </>
  );
}
