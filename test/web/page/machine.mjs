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
