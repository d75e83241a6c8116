package policy

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell"
)

// A Part is one thing that was judged by itself: a command of a line, a text
// that can't be read, a file, a host or a tool.
type Part struct {
	Text    string         // what it is, with what runs it
	Command *shell.Command // nil for what is no command that could be read
	Effect  Effect         // the row of the table
	Verdict bawn.Verdict
	Rule    string
	Source  bawn.Source
	Reason  string
	Steps   []bawn.Step // on the way to the verdict
}

// Explain decides as Decide does, and says besides how each part was judged.
// An action that is refused as none has no parts.
func (p *Policy) Explain(q *Question) (bawn.Decision, []Part) {
	d := p.Decide(q)
	if len(d.Trace) == 0 {
		return d, nil
	}
	if q.Action.Kind != bawn.Command {
		return d, []Part{{Text: d.Trace[0].Why, Verdict: d.Verdict, Rule: d.Rule, Source: d.Source, Reason: d.Reason, Steps: d.Trace[1:]}}
	}
	r := reading{p: p, q: q, line: q.read(p.known().secret)}
	var out []Part
	for i, j := range r.judge(nil) {
		part := Part{Text: j.steps[0].Why, Effect: j.effect, Verdict: j.verdict, Rule: j.rule, Source: j.source, Reason: j.reason, Steps: j.steps[1:]}
		if n := i - len(r.line.Opaque); n >= 0 && n < len(r.line.Commands) {
			part.Command = &r.line.Commands[n]
		}
		out = append(out, part)
	}
	return d, out
}
