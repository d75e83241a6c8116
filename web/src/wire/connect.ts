// Connect's protocol over fetch: a call is a POST with JSON in both
// directions; a stream is a body of frames, each a byte of flags, a length of
// four bytes and JSON. https://connectrpc.com/docs/protocol

/** A Failure is an error of the API, or 'offline' where there was no answer. */
export class Failure extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

const maxFrame = 8 << 20; // bytes: the longest question is about a tenth
const endOfStream = 0x02;

/** call makes one call and returns the JSON that came back. */
export async function call(method: string, request: object, signal?: AbortSignal): Promise<unknown> {
  const response = await post(method, 'application/json', JSON.stringify(request), signal);
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw failure(body, response.status);
  return body;
}

/** stream makes a call and yields each message until the server ends it. */
export async function* stream(method: string, request: object, signal: AbortSignal): AsyncGenerator<unknown, void> {
  const response = await post(method, 'application/connect+json', frame(JSON.stringify(request)), signal);
  if (!response.ok || !response.body) throw failure(await response.json().catch(() => undefined), response.status);
  for await (const { flags, data } of frames(response.body.getReader())) {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    if (!(flags & endOfStream)) {
      yield value;
      continue;
    }
    const error = (value as { error?: unknown }).error;
    if (error) throw failure(error, 0);
    return;
  }
  throw new Failure('offline', 'the connection broke');
}

async function post(method: string, type: string, body: string | Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<Response> {
  const headers = { 'Content-Type': type, 'Connect-Protocol-Version': '1' };
  try {
    return await fetch('/bawn.v1.' + method, { method: 'POST', headers, body, signal: signal ?? AbortSignal.timeout(30_000), cache: 'no-store', redirect: 'error', credentials: 'same-origin' });
  } catch (e) {
    throw new Failure('offline', e instanceof Error ? e.message : 'no answer');
  }
}

const codes: Readonly<Record<number, string>> = { 401: 'unauthenticated', 403: 'permission_denied', 404: 'unimplemented', 429: 'resource_exhausted', 502: 'offline', 503: 'offline', 504: 'offline' };

function failure(body: unknown, status: number): Failure {
  const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
  return new Failure(
    typeof code === 'string' ? code : (codes[status] ?? 'unknown'),
    typeof message === 'string' ? message : `the server answered with status ${status}`,
  );
}

function frame(json: string): Uint8Array<ArrayBuffer> {
  const data = new TextEncoder().encode(json);
  const out = new Uint8Array(5 + data.length);
  new DataView(out.buffer).setUint32(1, data.length);
  out.set(data, 5);
  return out;
}

/** frames cuts a body into frames. */
export async function* frames(body: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'>): AsyncGenerator<{ flags: number; data: Uint8Array }, void> {
  let held = new Uint8Array(0);
  for (;;) {
    const length = held.length < 5 ? 0 : new DataView(held.buffer, held.byteOffset).getUint32(1);
    if (length > maxFrame) throw new Failure('unknown', `the server sent a message of ${length} bytes; want at most ${maxFrame}`);
    if (held.length >= 5 + length && held.length >= 5) {
      yield { flags: held[0] ?? 0, data: held.subarray(5, 5 + length) };
      held = held.slice(5 + length);
      continue;
    }
    const { done, value } = await read(body);
    if (done) return;
    const both = new Uint8Array(held.length + value.length);
    both.set(held);
    both.set(value, held.length);
    held = both;
  }
}

async function read(body: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'>): Promise<ReadableStreamReadResult<Uint8Array>> {
  try {
    return await body.read();
  } catch (e) {
    throw new Failure('offline', e instanceof Error ? e.message : 'the connection broke');
  }
}
