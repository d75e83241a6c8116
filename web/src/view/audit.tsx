// The log.
import { useEffect, useState } from 'preact/hooks';
import { signedOut, words } from '../live.ts';
import { audit, type Filter } from '../wire/api.ts';
import type { Page, Record, Verdict, Verified } from '../wire/messages.ts';
import { Timeline } from './timeline.tsx';
import { At, Exact, Fact, Failed, Line, Prose, Title } from './text.tsx';

const nothing: Filter = { session: '', agent: '', kind: '', verdict: 'unspecified', resource: '', since: undefined, until: undefined };

/** Audit is the log with its filters. */
export function Audit() {
  const [filter, setFilter] = useState(nothing);
  const [round, again] = useState(0);
  const [records, setRecords] = useState<readonly Record[]>();
  const [next, setNext] = useState(0);
  const [faults, setFaults] = useState<readonly string[]>([]);
  const [failed, setFailed] = useState('');
  const read = async (before: number, add: (page: Page) => void) => {
    try {
      const page = await audit.query(filter, before);
      add(page);
      setNext(page.next);
      setFaults(page.faults);
      setFailed('');
    } catch (e) {
      if (!signedOut(e)) setFailed(words(e));
    }
  };
  useEffect(() => {
    let current = true;
    void read(0, (page) => current && setRecords(page.records));
    return () => {
      current = false;
    };
  }, [filter, round]);
  return (
    <>
      <div class="head"><Title>Audit</Title><Verify /></div>
      <Filters onChange={setFilter} onAgain={() => again(round + 1)} />
      <Timeline filter={filter} round={round} onChoose={(since, until) => setFilter({ ...filter, since, until })} />
      <Failed why={failed} />
      {faults.map((fault, i) => <Failed key={i} why={fault} />)}
      <p class="sub" role="status">{records ? (records.length === 0 ? 'No record fits.' : `${records.length} records, the newest first`) : 'Looking…'}</p>
      <ol class="records">{records?.map((r) => <li key={r.seq}><Entry of={r} /></li>)}</ol>
      {next > 0 && <button type="button" class="wide" onClick={() => read(next, (page) => setRecords([...(records ?? []), ...page.records]))}>Older records</button>}
    </>
  );
}

function Verify() {
  const [state, setState] = useState<Verified>();
  const [failed, setFailed] = useState('');
  useEffect(() => {
    audit.verify().then(setState, (e: unknown) => signedOut(e) || setFailed(words(e)));
  }, []);
  if (failed) return <Failed why={failed} />;
  if (!state) return <p class="sub">Checking the log…</p>;
  if (state.inOrder) return <p class="sub good">In order: {state.records.toLocaleString('en')} records, none changed, removed or added</p>;
  return <p class="note warn" role="alert">The log is not in order after record {state.records}: <Prose of={state.fault} /></p>;
}

const local = (text: string) => (text ? new Date(text) : undefined);

function Filters({ onChange, onAgain }: { onChange: (f: Filter) => void; onAgain: () => void }) {
  const apply = (e: SubmitEvent) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const get = (name: string) => String(data.get(name) ?? '');
    onChange({ session: get('session'), agent: get('agent'), kind: get('kind'), verdict: get('verdict') as Verdict, resource: get('resource'), since: local(get('since')), until: local(get('until')) });
    onAgain();
  };
  return (
    <form class="filters" onSubmit={apply} onReset={() => { onChange(nothing); onAgain(); }} aria-label="Filter the log">
      <label class="field">Resource<input name="resource" type="search" placeholder="git push, *.example.org" autocomplete="off" /></label>
      <label class="field">Became
        <select name="verdict"><option value="unspecified">anything</option><option value="allow">allowed</option><option value="deny">denied</option></select>
      </label>
      <details>
        <summary>More filters</summary>
        <div class="grid">
          <label class="field">Kind
            <select name="kind"><option value="">any</option>{['command', 'filesystem', 'network', 'tool', 'session', 'audit'].map((k) => <option key={k}>{k}</option>)}</select>
          </label>
          <label class="field">Session<input name="session" autocomplete="off" /></label>
          <label class="field">Agent<input name="agent" autocomplete="off" /></label>
          <label class="field">Not before<input name="since" type="datetime-local" /></label>
          <label class="field">Before<input name="until" type="datetime-local" /></label>
        </div>
      </details>
      <div class="actions start"><button type="submit" class="allow">Filter</button><button type="reset">Clear</button></div>
    </form>
  );
}

const became: Readonly<{ [K in Verdict]: string }> = { allow: 'allowed', deny: 'denied', ask: 'asked', unspecified: 'noted' };

function Entry({ of: r }: { of: Record }) {
  return (
    <details class={'record ' + r.resolved}>
      <summary>
        <span class="verdict">{became[r.resolved]}</span>
        <span class="what"><Line of={r.operation} /> <Line of={r.resource} mono /></span>
        <span class="meta"><At time={r.time} /> · <Line of={r.agent || r.session.slice(0, 8)} /></span>
      </summary>
      <Exact of={r.resource} label="The resource" />
      <dl class="facts">
        <Fact name="Number">{r.seq}</Fact>
        <Fact name="Kind"><Line of={`${r.kind} ${r.operation}`} /></Fact>
        <Fact name="Arguments">{r.args.length > 0 && <ol class="args">{r.args.map((a, i) => <li key={i}><Line of={a} mono /></li>)}</ol>}</Fact>
        <Fact name="In">{r.dir && <Line of={r.dir} mono />}</Fact>
        <Fact name="Session"><Line of={r.session} mono /></Fact>
        <Fact name="Policy said">{r.requested === 'unspecified' ? '' : r.requested}</Fact>
        <Fact name="Settled by">{r.source && <Line of={r.source} />}{r.rule && <> <Line of={`(${r.rule})`} mono /></>}</Fact>
        <Fact name="Reason">{r.reason && <Prose of={r.reason} />}</Fact>
        <Fact name="Exit">{r.exit}</Fact>
        <Fact name="Took">{r.durationMs > 0 && `${r.durationMs} ms`}</Fact>
        {[...r.details].map(([name, value]) => <Fact key={name} name={name}><Prose of={value} /></Fact>)}
      </dl>
    </details>
  );
}
