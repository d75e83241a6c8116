package cli

import (
	"encoding/json"
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// maxListed is how many refusals the summary names.
const maxListed = 10

// summary tells the human, or with --json a program, what Bawn refused during
// the session. Only refusals that Bawn pronounced itself are listed: an error
// that a guest got from the kernel may have many reasons.
func (f *runFlags) summary(e *Env, s *runner.Session, r runner.Result, err error) {
	if f.asJSON {
		f.jsonSummary(e, s, r, err)
		return
	}
	for _, h := range r.Limits {
		if h.Killed || !f.quiet {
			fmt.Fprintf(e.Stderr, "bawn: %s (%s); %s\n", h.Reason, h.Rule, h.Remedy)
		}
	}
	if f.quiet {
		return
	}
	for i, d := range r.Denials {
		if i == maxListed {
			fmt.Fprintf(e.Stderr, "bawn: denied %d more; see \"bawn audit query --session %s\"\n", len(r.Denials)+r.Missed-maxListed, s.ID)
			break
		}
		fmt.Fprintf(e.Stderr, "bawn: denied: %v %s (%s): %s; %s\n", d.Operation, redact.Visible(d.Resource), d.Rule, d.Reason, d.Remedy)
	}
}

// sayPartly says before the start what the session asked for and gets in part
// only, in doctor's words. The line of --json says it at the end.
func (f *runFlags) sayPartly(e *Env, p sandbox.Plan) {
	if f.quiet || f.asJSON {
		return
	}
	for _, c := range p.Partly() {
		line := "bawn: " + c.Attribute + " is enforced in part: " + how(c)
		if c.Remedy != "" {
			line += "; " + c.Remedy
		}
		fmt.Fprintln(e.Stderr, line)
	}
}

// jsonDenial is a refusal in the summary.
type jsonDenial struct {
	Kind      bawn.Kind      `json:"resourceType"`
	Operation bawn.Operation `json:"operation"`
	Resource  string         `json:"resource"`
	Rule      string         `json:"rule"`
	Reason    string         `json:"reason"`
	Remedy    string         `json:"remedy"`
}

func (f *runFlags) jsonSummary(e *Env, s *runner.Session, r runner.Result, err error) {
	out := struct {
		Session    string            `json:"session"`
		Exit       int               `json:"exit"`
		TimedOut   bool              `json:"timedOut,omitempty"`
		Error      string            `json:"error,omitempty"`
		DurationMS int64             `json:"durationMs"`
		Limits     []sandbox.Hit     `json:"limits,omitempty"`
		Denials    []jsonDenial      `json:"denials"`
		Missed     int               `json:"denialsNotListed,omitempty"`
		InPart     []bawn.Capability `json:"enforcedInPart,omitempty"`
	}{Session: s.ID, Exit: r.Code, TimedOut: r.TimedOut, DurationMS: r.Duration.Milliseconds(), Limits: r.Limits, Denials: []jsonDenial{}, Missed: r.Missed, InPart: s.Plan.Partly()}
	if err != nil {
		out.Error = err.Error()
	}
	for _, d := range r.Denials {
		out.Denials = append(out.Denials, jsonDenial(d))
	}
	line, _ := json.Marshal(out) // strings, numbers and lists of them
	fmt.Fprintf(e.Stderr, "%s\n", line)
}
