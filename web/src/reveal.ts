// What an agent wants to do is written by the agent. Before a human judges it
// each character that can't be seen, that moves others, or that looks like
// another one is turned into something that can be seen.

/** A Piece is a run of text, with what a human has to know about it. */
export interface Piece {
  readonly kind: 'text' | 'space' | 'hidden' | 'foreign';
  /** What is shown. */
  readonly text: string;
  /** What it is, in words; '' for plain text. */
  readonly name: string;
  /** The line ends after this piece. */
  readonly ends?: boolean;
}

/** A View is a text made visible, as far as the limits allow. */
export interface View {
  readonly pieces: readonly Piece[];
  readonly characters: number;
  readonly lines: number;
  readonly hidden: number;
  readonly foreign: number;
  /** How many characters at the end are not in pieces. */
  readonly omitted: number;
}

const names: Readonly<Record<number, string>> = {
  0x00: 'NUL', 0x07: 'BEL', 0x08: 'backspace', 0x0b: 'vertical tab', 0x0c: 'form feed', 0x0d: 'carriage return',
  0x1b: 'escape', 0x7f: 'delete', 0x85: 'next line', 0x9b: 'control sequence', 0xa0: 'no-break space', 0xad: 'soft hyphen',
  0x34f: 'grapheme joiner', 0x61c: 'Arabic letter mark', 0x180e: 'Mongolian vowel separator', 0x200b: 'zero width space',
  0x200c: 'zero width non-joiner', 0x200d: 'zero width joiner', 0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark',
  0x2028: 'line separator', 0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding',
  0x202c: 'pop directional formatting', 0x202d: 'left-to-right override', 0x202e: 'right-to-left override',
  0x2060: 'word joiner', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate', 0x2068: 'first strong isolate',
  0x2069: 'pop directional isolate', 0x2800: 'blank braille', 0x3000: 'wide space', 0x3164: 'Hangul filler', 0xfeff: 'byte order mark',
};

// Controls, separators other than the space, characters without a glyph,
// lone surrogates, private and unassigned ones, and the blank braille cell.
const invisible = /^[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]$/u;
const combining = /^\p{M}$/u;

/** codePoint writes U+202E. */
export function codePoint(c: string): string {
  return 'U+' + (c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
}

function nameOf(c: string): string {
  const known = names[c.codePointAt(0) ?? 0];
  return known ? `${codePoint(c)} ${known}` : codePoint(c);
}

/** describe says which piece one character is, by itself and after another. */
function describe(c: string, before: string): Piece {
  if (c === '\n') return { kind: 'space', text: '↵', name: 'end of line', ends: true };
  if (c === '\t') return { kind: 'space', text: '⇥', name: 'tab' };
  if (c >= ' ' && c <= '~') return { kind: 'text', text: c, name: '' };
  if (invisible.test(c) || (combining.test(c) && (before === '' || combining.test(before) || before <= '~'))) {
    return { kind: 'hidden', text: nameOf(c), name: nameOf(c) };
  }
  return { kind: 'foreign', text: c, name: 'not ASCII' };
}

/**
 * reveal makes text visible. After maxCharacters characters or maxMarks marks
 * it stops and says in omitted how much it left out.
 */
export function reveal(text: string, maxCharacters = 100_000, maxMarks = 5_000): View {
  const characters = Array.from(text);
  const out: Piece[] = [];
  const tally = { hidden: 0, foreign: 0, lines: 1, marks: 0 };
  let i = 0;
  for (; i < characters.length && i < maxCharacters && tally.marks < maxMarks; i++) {
    add(out, pieceOf(characters, i), tally);
  }
  return { pieces: out, characters: characters.length, lines: tally.lines, hidden: tally.hidden, foreign: tally.foreign, omitted: characters.length - i };
}

const blank = (c: string | undefined) => c === undefined || c === ' ' || c === '\n' || c === '\t';

// A space is shown where it could be overlooked: at the start and end of a
// line, and where there is more than one.
function pieceOf(all: readonly string[], i: number): Piece {
  const c = all[i] ?? '';
  if (c !== ' ') return describe(c, all[i - 1] ?? '');
  if (blank(all[i - 1]) || blank(all[i + 1])) return { kind: 'space', text: '·', name: 'space' };
  return { kind: 'text', text: ' ', name: '' };
}

function add(out: Piece[], p: Piece, tally: { hidden: number; foreign: number; lines: number; marks: number }): void {
  const last = out.at(-1);
  if (last && last.kind === p.kind && p.kind !== 'hidden' && !last.ends && last.name === p.name) {
    out[out.length - 1] = { ...last, ...p, text: last.text + p.text };
  } else {
    out.push(p);
    tally.marks += p.kind === 'text' ? 0 : 1;
  }
  if (p.kind === 'hidden') tally.hidden++;
  if (p.kind === 'foreign') tally.foreign++;
  if (p.ends) tally.lines++;
}

/** plain writes text on one line, with everything reveal marks spelled out. */
export function plain(text: string): string {
  let out = '';
  for (const c of text) {
    const p = describe(c, '');
    out += p.kind === 'hidden' || p.kind === 'space' ? `⟨${p.kind === 'space' ? p.name : codePoint(c)}⟩` : c;
  }
  return out;
}

/** spelled is plain with the lines kept: the cheap form for very long texts. */
export function spelled(text: string): string {
  return text.split('\n').map(plain).join('↵\n');
}
