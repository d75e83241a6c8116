// Scenarios with the real programs: bawn serve, bawn pair, bawn run.
import assert from 'node:assert/strict';
import { phone, settle, until } from './browser.mjs';
import { enter } from './relay.mjs';

// agent runs its tools as agents do, one shell each.
const agent = `import subprocess
for name in ("made", "never"):
    print(name, subprocess.run(["sh", "-c", "touch " + name]).returncode, flush=True)`;

/** A command of an agent waits, is allowed from a phone, and runs; another is denied, and does not. */
export async function realSession(s) {
  const page = await enter(s, phone);
  await s.world.tell('run', { name: 'task', arg: ['--split', '--', 'python3', '-c', agent] });
  const card = (line) => page.locator('article.pending', { hasText: line });
  await card('touch made').waitFor({ timeout: 30_000 });
  await s.shot('asked', true);
  assert.ok(!(await s.world.state()).files?.includes('made'), 'it ran before it was allowed');
  await settle(page);
  await card('touch made').getByRole('button', { name: 'Allow once' }).tap();
  await card('touch never').waitFor();
  await settle(page);
  await card('touch never').getByRole('button', { name: 'Deny' }).tap();
  const ended = await until(async () => (await s.world.state()).runs.task, 'the session ends');
  assert.match(ended, /made 0/);
  assert.match(ended, /never 126/);
  assert.deepEqual((await s.world.state()).files, ['made']);
  await page.evaluate(() => { location.hash = '#audit'; });
  await page.getByText(/^In order: \d+ records/).waitFor();
  await page.locator('summary', { hasText: 'touch never' }).first().waitFor();
  await s.shot('audit');
  await watchAndKill(s, page);
}

async function watchAndKill(s, page) {
  await s.world.tell('run', { name: 'ticks', arg: ['--detach', '--', 'sh', '-c', 'while :; do echo tick; sleep 1; done'] });
  await page.evaluate(() => { location.hash = '#sessions'; });
  const row = page.locator('.row:not(.ended)', { has: page.locator('.name', { hasText: /^sh$/ }) });
  await row.waitFor({ timeout: 30_000 });
  await row.tap();
  await page.getByRole('heading', { name: 'What holds it' }).waitFor();
  await page.getByRole('button', { name: 'Watch' }).tap();
  await page.locator('.console').getByText('tick').first().waitFor();
  await s.shot('watched', true);
  await page.getByRole('button', { name: 'Kill this session…' }).tap();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill it' }).tap();
  await page.getByText('ended', { exact: true }).waitFor();
}

/** What a session has destroyed comes back from a phone, with a touch; a device that only looks, and a page without the touch, take nothing back. */
export async function realUndo(s) {
  s.expected.push(/status of 4(00|03)/);
  await s.world.tell('run', { name: 'before', arg: ['--', 'true'] });
  await until(async () => (await s.world.state()).runs.before, 'the first session ends');
  await s.world.tell('write', { name: 'plan', text: 'the plan\n' });
  await s.world.tell('write', { name: 'mine', text: 'old\n' });
  await s.world.tell('run', { name: 'destroys', arg: ['--', 'sh', '-c', 'rm plan; echo "<b>guest</b>" >made; echo guest >mine; sleep 0.5'] });
  await until(async () => (await s.world.state()).runs.destroys, 'the session ends');
  await s.world.tell('write', { name: 'mine', text: 'mine\n' });
  const page = await enter(s, phone);
  await page.evaluate(() => { location.hash = '#sessions'; });
  await page.locator('.row').first().tap();
  await page.locator('summary', { hasText: 'made' }).tap();
  await page.locator('.diff').getByText('+<b>guest</b>').waitFor();
  const session = await page.evaluate(() => location.hash.split('/')[1]);
  const call = (p, method, body) => p.evaluate(async ([m, b]) => {
    const r = await fetch('/bawn.v1.UndoService/' + m, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(b) });
    return [r.status, await r.json()];
  }, [method, body]);
  const looker = await enter(s, phone, { readonly: '1' });
  const [, seen] = await call(page, 'Preview', { session });
  for (const [p, m, body] of [
    [looker, 'Preview', { session }],
    [looker, 'Undo', { session, plan: seen.plan, ceremony: seen.ceremony, credential: '{}' }],
    [page, 'Undo', { session, plan: seen.plan }],
    [page, 'Undo', { session, plan: seen.plan, ceremony: seen.ceremony, credential: '{}' }],
  ]) {
    const [status, answer] = await call(p, m, body);
    assert.deepEqual([status, answer.code], [403, 'permission_denied']);
  }
  assert.deepEqual((await s.world.state()).files, ['made', 'mine']);
  await page.getByRole('button', { name: 'Undo what it has changed…' }).tap();
  await page.getByRole('dialog').getByText('you have changed it since the session').waitFor();
  await s.shot('preview');
  await page.getByRole('dialog').getByRole('button', { name: 'Undo with your passkey' }).tap();
  await page.getByText('2 changes taken back').waitFor();
  assert.deepEqual((await s.world.state()).files, ['mine', 'plan']);
  assert.equal(await s.world.tell('read', { name: 'mine' }), 'mine\n');
  await page.evaluate(() => { location.hash = '#audit'; });
  await page.getByText(/^In order: \d+ records/).waitFor();
  await page.getByText(session).first().waitFor();
}

