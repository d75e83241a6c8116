// Passkeys: the browser and the machine prove to each other who they are; no
// password exists.
import { auth } from './wire/api.ts';
import type { Me } from './wire/messages.ts';

/** supported says whether this browser can hold a passkey for this page. */
export function supported(): boolean {
  return isSecureContext && 'PublicKeyCredential' in window && typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function';
}

const fromJSON = (options: string) => (JSON.parse(options) as { publicKey: never }).publicKey;

async function credential(made: Promise<Credential | null>): Promise<string> {
  const c = await made;
  if (!(c instanceof PublicKeyCredential)) throw new Error('the browser gave no passkey');
  return JSON.stringify(c.toJSON());
}

/** pair makes a passkey with a code of "bawn pair" and logs in. */
export async function pair(code: string, name: string): Promise<Me | undefined> {
  const begun = await auth.beginPair(code);
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(fromJSON(begun.options));
  return auth.finishPair(begun.ceremony, name, await credential(navigator.credentials.create({ publicKey })));
}

/** login logs in with the passkey of an earlier pairing. */
export async function login(): Promise<Me | undefined> {
  const begun = await auth.beginLogin();
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(fromJSON(begun.options));
  return auth.finishLogin(begun.ceremony, await credential(navigator.credentials.get({ publicKey })));
}

/** touch shows with the passkey of this device that its human is there. */
export async function touch(options: string): Promise<string> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(fromJSON(options));
  return credential(navigator.credentials.get({ publicKey }));
}

/** codeOf returns the pairing code of an address's fragment, or ''. */
export function codeOf(fragment: string): string {
  return /^#pair=(.+)$/.exec(fragment)?.[1] ?? '';
}

/** nameOf guesses what a human would call this browser. */
export function nameOf(agent: string): string {
  const has = (word: string) => agent.includes(word);
  const device = has('iPhone') ? 'iPhone' : has('iPad') ? 'iPad' : has('Android') ? 'Android' : has('Macintosh') ? 'Mac' : has('Windows') ? 'Windows' : has('Linux') ? 'Linux' : 'Browser';
  const browser = has('Firefox/') ? 'Firefox' : has('Edg/') ? 'Edge' : has('Chrome/') ? 'Chrome' : has('Safari/') ? 'Safari' : '';
  return browser ? `${browser} on ${device}` : device;
}
