// Written from proto/bawn/v1; test/web holds it to that.
import { bytes, choice as names, flag, list, message, number, optional, text, texts, time, type Shape } from './schema.ts';

export const verdict = names('VERDICT_', ['unspecified', 'deny', 'ask', 'allow']);
export type Verdict = Shape<typeof verdict>;

export const scope = names('SCOPE_', ['unspecified', 'once', 'session', 'always']);
export type Scope = Shape<typeof scope>;

export const approvalState = names('APPROVAL_STATE_', ['unspecified', 'pending', 'answered', 'expired', 'withdrawn']);
export type ApprovalState = Shape<typeof approvalState>;

export const action = message({
  kind: text,
  operation: text,
  resource: text,
  args: list(text),
  session: text,
  agent: text,
  dir: text,
  at: time,
});
export type Action = Shape<typeof action>;

export const rule = message({
  id: text,
  kind: text,
  operations: list(text),
  pattern: text,
  verdict: verdict,
  source: text,
  reason: text,
});
export type Rule = Shape<typeof rule>;

export const answer = message({
  verdict: verdict,
  scope: scope,
  by: text,
  at: time,
  why: text,
});
export type Answer = Shape<typeof answer>;

export const line = message({
  label: text,
  text: text,
  untrusted: flag,
  exact: flag,
});

export const choice = message({
  key: text,
  words: text,
  verdict: verdict,
  scope: scope,
});
export type Choice = Shape<typeof choice>;

export const approval = message({
  id: text,
  state: approvalState,
  session: text,
  parent: text,
  agent: text,
  action: optional(action),
  canonical: text,
  reason: text,
  rule: text,
  contains: text,
  suggested: verdict,
  suggestedWhy: text,
  always: list(rule),
  covers: list(text),
  noAlways: text,
  justification: text,
  asked: time,
  expires: time,
  answer: optional(answer),
  waiting: number,
  never: list(rule),
  settled: time,
  for: text,
  next: text,
  more: number,
  lines: list(line),
  program: text,
  reach: text,
  choices: list(choice),
});
export type Approval = Shape<typeof approval>;

export const enforced = message({
  name: text,
  how: text,
  partly: flag,
});
export type Enforced = Shape<typeof enforced>;

export const connection = message({
  host: text,
  opened: time,
  sent: number,
  received: number,
  count: number,
});
export type Connection = Shape<typeof connection>;

export const session = message({
  id: text,
  parent: text,
  agent: text,
  command: text,
  dir: text,
  mode: text,
  autonomy: text,
  provider: text,
  started: time,
  alive: flag,
  terminal: flag,
  viewers: number,
  split: flag,
  enforced: list(enforced),
  connections: list(connection),
});
export type Session = Shape<typeof session>;

export const ended = message({
  exit: number,
  why: text,
});
export type Ended = Shape<typeof ended>;

export const record = message({
  seq: number,
  id: text,
  time: time,
  session: text,
  parent: text,
  agent: text,
  kind: text,
  operation: text,
  resource: text,
  args: list(text),
  dir: text,
  requested: verdict,
  resolved: verdict,
  source: text,
  rule: text,
  reason: text,
  ticket: text,
  provider: text,
  mode: text,
  exit: optional(number),
  durationMs: number,
  bytes: number,
  details: texts,
});
export type Record = Shape<typeof record>;

export const bucket = message({
  since: time,
  allowed: number,
  denied: number,
  other: number,
});
export type Bucket = Shape<typeof bucket>;

export const explainedStep = message({
  stage: text,
  verdict: text,
  why: text,
});
export type ExplainedStep = Shape<typeof explainedStep>;

export const explainedPart = message({
  text: text,
  via: list(text),
  form: text,
  effect: text,
  unproven: text,
  verdict: text,
  reason: text,
  rule: text,
  source: text,
  steps: list(explainedStep),
});
export type ExplainedPart = Shape<typeof explainedPart>;

export const alternative = message({
  verdict: text,
  change: text,
});
export type Alternative = Shape<typeof alternative>;

export const suggestedRule = message({
  kind: text,
  pattern: text,
  verdict: text,
  operations: list(text),
});
export type SuggestedRule = Shape<typeof suggestedRule>;

export const device = message({
  id: text,
  name: text,
  paired: time,
  seen: time,
  readOnly: flag,
  push: flag,
  this: flag,
});
export type Device = Shape<typeof device>;

export const mechanism = message({
  name: text,
  works: flag,
  detail: text,
});
export type Mechanism = Shape<typeof mechanism>;

export const past = message({
  session: text,
  agent: text,
  dir: text,
  began: time,
  runs: flag,
  killed: flag,
});
export type Past = Shape<typeof past>;

export const changeKind = names('CHANGE_KIND_', ['unspecified', 'added', 'deleted', 'modified']);
export type ChangeKind = Shape<typeof changeKind>;