/** A copy is read, taken over and discarded from a phone; what is held back is opened with its own touch; nobody does it without, nor for something else. */
export async function realCopy(s) {
  s.expected.push(/status of 4(00|03)/);
  await s.world.tell('write', { name: 'plan', text: 'one\n' });
  await s.world.tell('run', { name: 'fix', arg: ['--copy', '--name', 'fix', '--', 'sh', '-c', 'echo two >>plan; echo "<b>" >new; echo evil >.envrc'] });
  assert.match(await until(async () => (await s.world.state()).runs.fix, 'the session ends'), /3 files changed on copy fix/);
  const file = (name) => s.world.tell('read', { name }).catch(() => 'none');
  const page = await enter(s, phone);
  await page.evaluate(() => { location.hash = '#sessions'; });
  await page.locator('.row', { hasText: 'fix' }).getByText('ended · 3 changed files').waitFor();
  await page.locator('.row', { hasText: 'fix' }).tap();
  await page.getByText('3 files, +3 −0 lines').waitFor();
  assert.deepEqual(await page.locator('.file .name').allTextContents(), ['.envrc', 'new', 'plan']);
  await page.locator('summary', { hasText: 'new' }).tap();
  await page.locator('.diff').getByText('+<b>').waitFor();
  const session = await page.evaluate(() => location.hash.split('/')[1]);
  await copyAttacks(s, page, await enter(s, phone, { readonly: '1' }), session);
  assert.deepEqual([await file('new'), await file('.envrc'), await file('plan')], ['none', 'none', 'one\n']);
  const dialog = page.getByRole('dialog');
  const touch = async (name, yes = 'Apply with your passkey') => {
    await page.getByRole('button', { name }).tap();
    await dialog.getByRole('button', { name: yes }).tap();
  };
  await touch('Apply all…');
  await page.getByText('2 changes taken over').waitFor();
  assert.deepEqual([await file('new'), await file('.envrc'), await file('plan')], ['<b>\n', 'none', 'one\ntwo\n']);
  await page.locator('summary', { hasText: '.envrc' }).tap();
  await page.getByText('bawn apply fix .envrc --held').waitFor();
  await touch('Open this one…');
  await page.getByText('1 change taken over').waitFor();
  assert.equal(await file('.envrc'), 'evil\n');
  await touch('Discard this copy…', 'Discard with your passkey');
  await page.getByText('is not there any more').waitFor();
  assert.equal(await file('new'), '<b>\n', 'what was taken over stays');
  await page.evaluate(() => { location.hash = '#audit'; });
  await page.getByText(/^In order: \d+ records/).waitFor();
  await page.getByText('a human opens ".envrc"').first().waitFor({ state: 'attached' });
}

// copyAttacks tries to take over without what it takes.
async function copyAttacks(s, page, looker, session) {
  const call = (p, method, body) => p.evaluate(async ([m, b]) => {
    const r = await fetch('/bawn.v1.CopyService/' + m, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(b) });
    return [r.status, await r.json()];
  }, [method, body]);
  const [, { listing, files }] = await call(looker, 'Files', { session });
  const held = { session, listing, files: [files[0].id], held: true };
  const [, seen] = await call(page, 'Preview', { selection: held });
  assert.ok(seen.ceremony, 'the control: the page itself is asked for a touch');
  const [, doomed] = await call(page, 'PreviewDiscard', { session, listing });
  for (const [p, m, body] of [
    [looker, 'Preview', { selection: held }],
    [looker, 'Apply', { selection: held, plan: seen.plan, ceremony: seen.ceremony, credential: '{}' }],
    [looker, 'Discard', { session, listing, ceremony: doomed.ceremony, credential: '{}' }],
    [page, 'Apply', { selection: held, plan: seen.plan }],
    [page, 'Apply', { selection: held, plan: seen.plan, ceremony: seen.ceremony, credential: '{}' }],
    [page, 'Discard', { session, listing, ceremony: doomed.ceremony, credential: '{}' }],
  ]) {
    const [status, answer] = await call(p, m, body);
    assert.deepEqual([status, answer.code], [403, 'permission_denied'], m);
  }
  const [status] = await call(page, 'Preview', { selection: { session, listing, files: [files[0].id] } });
  assert.equal(status, 400, 'what is held back, as if it were not');
  // A session that runs reaches neither the page nor the socket.
  await s.world.tell('run', { name: 'inside', arg: ['--copy', '--name', 'inside', '--', 'sh', '-c', 'bawn apply fix --yes; echo apply $?; bawn discard fix --yes; echo discard $?'] });
  const said = await until(async () => (await s.world.state()).runs.inside, 'the session ends');
  assert.ok(/apply [1-9]/.test(said) && /discard [1-9]/.test(said), said);
}
