// A session on a copy: what it has changed is read, taken over and discarded.
import assert from 'node:assert/strict';
import { forgetPasskey, phone } from './browser.mjs';

const open = async (page) => {
  await page.evaluate(() => { location.hash = '#sessions'; });
  await page.getByRole('heading', { name: 'On a copy' }).waitFor();
  await page.locator('.row', { hasText: 'fix' }).tap();
  await page.getByText('1,204 files').waitFor();
};

/** The list, the files with what is held back first, their lines as text. */
export async function copyRead(s) {
  const page = await s.inside(phone, '#sessions');
  await page.locator('.row', { hasText: 'docs' }).getByText('running · 1 changed file ·').waitFor();
  await page.locator('.row', { hasText: 'fix' }).getByText('ended · 1,204 changed files').waitFor();
  await s.accessible(page);
  await open(page);
  assert.deepEqual(await page.locator('section[aria-labelledby=copy] h3').allTextContents(), ['Held back', 'Can’t be taken over', 'Changed', 'In git']);
  const names = await page.locator('.file .name').allTextContents();
  assert.ok(names[0].startsWith('.vscode/<b>⟨U+202E⟩') && names[1] === 'run.sock' && names[2].includes('onerror'), names);
  await page.locator('summary', { hasText: '.vscode' }).tap();
  await page.getByText('the host would execute or obey it (protected:.vscode)').waitFor();
  await page.locator('summary', { hasText: 'onerror' }).tap();
  const diff = page.locator('.diff').nth(1);
  await diff.getByText('<script>alert(1)</script>').waitFor();
  const text = await diff.textContent();
  assert.ok(text.includes('⟨U+202E⟩⟨U+200B⟩hidden⟨U+001B⟩[2J') && text.includes('+</pre><a href=//evil.invalid>'), text);
  const [added, removed] = await Promise.all(['.new', '.old'].map((c) => diff.locator(c).first().evaluate((e) => getComputedStyle(e).color)));
  assert.notEqual(added, removed);
  assert.equal(await page.locator('main img, main a[href*=evil], main script, main b').count(), 0);
  await page.getByText('look at it with bawn diff').first().waitFor();
  await page.getByText('1,200 more: bawn diff fix shows them').waitFor();
  await s.fits(page);
  await s.accessible(page);
  await s.shot('files', true);
  await page.evaluate(() => { location.hash = '#sessions/s5eeeeeeeeeeeeeeeeeeeeeeee'; });
  await page.getByText('When it has ended, this can be taken over').waitFor();
  assert.equal(await page.getByRole('button', { name: /Apply|Discard/ }).count(), 0);
}

/** Nothing is taken over without the touch; what was shown and chosen is what is asked for. */
export async function copyApplied(s) {
  s.expected.push(/status of 400/);
  const page = await s.inside(phone, '#sessions');
  await open(page);
  const state = () => s.world.state();
  const dialog = page.getByRole('dialog');
  const touch = async (name) => {
    await page.getByRole('button', { name }).first().tap();
    await dialog.getByText('the session\'s stays in the copy').waitFor();
    await s.accessible(page);
    await dialog.getByRole('button', { name: 'Apply with your passkey' }).tap();
  };
  await page.getByRole('button', { name: 'Apply all…' }).tap();
  await dialog.getByRole('button', { name: 'Back' }).tap();
  assert.equal((await state()).applied, null);
  await touch('Apply all…');
  await page.getByRole('alert').getByText('look again').waitFor();
  await touch('Apply all…');
  await page.getByText('2 changes taken over').waitFor();
  await page.getByRole('checkbox', { name: 'Choose notes.md' }).check();
  await touch('Apply the chosen 1…');
  await page.getByText('2 changes taken over').waitFor();
  await page.locator('summary', { hasText: '.vscode' }).tap();
  await page.getByRole('button', { name: 'Open this one…' }).tap();
  await dialog.getByText('the host would execute or obey it').waitFor();
  await s.shot('held');
  await dialog.getByRole('button', { name: 'Apply with your passkey' }).tap();
  await page.getByText('2 changes taken over').waitFor();
  assert.deepEqual((await state()).applied, ['all', 'all', 'f2', 'held h1']);
  await page.getByRole('button', { name: 'Discard this copy…' }).tap();
  await dialog.getByText('Nothing brings the rest back').waitFor();
  await dialog.getByRole('button', { name: 'Discard with your passkey' }).tap();
  await page.getByText('is not there any more').waitFor();
  assert.ok((await state()).discarded);
}

/** Without the passkey nothing is done, and the page says what does it at a terminal. */
export async function copyUntouched(s) {
  const page = await s.inside(phone, '#sessions');
  await open(page);
  await page.locator('summary', { hasText: '.vscode' }).tap();
  await page.getByText('bawn apply fix PATH --held').waitFor(); // a shell could read that name otherwise
  await forgetPasskey(page);
  const dialog = page.getByRole('dialog');
  for (const [name, yes] of [['Open this one…', 'Apply with your passkey'], ['Apply all…', 'Apply with your passkey'], ['Discard this copy…', 'Discard with your passkey']]) {
    await page.getByRole('button', { name }).tap();
    await dialog.getByRole('button', { name: yes }).tap();
    await page.getByRole('alert').getByText('no touch of your passkey').first().waitFor();
    await page.getByRole('alert').getByText(name === 'Discard this copy…' ? 'bawn discard fix' : 'bawn apply fix').first().waitFor();
  }
  await page.evaluate(() => { delete window.PublicKeyCredential; location.hash = '#sessions'; });
  await open(page);
  await page.getByText('This browser has no passkey for this page').waitFor();
  assert.equal(await page.getByRole('button', { name: /Apply|Open|Discard/ }).count(), 0);
  const { applied, discarded } = await s.world.state();
  assert.deepEqual([applied, discarded], [null, false]);
}
