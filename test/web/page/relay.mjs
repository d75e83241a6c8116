// Scenarios with the real relay behind the page: HTTPS, passkeys that are
// verified, the queue over its database, the audit log.
import assert from 'node:assert/strict';
import { desktop, phone, settle, until } from './browser.mjs';

const hostile = "echo \u202egnp\u200b; git push\x1b[2K\n<img src=x onerror='document.title=1'>";
const card = (page, line) => page.locator('article', { hasText: line });
const answer = (s, name) => until(async () => (await s.world.state()).answers[name], `an answer for ${name}`);

export async function enter(s, options, form = {}) {
  const url = new URL(await s.world.tell('pair', form));
  assert.equal(url.origin, s.world.origin);
  const page = await s.page(options, url.hash);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  return page;
}

/** A phone is paired, allows, denies, makes a rule; the askers get these answers. */
export async function realAnswers(s) {
  for (const [name, line] of [['once', 'make deploy'], ['no', 'rm -rf build'], ['always', 'git push origin main'], ['odd', hostile]]) await s.world.tell('ask', { name, line });
  const page = await enter(s, phone);
  await page.getByText('4 questions wait.').waitFor();
  await settle(page);
  await card(page, 'make deploy').getByRole('button', { name: 'Allow once' }).tap();
  await card(page, 'rm -rf build').getByText('Add a word to the agent').tap();
  await card(page, 'rm -rf build').getByLabel('Why').fill('keep it');
  await settle(page);
  await card(page, 'rm -rf build').getByRole('button', { name: 'Deny' }).tap();
  await settle(page);
  const always = page.locator('article').filter({ has: page.getByText('git push origin main', { exact: true }) });
  await always.getByRole('button', { name: 'Always…' }).tap();
  await page.getByRole('dialog').getByText('git push origin main:main').waitFor();
  await settle(page);
  await page.getByRole('dialog').getByRole('button', { name: 'Create this rule and allow' }).tap();
  const got = {};
  for (const name of ['once', 'no', 'always']) got[name] = await answer(s, name);
  const brief = Object.entries(got).map(([name, a]) => [name, a.Verdict, a.Scope, a.Why]);
  assert.deepEqual(brief, [['once', 'allow', 0, ''], ['no', 'deny', 0, 'keep it'], ['always', 'allow', 2, '']]);
  assert.match(got.once.By, /^web:Chrome on Linux/);
  const odd = await page.locator('article', { hasText: 'onerror' }).locator('pre').first().textContent();
  assert.ok(!/[\u202e\u200b\x1b]/.test(odd) && odd.includes("<img src=x onerror='document.title=1'>") && odd.includes('git push'), odd);
  assert.equal(await page.locator('article img').count(), 0);
  await s.shot('answered', true);
  await page.evaluate(() => { location.hash = '#audit'; });
  await page.getByText(/^In order: \d+ records/).waitFor();
  await page.locator('summary', { hasText: 'rm -rf build' }).first().waitFor();
  await s.accessible(page);
  assert.ok((await s.world.state()).inOrder);
}

/** The relay ends and comes back: the question still waits, the login still counts, another's answer is seen. */
export async function realRestart(s) {
  s.expected.push(/ERR_|Failed to load resource|net::/);
  await s.world.tell('ask', { name: 'a', line: 'make a' });
  await s.world.tell('ask', { name: 'b', line: 'make b' });
  const page = await enter(s, phone);
  await card(page, 'make a').waitFor();
  await card(page, 'make b').waitFor();
  await s.world.tell('down');
  await page.getByText('Not connected.').waitFor();
  await s.world.tell('up');
  await page.getByText('Not connected.').waitFor({ state: 'detached' });
  await s.world.tell('elsewhere', { name: 'a' });
  await card(page, 'by anna at the terminal').waitFor();
  await settle(page);
  await card(page, 'make b').getByRole('button', { name: 'Deny' }).tap();
  assert.equal((await answer(s, 'b')).Verdict, 'deny');
  assert.equal((await answer(s, 'a')).By, 'anna at the terminal');
}

/** A code counts once; a device that is revoked is out at once; one that only looks can't answer, whatever it sends. */
export async function realLimits(s) {
  s.expected.push(/status of 4(01|03)/);
  await s.world.tell('ask', { name: 'q', line: 'make q' });
  const looker = await enter(s, desktop, { readonly: '1' });
  await card(looker, 'make q').waitFor();
  assert.ok(await looker.getByRole('button', { name: 'Allow once' }).isDisabled());
  const refused = await looker.evaluate(async () => {
    const id = document.querySelector('article').dataset.id;
    const r = await fetch('/bawn.v1.ApprovalService/Answer', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ id, verdict: 'VERDICT_ALLOW', scope: 'SCOPE_ONCE' }) });
    return [r.status, (await r.json()).code];
  });
  assert.deepEqual(refused, [403, 'permission_denied']);
  const url = new URL(await s.world.tell('pair'));
  const first = await s.page(phone, url.hash);
  await first.getByRole('button', { name: 'Create a passkey' }).tap();
  await first.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  const second = await s.page(phone, url.hash);
  await second.getByRole('button', { name: 'Create a passkey' }).tap();
  await second.getByRole('alert').waitFor();
  await first.evaluate(() => { location.hash = '#devices'; });
  await first.locator('.card', { hasText: 'may look only' }).getByRole('button', { name: 'Revoke…' }).tap();
  await first.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).tap();
  await looker.getByRole('button', { name: 'Log in with your passkey' }).click();
  await looker.getByRole('alert').waitFor();
  assert.deepEqual((await s.world.state()).answers, {});
}
