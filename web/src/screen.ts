// The terminal emulator, made to live under the page's policy.
import { FitAddon } from '@xterm/addon-fit';
import { Terminal, type ITheme } from '@xterm/xterm';

/** A Screen shows what a terminal would. */
export interface Screen {
  readonly rows: number;
  readonly columns: number;
  write(output: Uint8Array): void;
  clear(): void;
  close(): void;
}

/** Wishes are what the screen is for. */
export interface Wishes {
  readonly typing: boolean;
  typed(data: string): void;
  resized(rows: number, columns: number): void;
  leave(): void;
}

const dark: ITheme = { background: '#101415', foreground: '#d9dedb', cursor: '#d9dedb', selectionBackground: '#3a5a50' };

/** screen opens a terminal in an element. */
export function screen(within: HTMLElement, wishes: Wishes): Screen {
  const terminal = new Terminal({
    disableStdin: !wishes.typing,
    cursorBlink: false,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: 13,
    scrollback: 5000,
    screenReaderMode: true,
    theme: dark,
    linkHandler: { activate: () => undefined }, // what the guest calls a link leads nowhere
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(within);
  fit.fit();
  if (wishes.typing) {
    terminal.onData((data) => wishes.typed(data));
    terminal.attachCustomKeyEventHandler((e) => {
      const leaves = e.key === 'Escape' && e.ctrlKey && e.shiftKey;
      if (leaves) wishes.leave();
      return !leaves;
    });
    terminal.focus();
  }
  terminal.onResize(({ rows, cols }) => wishes.resized(rows, cols));
  const watch = new ResizeObserver(() => fit.fit());
  watch.observe(within);
  return {
    rows: terminal.rows,
    columns: terminal.cols,
    write: (output) => terminal.write(output),
    clear: () => terminal.reset(),
    close: () => {
      watch.disconnect();
      terminal.dispose();
    },
  };
}

// The emulator writes rules into style elements, which the page's policy
// forbids. vite.config.ts has it make elements of this name instead: their
// text becomes a sheet of the DOM's own, which is the page's doing and allowed.
class Sheet extends HTMLElement {
  private readonly rules = new CSSStyleSheet();

  write(text: string): void {
    this.rules.replaceSync(text);
  }

  connectedCallback(): void {
    document.adoptedStyleSheets.push(this.rules);
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== this.rules);
  }
}
Object.defineProperty(Sheet.prototype, 'textContent', {
  set(this: Sheet, text: string) {
    this.write(text);
  },
});
customElements.define('bawn-sheet', Sheet);
