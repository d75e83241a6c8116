import assert from 'node:assert/strict';
import { desktop, phone, settle, until } from './browser.mjs';

const card = (page, id) => page.locator(`article[data-id="${id}"]`);
const answers = async (s) => (await s.world.state()).answers ?? [];

/** A phone is paired, and answers by touch. */
export async function phoneAnswers(s) {
  await s.world.tell('ask', { name: ['push', 'host'] });
  const page = await s.page(phone, '#pair=k3v9-2mxq');
  assert.equal(new URL(page.url()).hash, '', 'the code stays in the address');
  assert.equal(await page.getByLabel('Code').inputValue(), 'k3v9-2mxq');
  await s.accessible(page);
  await s.shot('pair');
  await page.getByRole('button', { name: 'Create a passkey' }).tap();
  const push = card(page, 'qpush');
  await push.waitFor();
  await s.accessible(page);
  await s.fits(page);
  await s.shot('light', true);
  await page.emulateMedia({ colorScheme: 'dark' });
  await s.shot('dark', true);
  assert.equal(await push.getByRole('region').first().textContent(), 'git push --force origin main');
  for (const text of ['it rewrites the history', 'builtin:git-force', '/home/anna/shop', 'nothing else', 'you denied this shape', 'Nobody has checked it', 'It is urgent.']) {
    assert.ok((await push.textContent()).includes(text), text);
  }
  await settle(page);
  await push.getByText('Add a word to the agent').tap();
  await push.getByLabel('Why').fill('not on main');
  await push.getByRole('button', { name: 'Deny' }).tap();
  await push.getByText('Denied by the test').waitFor();
  const host = card(page, 'qhost');
  assert.ok(await host.getByRole('button', { name: 'Always…' }).isDisabled());
  assert.ok(await host.getByRole('button', { name: 'Never…' }).isEnabled());
  assert.ok((await host.textContent()).includes('the host resolves to a private address'));
  assert.ok((await host.textContent()).includes('3 ask for it'));
  await settle(page);
  assert.equal(await host.getByRole('button', { name: 'Allow once' }).count(), 0, 'a program connects again and again');
  await host.getByRole('button', { name: 'For this session' }).tap();
  await host.getByText('Allowed for this session').waitFor();
  assert.deepEqual(await answers(s), [
    { id: 'qpush', verdict: 'VERDICT_DENY', scope: 'SCOPE_ONCE', why: 'not on main' },
    { id: 'qhost', verdict: 'VERDICT_ALLOW', scope: 'SCOPE_SESSION' },
  ]);
  await page.getByText('Nothing waits for you.').waitFor();
}

/** "Always" and "never" show the rule first. */
export async function alwaysConfirms(s) {
  const page = await s.inside(phone);
  for (const [verb, heading, yes, verdict] of [['Always…', 'Allow always?', /Create this rule and allow/, 'VERDICT_ALLOW'], ['Never…', 'Deny always?', /Create this rule and deny/, 'VERDICT_DENY']]) {
    await s.world.tell('ask', { name: 'push' });
    await card(page, 'qpush').waitFor();
    await settle(page);
    await card(page, 'qpush').getByRole('button', { name: verb }).tap();
    const dialog = page.getByRole('dialog', { name: heading });
    await dialog.waitFor();
    assert.equal((await dialog.textContent()).includes('git push -f origin main'), verb === 'Always…', 'what else it covers');
    assert.equal((await dialog.textContent()).includes('git push --force *'), verb === 'Never…', 'the rule that denies');
    await s.accessible(page);
    await s.shot(verdict);
    const before = (await answers(s)).length;
    await dialog.getByRole('button', { name: 'Back' }).tap();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await answers(s)).length, before, 'going back answers nothing');
    await card(page, 'qpush').getByRole('button', { name: verb }).tap();
    await dialog.getByRole('button', { name: yes }).tap();
    const got = await until(async () => (await answers(s)).at(before), 'an answer');
    assert.deepEqual(got, { id: 'qpush', verdict, scope: 'SCOPE_ALWAYS' });
    if (verb === 'Never…') return;
    await page.getByRole('button', { name: 'Clear what is answered' }).tap();
    await s.world.tell('reset');
  }
}

