// The API's methods, one function each.
import { call, stream } from './connect.ts';
import * as m from './messages.ts';

const verdictName = (v: m.Verdict) => 'VERDICT_' + v.toUpperCase();
const scopeName = (s: m.Scope) => 'SCOPE_' + s.toUpperCase();

async function* read<T>(messages: AsyncIterable<unknown>, as: (v: unknown) => T): AsyncGenerator<T, void> {
  for await (const value of messages) yield as(value);
}

/** A Reply is what a human answers. */
export interface Reply {
  readonly verdict: 'allow' | 'deny';
  readonly scope: 'once' | 'session' | 'always';
  readonly why: string;
}

export const approvals = {
  pending: async (): Promise<m.Approval[]> => m.approvalServiceListResponse(await call('ApprovalService/List', { pending: true })).approvals,
  get: async (id: string): Promise<m.Approval | undefined> => m.approvalServiceGetResponse(await call('ApprovalService/Get', { id })).approval,
  watch: (signal: AbortSignal) => read(stream('ApprovalService/Watch', {}, signal), m.approvalServiceWatchResponse),
  answer: async (id: string, r: Reply) =>
    m.approvalServiceAnswerResponse(await call('ApprovalService/Answer', { id, verdict: verdictName(r.verdict), scope: scopeName(r.scope), why: r.why })),
};

const base64 = (data: string) => btoa(Array.from(new TextEncoder().encode(data), (b) => String.fromCharCode(b)).join(''));

export const sessions = {
  watch: (signal: AbortSignal) => read(stream('SessionService/Watch', {}, signal), m.sessionServiceWatchResponse),
  kill: (id: string) => call('SessionService/Kill', { id }),
  attach: (id: string, readOnly: boolean, rows: number, columns: number, signal: AbortSignal) =>
    read(stream('SessionService/Attach', { id, readOnly, rows, columns }, signal), m.sessionServiceAttachResponse),
  send: (view: string, data: string) => call('SessionService/Send', { view, data: base64(data) }),
  resize: (view: string, rows: number, columns: number) => call('SessionService/Resize', { view, rows, columns }),
};

/** A Filter chooses records; what is empty chooses all. */
export interface Filter {
  readonly session: string;
  readonly agent: string;
  readonly kind: string;
  readonly verdict: m.Verdict;
  readonly resource: string;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

const filterOf = (f: Filter) => ({ ...f, verdict: verdictName(f.verdict) });

export const audit = {
  query: async (f: Filter, before: number, limit = 50): Promise<m.Page> =>
    m.auditServiceQueryResponse(await call('AuditService/Query', { filter: filterOf(f), limit, before: String(before) })),
  timeline: async (f: Filter, buckets = 48): Promise<m.Bucket[]> =>
    m.auditServiceTimelineResponse(await call('AuditService/Timeline', { filter: filterOf(f), buckets })).buckets,
  verify: async (): Promise<m.Verified> => m.auditServiceVerifyResponse(await call('AuditService/Verify', {})),
};

/** An Ask is what the policy is asked. */
export interface Ask {
  readonly action: string;
  readonly kind: string;
  readonly operation: string;
  readonly dir: string;
  readonly mode: string;
  readonly contained: boolean;
}

export const explain = async (q: Ask): Promise<m.Explained> => m.policyServiceExplainResponse(await call('PolicyService/Explain', q));

export const devices = {
  list: async (): Promise<m.Device[]> => m.deviceServiceListResponse(await call('DeviceService/List', {})).devices,
  revoke: (id: string) => call('DeviceService/Revoke', { id }),
  pushKey: async (): Promise<string> => m.deviceServicePushKeyResponse(await call('DeviceService/PushKey', {})).key,
  subscribe: (s: { endpoint: string; p256dh: string; auth: string }) => call('DeviceService/Subscribe', s),
  unsubscribe: () => call('DeviceService/Unsubscribe', {}),
};

export const undo = {
  list: async (): Promise<m.Past[]> => m.undoServiceListResponse(await call('UndoService/List', {})).sessions,
  diff: async (session: string): Promise<m.Diff> => m.undoServiceDiffResponse(await call('UndoService/Diff', { session })),
  lines: async (session: string, file: string): Promise<m.Lines> => m.undoServiceLinesResponse(await call('UndoService/Lines', { session, file })),
  preview: async (session: string): Promise<m.Preview> => m.undoServicePreviewResponse(await call('UndoService/Preview', { session })),
  undo: async (session: string, p: m.Preview, credential: string): Promise<m.Undone> =>
    m.undoServiceUndoResponse(await call('UndoService/Undo', { session, plan: p.plan, ceremony: p.ceremony, credential })),
};

/** A Selection is what to take over from a copy, as it was listed. */
export interface Selection {
  readonly session: string;
  readonly listing: string;
  /** None for all that is not held back. */
  readonly files: readonly string[];
  readonly held: boolean;
}

export const copies = {
  list: async (): Promise<m.Copy[]> => m.copyServiceListResponse(await call('CopyService/List', {})).copies,
  files: async (session: string): Promise<m.Listing> => m.copyServiceFilesResponse(await call('CopyService/Files', { session })),
  lines: async (session: string, file: string): Promise<m.Lines> => m.copyServiceLinesResponse(await call('CopyService/Lines', { session, file })),
  preview: async (selection: Selection): Promise<m.Taking> => m.copyServicePreviewResponse(await call('CopyService/Preview', { selection })),
  apply: async (selection: Selection, p: m.Taking, credential: string): Promise<m.Undone> =>
    m.copyServiceApplyResponse(await call('CopyService/Apply', { selection, plan: p.plan, ceremony: p.ceremony, credential })),
  beginDiscard: async (session: string, listing: string) => m.copyServicePreviewDiscardResponse(await call('CopyService/PreviewDiscard', { session, listing })),
  discard: (session: string, listing: string, ceremony: string, credential: string) => call('CopyService/Discard', { session, listing, ceremony, credential }),
};

export const auth = {
  me: async (): Promise<m.Me> => m.authServiceMeResponse(await call('AuthService/Me', {})),
  beginPair: async (code: string) => m.authServiceBeginPairResponse(await call('AuthService/BeginPair', { code })),
  finishPair: async (ceremony: string, name: string, credential: string) =>
    m.authServiceFinishPairResponse(await call('AuthService/FinishPair', { ceremony, name, credential })).me,
  beginLogin: async () => m.authServiceBeginLoginResponse(await call('AuthService/BeginLogin', {})),
  finishLogin: async (ceremony: string, credential: string) =>
    m.authServiceFinishLoginResponse(await call('AuthService/FinishLogin', { ceremony, credential })).me,
  logout: () => call('AuthService/Logout', {}),
};

export const system = async (): Promise<m.System> => m.systemServiceGetResponse(await call('SystemService/Get', {}));
