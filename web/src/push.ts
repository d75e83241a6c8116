// Notices when the page is closed.
import { devices } from './wire/api.ts';

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}

/** install registers the service worker; without one the page works while it is open. */
export async function install(): Promise<void> {
  if (!('serviceWorker' in navigator)) return;
  const types = (window as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy('bawn', {
    createScriptURL: (url) => {
      if (url !== '/sw.js') throw new TypeError('the page has one worker');
      return url;
    },
  });
  await navigator.serviceWorker.register(policy?.createScriptURL('/sw.js') ?? '/sw.js', { scope: '/' }).catch(() => undefined);
}

/** possible says whether this browser can get notices. */
export function possible(): boolean {
  return 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window;
}

/** on asks the human and subscribes. */
export async function on(): Promise<void> {
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('This browser does not let the page show notices; allow them in its settings.');
  const worker = await navigator.serviceWorker.ready;
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: await devices.pushKey() });
  const { endpoint = '', keys = {} } = subscription.toJSON();
  await devices.subscribe({ endpoint, p256dh: keys['p256dh'] ?? '', auth: keys['auth'] ?? '' });
}

/** off ends the notices of this browser. */
export async function off(): Promise<void> {
  const worker = await navigator.serviceWorker.getRegistration();
  await (await worker?.pushManager.getSubscription())?.unsubscribe();
  await devices.unsubscribe();
}
