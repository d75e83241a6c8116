import assert from 'node:assert/strict';
import { desktop, phone, until } from './browser.mjs';

/** Sessions: the tree, one of them, its terminal, its end. */
export async function sessions(s) {
  const page = await s.inside(desktop, '#sessions');
  await page.getByRole('heading', { name: 'Sessions', level: 1 }).waitFor();
  await page.locator('.tree .tree').getByRole('link', { name: /reviewer/ }).waitFor();
  await s.accessible(page);
  await s.shot('tree');
  await page.getByRole('link', { name: /qwen-code/ }).click();
  await page.getByText('writes only below /home/anna/shop').waitFor();
  await page.getByRole('row', { name: /api\.example\.org:443/ }).waitFor();
  await page.getByRole('button', { name: 'Watch' }).click();
  const screen = page.locator('.console');
  await screen.getByText('go test ./...').first().waitFor();
  await screen.getByText('<img src=//evil.invalid/x').first().waitFor();
  const colour = await screen.locator('.xterm-rows span', { hasText: 'true colour' }).first().evaluate((e) => getComputedStyle(e).color);
  assert.equal(colour, 'rgb(240, 180, 90)');
  const title = await page.title();
  assert.ok(title.endsWith('Bawn'), title);
  await s.accessible(page);
  await s.shot('one', true);
  await screen.click();
  await page.keyboard.type('no');
  await page.getByRole('button', { name: 'Type into it' }).click();
  await screen.getByText('go test ./...').first().waitFor();
  await page.keyboard.type('yes');
  await until(async () => (await s.world.state()).typed === 'yes', 'what was typed arrives, and nothing else');
  await page.keyboard.press('Control+Shift+Escape');
  await page.getByText('You are watching').waitFor();
  await page.getByRole('button', { name: 'Kill this session…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
  assert.equal((await s.world.state()).killed, null);
  await page.getByRole('button', { name: 'Kill this session…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill it' }).click();
  await page.locator('.head').getByText('ended').waitFor(); // what it has changed is still there
  await page.getByRole('heading', { name: 'What it has changed' }).waitFor();
  assert.deepEqual((await s.world.state()).killed, ['s1aaaaaaaaaaaaaaaaaaaaaaaa']);
}

/** Changes of a session: its files, their lines as text, the preview of an undo, and the touch. */
export async function changes(s) {
  s.expected.push(/status of 400/);
  const page = await s.inside(phone, '#sessions');
  await page.getByRole('link', { name: /codex/ }).tap();
  await page.getByText('6 files, +3 −1 lines').waitFor();
  await s.accessible(page);
  await page.locator('summary', { hasText: 'onerror' }).tap();
  const diff = page.locator('.diff');
  await diff.getByText('<script>alert(1)</script>').waitFor();
  const text = await diff.textContent();
  assert.ok(text.includes('⟨U+202E⟩⟨U+200B⟩hidden⟨U+001B⟩[2J') && text.includes('+</pre><a href=//evil.invalid>') && text.includes(' \tif err'), text);
  assert.equal(await page.locator('main img, main a[href*=evil], main script').count(), 0);
  const name = await page.locator('.file .name').first().textContent();
  assert.ok(name.includes('⟨U+202E⟩.go') && !name.includes('\u202e'), name);
  await page.getByText('There is more than is shown here').waitFor();
  await page.getByText('Mode 100644 to 100755').waitFor();
  await s.fits(page);
  await s.accessible(page);
  await s.shot('diff', true);
  const undo = page.getByRole('button', { name: 'Undo what it has changed…' });
  const dialog = page.getByRole('dialog');
  await undo.tap();
  await dialog.getByText('you have changed it since the session').waitFor();
  await dialog.getByText('nothing to 4f1c09aa21').waitFor();
  await dialog.getByText('whatever differs from its start').waitFor();
  await s.accessible(page);
  await s.shot('preview');
  await dialog.getByRole('button', { name: 'Back' }).tap();
  assert.equal((await s.world.state()).undone, 0);
  await undo.tap();
  await dialog.getByRole('button', { name: 'Undo with your passkey' }).tap();
  await page.getByRole('alert').getByText('look again').waitFor();
  await undo.tap();
  await dialog.getByRole('button', { name: 'Undo with your passkey' }).tap();
  await page.getByText('3 changes taken back').waitFor();
  assert.equal((await s.world.state()).undone, 2);
  await page.evaluate(() => { location.hash = '#sessions/s1aaaaaaaaaaaaaaaaaaaaaaaa'; });
  await page.getByText('A session still runs there').waitFor();
  assert.equal(await undo.count(), 0);
}

/** Audit: filters, pages, the timeline, the state of the log. */
export async function audit(s) {
  const page = await s.inside(desktop, '#audit');
  await page.getByText('In order: 120 records').waitFor();
  await page.getByText('50 records, the newest first').waitFor();
  await page.getByRole('img', { name: /From .* allowed, .* denied/ }).waitFor();
  await s.accessible(page);
  await s.shot('log');
  await page.getByRole('button', { name: 'Older records' }).click();
  await page.getByText('100 records, the newest first').waitFor();
  await page.getByRole('button', { name: 'Older records' }).click();
  await page.getByText('120 records, the newest first').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Older records' }).count(), 0);
  await page.locator('summary', { hasText: 'telemetry.example.net' }).first().click();
  await page.getByText('no entry names this host').first().waitFor();
  await page.getByRole('searchbox', { name: 'Resource' }).fill('git push');
  await page.getByLabel('Became').selectOption('deny');
  await page.getByText('More filters').click();
  await page.getByLabel('Not before').fill('2026-01-02T03:04');
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  const last = await until(async () => (await s.world.state()).queries.find((q) => q.filter?.resource), 'a query with the filter');
  assert.deepEqual(last.filter, { verdict: 'VERDICT_DENY', resource: 'git push', since: '2026-01-02T03:04:00Z' });
}

/** Policy: a line is explained, and what can't be read is said. */
export async function policy(s) {
  const page = await s.inside(desktop, '#policy');
  await page.getByLabel('Action').fill('git push --force origin main');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('heading', { name: 'A human is asked' }).waitFor();
  await page.getByText('without --force').waitFor();
  await s.accessible(page);
  await s.shot('explained', true);
  s.expected.push(/status of 400/);
  await page.getByLabel('Action').fill('(');
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('alert').getByText("the action can't be read").waitFor();
}

/** Devices: the list, and the way out. */
export async function devices(s) {
  const page = await s.inside(phone, '#devices');
  await page.getByText('this one').waitFor();
  await s.accessible(page);
  await s.shot('list');
  await page.getByRole('button', { name: 'Log out of this browser' }).tap();
  await page.getByRole('button', { name: 'Log in with your passkey' }).waitFor();
  await s.accessible(page);
  await s.shot('login');
  await page.getByRole('button', { name: 'Log in with your passkey' }).tap();
  await page.getByRole('button', { name: 'Revoke…' }).waitFor();
  await page.getByRole('button', { name: 'Revoke…' }).tap();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke it' }).tap();
  await until(async () => (await s.world.state()).devices === 0, 'the device is gone');
}

/** Every view fits a screen of 320 pixels. */
export async function narrow(s) {
  await s.world.tell('ask', { name: ['hostile', 'push'] });
  const page = await s.inside({ ...phone, viewport: { width: 320, height: 640 } });
  for (const place of ['approvals', 'sessions', 'sessions/s1aaaaaaaaaaaaaaaaaaaaaaaa', 'sessions/s3cccccccccccccccccccccccc', 'sessions/s4dddddddddddddddddddddddd', 'audit', 'policy', 'devices']) {
    await page.evaluate((p) => { location.hash = p; }, place);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForTimeout(250);
    await s.fits(page);
    await s.shot(place.replace('/', '-').slice(0, 12), true);
  }
}
