// Runs the scenarios, each with a fixture and a browser of its own kind, and
// writes a line of JSON for each: name, error, ms.
//   node page/run.mjs CONTROL KEY [NAME…]
import { open } from './browser.mjs';
import * as approvals from './approvals.mjs';
import * as views from './views.mjs';
import * as copy from './copy.mjs';
import * as machine from './machine.mjs';
import * as relay from './relay.mjs';
import * as trouble from './trouble.mjs';

const [control, key, ...only] = process.argv.slice(2);
const all = Object.entries({ ...approvals, ...views, ...copy, ...trouble, ...relay, ...machine }).filter(([name]) => name !== 'enter' && (only.length === 0 || only.includes(name)));
const browser = await open(control, key);
const next = all.values();

async function worker() {
  for (const [name, scenario] of next) {
    const begun = Date.now();
    let error = '';
    try {
      await browser.scene(name, scenario, Object.hasOwn(machine, name) ? 'machine' : Object.hasOwn(relay, name) ? 'backend' : 'fixture');
    } catch (e) {
      error = e.stack ?? String(e);
    }
    console.log(JSON.stringify({ name, error, ms: Date.now() - begun }));
  }
}

await Promise.all([worker(), worker()]);
await browser.close();
