import { readdirSync } from 'node:fs';
import { defineConfig } from 'vite';

// The tests of src, bundled for node --test: node 20 reads no TypeScript.
const tests = readdirSync('src').filter((name) => name.endsWith('.test.ts'));

export default defineConfig({
  publicDir: false,
  build: {
    ssr: true,
    target: 'node20',
    outDir: '.unit',
    emptyOutDir: true,
    minify: false,
    rollupOptions: {
      input: Object.fromEntries(tests.map((name) => [name.replace('.ts', ''), 'src/' + name])),
      output: { entryFileNames: '[name].mjs' },
    },
  },
  logLevel: 'warn',
});
