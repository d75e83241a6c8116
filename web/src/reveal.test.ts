import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plain, reveal, spelled } from './reveal.ts';

const shown = (text: string) => reveal(text).pieces.map((p) => (p.kind === 'hidden' ? `[${p.text}]` : p.text)).join('');

test('plain text stays as it is', () => {
  const view = reveal('git push origin main');
  assert.deepEqual(view.pieces, [{ kind: 'text', text: 'git push origin main', name: '' }]);
  assert.deepEqual([view.characters, view.lines, view.hidden, view.foreign, view.omitted], [20, 1, 0, 0, 0]);
});

test('nothing that can hide is left in what is shown', () => {
  const able = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
  for (let point = 0; point <= 0x10ffff; point++) {
    const c = String.fromCodePoint(point);
    for (const text of [`a${c}b`, c]) {
      for (const p of reveal(text).pieces) {
        if (able.test(p.text)) assert.fail(`U+${point.toString(16)} is shown as ${JSON.stringify(p.text)}`);
      }
    }
  }
});

const table: [string, string, string][] = [
  ['bidi override', 'echo \u202egnp.exe', 'echo [U+202E right-to-left override]gnp.exe'],
  ['zero width', 'git\u200b push', 'git[U+200B zero width space] push'],
  ['escape sequence', 'a\x1b[2Kb', 'a[U+001B escape][2Kb'],
  ['carriage return', 'rm -rf x\recho hi', 'rm -rf x[U+000D carriage return]echo hi'],
  ['tag characters', 'a\u{e0041}', 'a[U+E0041]'],
  ['lone surrogate', 'a\ud800b', 'a[U+D800]b'],
  ['private use', '\uf8ff \uf8ff', '[U+F8FF] [U+F8FF]'],
  ['no-break space', 'a\u00a0b', 'a[U+00A0 no-break space]b'],
  ['spaces that count', '  a  b c ', '··a··b c·'],
  ['newline and tab', 'a\n\tb', 'a↵⇥b'],
  ['piled marks', 'e\u0301', 'e[U+0301]'],
  ['Hangul filler', '\u3164', '[U+3164 Hangul filler]'],
];
for (const [name, text, want] of table) {
  test(name, () => assert.equal(shown(text), want));
}

test('letters of other scripts are told apart from ASCII', () => {
  const view = reveal('р\u0430ypal.com');
  assert.equal(view.pieces[0]?.kind, 'foreign');
  assert.equal(view.foreign, 2);
});

test('markup is text', () => {
  assert.deepEqual(reveal('<img src=x onerror=alert(1)>').pieces.map((p) => p.kind), ['text']);
});

test('what is left out is counted', () => {
  const long = reveal('x'.repeat(150_000));
  assert.equal(long.omitted, 50_000);
  const marks = reveal('\u200b'.repeat(6_000));
  assert.equal(marks.omitted, 1_000);
  assert.equal(reveal('x'.repeat(10_240)).omitted, 0);
});

test('a text on one line', () => assert.equal(plain('a\n\u202eb'), 'a⟨end of line⟩⟨U+202E⟩b'));
test('a long text keeps its lines', () => assert.equal(spelled('a\u200b\nb'), 'a⟨U+200B⟩↵\nb'));

test('nothing is lost: the text can be had back from what is shown', () => {
  const alphabet = ['a', ' ', '\n', '\t', '·', '↵', 'U+202E', '\u202e', '\u0301', 'é', '\u200b', '\ud800', '😀', '\u{e0041}', '\x1b', '⟨'];
  const back: Record<string, string> = { '·': ' ', '↵': '\n', '⇥': '\t' };
  for (let seed = 1; seed < 3000; seed++) {
    let x = seed;
    let text = '';
    for (let i = 0; i < 12; i++) text += alphabet[(x = (x * 48271) % 2147483647) % alphabet.length];
    const again = reveal(text).pieces.map((p) => {
      if (p.kind === 'hidden') return String.fromCodePoint(parseInt(p.text.slice(2), 16));
      return p.kind === 'space' ? Array.from(p.text, (c) => back[c]).join('') : p.text;
    });
    assert.equal(again.join(''), text);
  }
});
