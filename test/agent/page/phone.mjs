// The human: a phone's browser that is paired, allows one command and denies
// another, by touch.
//   node page/phone.mjs CONTROL KEY
import assert from 'node:assert/strict';
import { open, phone, settle, until } from '../../web/page/browser.mjs';

const patience = 290_000;
const [control, key] = process.argv.slice(2);

async function answers(s) {
  const url = new URL(await s.world.tell('pair'));
  assert.equal(url.origin, s.world.origin);
  const page = await s.page(phone, url.hash);
  await page.getByRole('button', { name: 'Create a passkey' }).tap();
  await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
  await s.world.tell('ready');

  const deploy = await asked(page, 'make deploy');
  await s.fits(page);
  await s.shot('asked', true);
  assert.equal((await s.world.state()).deployed, '', 'it runs before anybody has answered');
  await deploy.getByRole('button', { name: 'Allow once' }).tap();
  await deploy.getByText('Allowed once').waitFor();
  await until(async () => (await s.world.state()).deployed === 'deployed\n', 'what was allowed runs');

  const push = await asked(page, 'git push --force ./remote.git HEAD:refs/heads/main');
  await push.getByText('Add a word to the agent').tap();
  await push.getByLabel('Why').fill('nobody rewrites history here');
  await settle(page);
  await push.getByRole('button', { name: 'Deny' }).tap();
  await push.getByText('Denied by').waitFor();
  await s.shot('answered', true);

  await page.evaluate(() => { location.hash = '#audit'; });
  await page.getByText(/^In order: \d+ records/).waitFor();
  await s.shot('audit');
}

/** asked waits for the question about a command, and shows nothing else of it. */
async function asked(page, line) {
  const card = page.locator('article', { hasText: line });
  await card.waitFor({ timeout: patience });
  assert.equal(await card.getByRole('region').first().textContent(), line);
  await settle(page);
  return card;
}

const browser = await open(control, key);
try {
  await browser.scene('whole', answers, 'phone');
} finally {
  await browser.close();
}
