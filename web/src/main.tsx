import '@xterm/xterm/css/xterm.css';
import { render } from 'preact';
import * as live from './live.ts';
import { codeOf } from './passkey.ts';
import { install } from './push.ts';
import * as route from './route.ts';
import './style.css';
import { App } from './view/app.tsx';

// A code is worth something: it does not stay in the address or the history.
function takeCode(): void {
  const code = codeOf(location.hash);
  if (!code) return;
  history.replaceState(null, '', location.pathname);
  live.code.set(code);
}

takeCode();
addEventListener('hashchange', takeCode); // an open page was given a code
route.follow();
live.follow();
const at = document.getElementById('app');
if (at) {
  at.replaceChildren();
  render(<App />, at);
}
void install();
void live.identify();