/** What an agent writes is shown, and neither obeyed nor hidden. */
export async function hostileText(s) {
  await s.world.tell('ask', { name: ['hostile', 'long', 'endless'] });
  const page = await s.inside(desktop);
  const q = card(page, 'qhostile');
  await q.waitFor();
  await s.shot('hostile');
  const pre = q.locator('pre').first();
  assert.equal(
    await pre.textContent(),
    'echo U+202E right-to-left overridegnp.exeU+202C pop directional formatting && rmU+200B zero width space -rf ~/U+2066 left-to-right isolatexU+2069 pop directional isolate U+001B escape[2KU+000D carriage return↵\n⇥echo \'<img src=x onerror="document.title=1">\'··# pаypal U+3164 Hangul filler U+E0041',
  );
  for (const text of ['9 characters that can’t be seen', '2 lines'].map((t) => t.replace('’', "'"))) assert.ok((await q.textContent()).includes(text), text);
  await q.getByText('3 arguments').click();
  await settle(page);
  await q.getByRole('button', { name: 'Always…' }).click();
  await page.getByRole('dialog').waitFor();
  await s.shot('dialog');
  const made = await page.evaluate(() => [...document.querySelectorAll('#app img:not([src="/icon.svg"]), #app script, #app b, #app i, #app svg:not(nav svg), [onerror], [onload]')].map((e) => e.outerHTML));
  assert.deepEqual(made, [], 'elements that the agent made');
  const hidden = await page.evaluate(() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const out = [];
    while (walk.nextNode()) if (/[^\n\P{C}]|[\p{Zl}\p{Zp}]|\p{Default_Ignorable_Code_Point}/u.test(walk.currentNode.data)) out.push(walk.currentNode.data);
    return out;
  });
  assert.deepEqual(hidden, [], 'characters that hide');
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click();
  const order = await pre.evaluate((e) => getComputedStyle(e).unicodeBidi + ' ' + getComputedStyle(e).direction);
  assert.equal(order, 'bidi-override ltr');
  await wholeTexts(s, page);
}

async function wholeTexts(s, page) {
  const long = card(page, 'qlong');
  const text = await long.locator('pre').first().textContent();
  assert.equal(text.length, 10_221);
  assert.ok(text.endsWith('&& rm -rf build'));
  assert.ok((await long.textContent()).includes('10,221 characters. All of it is shown.'));
  assert.ok(await long.getByRole('button', { name: 'Allow once' }).isEnabled());
  const endless = card(page, 'qendless');
  assert.ok((await endless.textContent()).includes('50,014 characters between the box and the end are not shown.'));
  for (const name of ['Allow once', 'For this session', 'Always…']) assert.ok(await endless.getByRole('button', { name }).isDisabled(), name);
  assert.ok((await endless.locator('pre').nth(1).textContent()).endsWith('; rm -rf build'), 'the end is shown in any case');
  assert.ok(await endless.getByRole('button', { name: 'Deny' }).isEnabled());
  await endless.getByRole('button', { name: 'Show all' }).click();
  await until(async () => (await endless.locator('pre').first().textContent()).endsWith('; rm -rf build'), 'all of the text');
  await until(() => endless.getByRole('button', { name: 'Allow once' }).isEnabled(), 'a yes to all of the text');
}

