import assert from 'node:assert/strict';
import { phone, settle, until } from './browser.mjs';

const broken = /ERR_(CONNECTION|EMPTY|INCOMPLETE|FAILED|NETWORK|INTERNET)|Failed to load resource|net::/;

/** The machine goes away and comes back; what happened meanwhile is seen. */
export async function reconnects(s) {
  s.expected.push(broken);
  await s.world.tell('ask', { name: ['push', 'host'] });
  const page = await s.inside(phone);
  const push = page.locator('article[data-id="qpush"]');
  await push.waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await s.world.tell('down');
  await page.getByText('Not connected.').waitFor();
  assert.ok(await push.getByRole('button', { name: 'Allow once' }).isDisabled(), 'what may be old can be answered');
  await s.shot('offline');
  await s.world.tell('elsewhere', { id: 'qpush' });
  await s.world.tell('up');
  await push.getByText('by anna at the terminal').waitFor();
  await page.getByText('Not connected.').waitFor({ state: 'detached' });
  await settle(page);
  await page.locator('article[data-id="qhost"]').getByRole('button', { name: 'Deny' }).tap();
  await page.locator('article[data-id="qhost"]').getByText('Denied for this session by').waitFor();
}

/** Without the machine the page itself still opens, and says so. */
export async function opensOffline(s) {
  s.expected.push(broken);
  const page = await s.inside(phone);
  await until(() => page.evaluate(() => navigator.serviceWorker.controller !== null), 'the worker has the page');
  await s.world.tell('down');
  await page.reload();
  await page.getByText('Not connected.').waitFor();
  await s.shot('alone');
  const kept = await page.evaluate(async () => (await Promise.all((await caches.keys()).map(async (n) => (await (await caches.open(n)).keys()).map((r) => new URL(r.url).pathname)))).flat());
  assert.ok(kept.length >= 5 && kept.every((p) => !p.startsWith('/bawn')), `the worker keeps ${kept}`);
  await s.world.tell('up');
  // It may have come back by itself already.
  await page.getByRole('button', { name: 'Try now' }).tap({ timeout: 1000 }).catch(() => undefined);
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
}

/** When the login ends the page asks for one. */
export async function loginEnds(s) {
  s.expected.push(broken, /status of 401/);
  const page = await s.inside(phone);
  await s.world.tell('logout');
  await page.getByRole('button', { name: 'Log in with your passkey' }).tap();
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
}

/** A wrong code is refused, in words. */
export async function wrongCode(s) {
  s.expected.push(/status of 403/);
  const page = await s.page(phone, '#pair=wrong');
  await page.getByRole('button', { name: 'Create a passkey' }).tap();
  await page.getByRole('alert').getByText('this code is unknown').waitFor();
}

/** The policy of the page holds: what would break it is seen by these tests. */
export async function policyHolds(s) {
  const page = await s.page(phone);
  await page.getByRole('button', { name: 'Log in with your passkey' }).waitFor();
  s.check();
  const made = await page.evaluate(() => {
    document.body.append(Object.assign(document.createElement('style'), { textContent: 'body { color: red }' }));
    try {
      document.body.innerHTML = '<b>x</b>';
      return 'markup';
    } catch (e) {
      return e.name;
    }
  });
  assert.equal(made, 'TypeError');
  await page.evaluate(() => fetch('https://elsewhere.invalid/').catch(() => undefined));
  for (const want of ['policy: style-src', 'policy: require-trusted-types-for', 'policy: connect-src']) {
    await until(() => s.faults.some((f) => f.includes(want)), `${want} in ${s.faults.join('\n')}`);
  }
  s.faults.length = 0;
}

/** A notice is shown as it came, and leads into the page. */
export async function notice(s) {
  const page = await s.inside(phone);
  await page.context().grantPermissions(['notifications']);
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  const devtools = await page.context().newCDPSession(page);
  const registered = new Promise((done) => devtools.on('ServiceWorker.workerRegistrationUpdated', (e) => e.registrations[0] && done(e.registrations[0].registrationId)));
  await devtools.send('ServiceWorker.enable');
  const registrationId = await registered;
  for (const [data, want] of [
    [JSON.stringify({ title: 'Bawn', body: 'Session ab12 asks to run a command: open Bawn', url: '/#approvals', tag: 'ab12' }), 'Session ab12 asks to run a command: open Bawn'],
    ['not JSON', 'A question waits for you'],
  ]) {
    // Chromium drops a message for a worker that it is about to start or stop, and says nothing.
    await until(async () => {
      await devtools.send('ServiceWorker.deliverPushMessage', { origin: s.world.origin, registrationId, data });
      return page.evaluate(async (body) => (await (await navigator.serviceWorker.ready).getNotifications()).some((n) => n.body === body), want);
    }, want);
  }
}
