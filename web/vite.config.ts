import { defineConfig, type Plugin } from 'vite';

// shell tells the service worker which files make up the page: the names of
// the built files, and a version that changes when one of them does.
function shell(): Plugin {
  return {
    name: 'bawn-shell',
    generateBundle(_, bundle) {
      const files = Object.keys(bundle).filter((name) => name.startsWith('assets/')).sort();
      const worker = bundle['sw.js'];
      if (worker?.type !== 'chunk') throw new Error('the service worker was not built');
      const code = worker.code.replace(/(["'`])__SHELL__\1/, JSON.stringify(files.map((name) => '/' + name)));
      if (code === worker.code) throw new Error('the service worker has no place for the names of the files');
      worker.code = code;
    },
  };
}

// terminal makes the emulator obey the page's policy, which allows no style
// elements and attributes: see src/screen.ts. Each place is known, and a
// version with others is not built.
function terminal(): Plugin {
  const changes: [string, string, number][] = [
    ['.createElement("style")', '.createElement("bawn-sheet")', 3],
    ['t.setAttribute("style",`${t.getAttribute("style")||""}${e};`)', 't.style.cssText+=e+";"', 1],
  ];
  return {
    name: 'bawn-terminal',
    transform(code, id) {
      if (!id.includes('@xterm/xterm/lib/')) return undefined;
      return changes.reduce((text, [from, to, times]) => {
        const parts = text.split(from);
        if (parts.length !== times + 1) throw new Error(`${id} has ${JSON.stringify(from)} ${parts.length - 1} times, not ${times}`);
        return parts.join(to);
      }, code);
    },
  };
}

export default defineConfig({
  base: '/',
  plugins: [terminal(), shell()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0, // no data: address: the page's policy allows none
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 600,
    rollupOptions: {
      input: { main: 'index.html', sw: 'src/sw.ts' },
      output: {
        entryFileNames: (chunk) => (chunk.name === 'sw' ? 'sw.js' : 'assets/[name]-[hash].js'),
        chunkFileNames: 'assets/[name]-[hash].js',
        assetFileNames: 'assets/[name]-[hash][extname]',
      },
    },
  },
});
