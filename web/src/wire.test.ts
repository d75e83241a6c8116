import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, nameOf } from './passkey.ts';
import { parse, to } from './route.ts';
import { frames } from './wire/connect.ts';
import { approval, record, verdict } from './wire/messages.ts';

const frame = (flags: number, text: string): number[] => {
  const data = [...new TextEncoder().encode(text)];
  return [flags, 0, 0, data.length >> 8, data.length & 255, ...data];
};

async function cut(bytes: number[], every: number): Promise<string[]> {
  let at = 0;
  const body = {
    read: async () => {
      if (at >= bytes.length) return { done: true as const, value: undefined };
      at += every;
      return { done: false as const, value: new Uint8Array(bytes.slice(at - every, at)) };
    },
  };
  const out: string[] = [];
  for await (const f of frames(body)) out.push(f.flags + new TextDecoder().decode(f.data));
  return out;
}

test('frames are found wherever the network cuts', async () => {
  const bytes = [...frame(0, '{"a":1}'), ...frame(0, ''), ...frame(2, '{}')];
  for (const every of [1, 2, 3, 5, 7, 100]) assert.deepEqual(await cut(bytes, every), ['0{"a":1}', '0', '2{}']);
});

test('a frame that is too long is refused before it is read', async () => {
  await assert.rejects(cut([0, 0x7f, 0xff, 0xff, 0xff, 1], 6), /2147483647 bytes/);
});

test('a torn frame is no frame', async () => {
  assert.deepEqual(await cut(frame(0, 'abc').slice(0, -1), 4), []);
});

test('what is absent has its zero value, and no answer is no permission', () => {
  const a = approval({});
  assert.deepEqual([a.state, a.suggested, a.always, a.answer, a.waiting], ['unspecified', 'unspecified', [], undefined, 0]);
  assert.equal(verdict('VERDICT_YES'), 'unspecified');
});

test('another type than the protocol has is an error', () => {
  for (const bad of [{ id: 1 }, { always: 'x' }, { asked: 'yesterday' }, { answer: [] }, { waiting: 'many' }, 'text', []]) {
    assert.throws(() => approval(bad), TypeError, JSON.stringify(bad));
  }
});

test('names of the prototype are no fields', () => {
  assert.equal(approval(JSON.parse('{"__proto__": {"id": "x"}}')).id, '');
});

test('numbers of 64 bits come as text', () => assert.equal(record({ durationMs: '412', exit: 0 }).durationMs, 412));

test('addresses lead to a place and back', () => {
  assert.deepEqual(parse(to('sessions', 'a/b c')), { place: 'sessions', id: 'a/b c' });
  for (const odd of ['', '#', '#nowhere/x', '#%zz', '#sessions/%zz', '#/approvals']) assert.ok(parse(odd).place);
  assert.equal(codeOf('#pair=abc'), 'abc');
  assert.equal(codeOf('#approvals'), '');
});

test('browsers have names', () => {
  assert.equal(nameOf('Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) AppleWebKit/605.1 Version/19 Mobile Safari/604.1'), 'Safari on iPhone');
  assert.equal(nameOf(''), 'Browser');
});
