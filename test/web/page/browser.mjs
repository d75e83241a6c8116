// A browser with a virtual passkey, which fails on what must never happen.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const installed = (folder) => createRequire(join(process.env.BAWN_TEST_AGENTS, folder) + '/');
const { chromium } = installed('playwright')('playwright-core');
const axe = readFileSync(installed('axe').resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.BAWN_TEST_SHOTS;

export const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
export const desktop = { viewport: { width: 1280, height: 900 } };

/** open starts the browser. */
export async function open(control, key) {
  // Where user namespaces are not to be had, and as root, its own sandbox does
  // not start; it loads nothing but our page.
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--no-first-run', '--disable-background-networking', `--ignore-certificate-errors-spki-list=${key}`] });
  return {
    close: () => browser.close(),
    scene: async (name, scenario, kind) => {
      const world = await makeWorld(control, kind);
      const scene = new Scene(name, browser, world);
      try {
        await scenario(scene);
        scene.check();
      } catch (e) {
        await scene.shot('failed').catch(() => {});
        throw new Error(`${e.stack ?? e}\n${scene.faults.join('\n')}`);
      } finally {
        await scene.close();
      }
    },
  };
}

async function makeWorld(control, kind) {
  const post = async (path, form) => {
    const r = await fetch(control + path, { method: 'POST', body: new URLSearchParams(form) });
    const text = await r.text();
    assert.ok(r.ok, text);
    return text;
  };
  const origin = await post('/new/' + kind, []);
  const tell = (verb, form = {}) => post('/' + verb, [['world', origin], ...Object.entries(form).flatMap(([k, v]) => [v].flat().map((x) => [k, x]))]);
  return { origin, tell, state: async () => JSON.parse(await tell('state')) };
}

class Scene {
  faults = [];
  contexts = [];
  /** What the console may say, as expressions: a test that breaks connections expects it. */
  expected = [];

  constructor(name, browser, world) {
    Object.assign(this, { name, browser, world });
  }

  /** page opens a page of the world, in a browser of its own. */
  async page(options, fragment = '') {
    const context = await this.browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', colorScheme: 'light', reducedMotion: 'reduce', ...options });
    this.contexts.push(context);
    context.setDefaultTimeout(30_000);
    await context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber} ${e.sample}`));
    });
    const page = await context.newPage();
    this.current = page;
    this.watch(page);
    await passkey(page);
    await page.goto(this.world.origin + '/' + fragment);
    return page;
  }

  watch(page) {
    const fault = (text) => {
      if (!this.expected.some((e) => e.test(text))) this.faults.push(text);
    };
    page.on('console', (m) => ['error', 'warning'].includes(m.type()) && fault(`console: ${m.text()}`));
    page.on('pageerror', (e) => fault(`error: ${e.stack ?? e}`));
    page.on('dialog', (d) => { fault(`dialog: ${d.message()}`); void d.dismiss(); });
    page.context().on('request', (r) => new URL(r.url()).origin !== this.world.origin && fault(`request to ${r.url()}`));
  }

  /** inside opens a page and pairs it. */
  async inside(options, fragment = '') {
    const page = await this.page(options, '#pair=k3v9-2mxq');
    await page.getByRole('button', { name: 'Create a passkey' }).click();
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor();
    if (fragment) await page.evaluate((f) => { location.hash = f; }, fragment);
    return page;
  }

  async shot(name, full = false) {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    await this.current?.screenshot({ path: join(shots, `${this.name}-${name}.png`), fullPage: full });
  }

  /** accessible wants no obstacle that axe calls serious or critical, in light and dark. */
  async accessible(page) {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      const found = await page.evaluate(axe + ';axe.run(document, { resultTypes: ["violations"] })');
      const bad = found.violations.filter((v) => ['serious', 'critical'].includes(v.impact));
      assert.deepEqual(bad.map((v) => `${colorScheme} ${v.id}: ${v.nodes.map((n) => n.html + ' ' + n.failureSummary).join(' | ')}`), []);
    }
    await page.emulateMedia({ colorScheme: 'light' });
  }

  /** fits wants no scrolling to the side, and targets that a finger hits. */
  async fits(page) {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= page.viewportSize().width, `the page is ${wide} wide in ${page.viewportSize().width}`);
    const small = await page.evaluate(() => [...document.querySelectorAll('button, summary, input:not([type=checkbox]), select, nav a')].filter((e) => e.checkVisibility() && !e.matches('.skip, .plain')).filter((e) => e.getBoundingClientRect().height < 43.5).map((e) => e.outerHTML.slice(0, 200)));
    assert.deepEqual(small, []);
  }

  check() {
    assert.deepEqual(this.faults, []);
  }

  async close() {
    for (const c of this.contexts) await c.close();
  }
}

const authenticators = new WeakMap();

async function passkey(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
  authenticators.set(page, { devtools, authenticatorId });
}

/** forgetPasskey takes the passkey away from a page's browser. */
export async function forgetPasskey(page) {
  const { devtools, authenticatorId } = authenticators.get(page);
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId });
}

/** until waits for a condition that is not in the page. */
export async function until(condition, what) {
  for (const end = Date.now() + 30_000; Date.now() < end; ) {
    const got = await condition();
    if (got) return got;
    await new Promise((r) => setTimeout(r, 50));
  }
  throw new Error('never: ' + what);
}

/** settle waits until the list has stood still, as a human who reads does. */
export const settle = (page) => page.waitForTimeout(500);