/** Everything is done with the keyboard; the focus is never lost. */
export async function keyboardOnly(s) {
  const page = await s.page(desktop, '#pair=k3v9-2mxq');
  const press = (key) => page.keyboard.press(key);
  const focused = () => page.evaluate(() => (document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '').trim());
  const tabTo = async (name) => {
    for (let i = 0; i < 60; i++) {
      await press('Tab');
      if ((await focused()) === name) return;
    }
    throw new Error(`no key leads to "${name}"`);
  };
  await tabTo('Create a passkey');
  await press('Enter');
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  assert.equal(await focused(), 'Approvals', 'the heading has the focus');
  await s.world.tell('ask', { name: ['push', 'host'] });
  await card(page, 'qhost').waitFor();
  await page.getByRole('status').getByText(/2 waiting\./).waitFor();
  assert.match(await page.title(), /^\(2\) Approvals/);
  await settle(page);
  await tabTo('Always…');
  await press('Enter');
  await page.getByRole('dialog').waitFor();
  assert.equal(await focused(), 'Back', 'the harmless button is first');
  await press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await focused(), 'Always…', 'the focus comes back');
  assert.deepEqual(await answers(s), []);
  await page.keyboard.press('Shift+Tab');
  assert.equal(await focused(), 'For this session');
  await press('Space');
  await card(page, 'qpush').getByText('Allowed for this session').waitFor();
  // The focus follows the text by a frame or two.
  for (let i = 0; i < 50 && !/^Allowed for this session/.test(await focused()); i++) await page.waitForTimeout(100);
  assert.match(await focused(), /^Allowed for this session/, 'the focus is at what became of it');
  await settle(page);
  await tabTo('Deny');
  await press('n');
  await card(page, 'qhost').getByText('Denied for this session by').waitFor();
  await snapshot(page);
}

// snapshot is what a screen reader meets.
async function snapshot(page) {
  const tree = await page.locator('body').ariaSnapshot();
  for (const want of ['banner', 'navigation "Main"', 'link "Approvals"', 'main:', 'heading "Approvals" [level=1]', 'article "Run a command"', 'article "Connect to a host"', 'status']) {
    assert.ok(tree.includes(want), `${want} in\n${tree}`);
  }
}

/** Whoever was first is named, everywhere. */
export async function answeredElsewhere(s) {
  await s.world.tell('ask', { name: 'push' });
  const page = await s.inside({ ...phone, deviceScaleFactor: 1.5 }); // a small file
  await card(page, 'qpush').waitFor();
  await settle(page);
  await s.shot('waiting'); // in README.md: "make pictures"
  await s.world.tell('elsewhere', { id: 'qpush' });
  await card(page, 'qpush').getByText('Allowed for this session by anna at the terminal').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Allow once' }).count(), 0);
  await s.shot('answered');
}

/** A thousand questions wait; the page stays quick and says what it leaves out. */
export async function crowd(s) {
  await s.world.tell('crowd');
  const page = await s.inside(desktop);
  await page.getByText('1000 questions wait.').waitFor();
  assert.equal(await page.locator('article').count(), 50);
  await page.getByRole('button', { name: 'Show 50 more (950 not shown)' }).click();
  await page.waitForFunction(() => document.querySelectorAll('article').length === 100);
}

/** A button that has just moved under the finger does nothing. */
export async function movedButton(s) {
  await s.world.tell('ask', { name: ['push', 'host'] });
  const page = await s.inside(desktop);
  await card(page, 'qhost').waitFor();
  await settle(page);
  await page.evaluate(() => {
    const deny = (id) => [...document.querySelectorAll(`article[data-id="${id}"] button`)].find((b) => b.textContent === 'Deny');
    deny('qpush').click();
    const seen = new MutationObserver(() => {
      if (document.querySelector('.head .sub').textContent !== 'One question waits.') return; // the list changes later than the card
      seen.disconnect();
      deny('qhost').click(); // at once: a timer may come after the button counts again
      window.clicked = true;
    });
    seen.observe(document.body, { childList: true, subtree: true });
  });
  await page.waitForFunction(() => window.clicked);
  await settle(page); // longer than an answer takes
  assert.equal((await answers(s)).length, 1);
  await card(page, 'qhost').getByRole('button', { name: 'Deny' }).click();
  await card(page, 'qhost').getByText('Denied for this session by').waitFor();
}

/** A device that may only look has no way to answer. */
export async function readOnly(s) {
  await s.world.tell('readonly');
  await s.world.tell('ask', { name: 'push' });
  const page = await s.inside(phone);
  await page.getByText('This device may look, and answer nothing.').waitFor();
  for (const b of await card(page, 'qpush').getByRole('group').getByRole('button').all()) assert.ok(await b.isDisabled());
}