export const changedFile = message({
  id: text,
  name: text,
  kind: changeKind,
  oldMode: text,
  newMode: text,
  oldSize: number,
  newSize: number,
  counted: flag,
  added: number,
  deleted: number,
  binary: flag,
  held: text,
  stays: text,
});
export type ChangedFile = Shape<typeof changedFile>;

export const hunk = message({
  oldStart: number,
  oldLines: number,
  newStart: number,
  newLines: number,
  lines: list(text),
});
export type Hunk = Shape<typeof hunk>;

export const step = message({
  what: text,
  name: text,
  detail: text,
});
export type Step = Shape<typeof step>;

export const copy = message({
  session: text,
  name: text,
  agent: text,
  dir: text,
  began: time,
  runs: flag,
  killed: flag,
  files: number,
});
export type Copy = Shape<typeof copy>;

export const approvalServiceListResponse = message({
  approvals: list(approval),
});

export const approvalServiceGetResponse = message({
  approval: optional(approval),
});

export const approvalServiceWatchResponse = message({
  approval: optional(approval),
});

export const approvalServiceAnswerResponse = message({
  approval: optional(approval),
  first: flag,
});

export const sessionServiceListResponse = message({
  sessions: list(session),
});

export const sessionServiceWatchResponse = message({
  changed: flag,
  sessions: list(session),
});

export const sessionServiceAttachResponse = message({
  view: text,
  output: bytes,
  ended: optional(ended),
  anew: flag,
  notice: text,
});
export type Attached = Shape<typeof sessionServiceAttachResponse>;

export const auditServiceQueryResponse = message({
  records: list(record),
  next: number,
  faults: list(text),
});
export type Page = Shape<typeof auditServiceQueryResponse>;

export const auditServiceTimelineResponse = message({
  buckets: list(bucket),
});

export const auditServiceVerifyResponse = message({
  inOrder: flag,
  records: number,
  hash: text,
  fault: text,
});
export type Verified = Shape<typeof auditServiceVerifyResponse>;

export const policyServiceExplainResponse = message({
  verdict: text,
  reason: text,
  rule: text,
  source: text,
  canonical: text,
  mode: text,
  autonomy: text,
  contained: flag,
  cwd: text,
  workspace: text,
  parts: list(explainedPart),
  steps: list(explainedStep),
  alternatives: list(alternative),
  suggestedRules: list(suggestedRule),
  advice: text,
});
export type Explained = Shape<typeof policyServiceExplainResponse>;

export const deviceServiceListResponse = message({
  devices: list(device),
});

export const deviceServicePushKeyResponse = message({
  key: text,
});

export const authServiceMeResponse = message({
  loggedIn: flag,
  device: text,
  name: text,
  readOnly: flag,
});
export type Me = Shape<typeof authServiceMeResponse>;

export const authServiceBeginPairResponse = message({
  ceremony: text,
  options: text,
});

export const authServiceFinishPairResponse = message({
  me: optional(authServiceMeResponse),
});

export const authServiceBeginLoginResponse = message({
  ceremony: text,
  options: text,
});

export const authServiceFinishLoginResponse = message({
  me: optional(authServiceMeResponse),
});

export const systemServiceGetResponse = message({
  version: text,
  machine: text,
  platform: text,
  started: time,
  now: time,
  mechanisms: list(mechanism),
});
export type System = Shape<typeof systemServiceGetResponse>;

export const undoServiceListResponse = message({
  sessions: list(past),
});

export const undoServiceDiffResponse = message({
  files: list(changedFile),
  more: number,
  git: list(step),
});
export type Diff = Shape<typeof undoServiceDiffResponse>;

export const undoServiceLinesResponse = message({
  hunks: list(hunk),
  cut: flag,
  missing: text,
});
export type Lines = Shape<typeof undoServiceLinesResponse>;

export const undoServicePreviewResponse = message({
  steps: list(step),
  kept: list(step),
  more: number,
  killed: flag,
  plan: text,
  ceremony: text,
  options: text,
});
export type Preview = Shape<typeof undoServicePreviewResponse>;

export const undoServiceUndoResponse = message({
  done: number,
  before: text,
  failed: text,
});
export type Undone = Shape<typeof undoServiceUndoResponse>;

export const copyServiceListResponse = message({
  copies: list(copy),
});

export const copyServiceFilesResponse = message({
  files: list(changedFile),
  more: number,
  listing: text,
  commits: list(step),
});
export type Listing = Shape<typeof copyServiceFilesResponse>;

export const copyServiceLinesResponse = message({
  hunks: list(hunk),
  cut: flag,
  missing: text,
});

export const copyServicePreviewResponse = message({
  steps: list(step),
  conflicts: list(step),
  plan: text,
  ceremony: text,
  options: text,
});
export type Taking = Shape<typeof copyServicePreviewResponse>;

export const copyServiceApplyResponse = message({
  done: number,
  before: text,
  failed: text,
});

export const copyServicePreviewDiscardResponse = message({
  ceremony: text,
  options: text,
});
