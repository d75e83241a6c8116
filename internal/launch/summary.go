package launch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/verb"
)

// maxListed is how many refusals the summary names.
const maxListed = 10

// summary tells the human what Bawn refused during the session. Only refusals that Bawn pronounced itself are listed: an error
// that a guest got from the kernel may have many reasons.
func (p *Planned) summary(r runner.Result) {
	e, s := p.env, p.Session
	for _, h := range r.Limits {
		if h.Killed || !p.Quiet {
			fmt.Fprintf(e.Stderr, "bawn: %s (%s); %s\n", h.Reason, h.Rule, h.Remedy)
		}
	}
	if p.Quiet {
		return
	}
	told := p.Known.withoutTries(e, withoutTries(r.Denials, e.Getenv("HOME")))
	for i, d := range told {
		if i == maxListed {
			fmt.Fprintf(e.Stderr, "bawn: denied %d more; see \"bawn audit query --session %s\"\n", len(told)+r.Missed-maxListed, s.ID)
			break
		}
		if d.Rule == egress.RuleFailed { // nobody has denied it
			fmt.Fprintf(e.Stderr, "bawn: note: %s; %s\n", redact.Visible(d.Reason), redact.Visible(d.Remedy))
			continue
		}
		fmt.Fprintf(e.Stderr, "bawn: denied: %v %s (%s): %s; %s\n", d.Operation, redact.Visible(d.Resource), redact.Visible(d.Rule), redact.Visible(d.Reason), redact.Visible(d.Remedy))
	}
}

// tries are files that programs try to write unasked and can do without, beside those of
// unasked: histories, usage statistics, and a directory of their own in a home that has
// none. Such refusals are in the log only.
var tries = []string{
	"~/.bash_history", "~/.zsh_history", "~/.histfile", "~/.sh_history", "~/.ash_history", "~/.viminf?", "~/.viminf?.tmp", "~/.lesshst", "~/.lesshst?", "~/.lesshsQ",
	"~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.sqlite_history", "~/.mysql_history", "~/.wget-hsts", "~/.zcompdump*",
	"~/.config", "~/.cache", "~/.local", "~/.local/share", "~/.local/state", // made before a file of their own is
	"~/.config/go", "~/.config/go/telemetry*", "~/.config/configstore", // go, and programs of npm
	"~/.local/share/fish", "~/.config/fish", "/completions", "/conf.d", "/functions", "/config.fish", // fish, and where it has no directory
	"/_tmp_*", // pnpm, which looks where files can be linked to its store
}

// withoutTries removes refused writes that programs try unasked, and those that the
// human has refused and so knows. A word is for the agent, which reads it here.
func withoutTries(denials []sandbox.Denial, home string) []sandbox.Denial {
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return slices.DeleteFunc(slices.Clone(denials), func(d sandbox.Denial) bool {
		if d.Reason == (bawn.Answer{}).Denial() {
			return true
		}
		name := d.Resource
		if below, ok := strings.CutPrefix(name, home+"/"); ok {
			name = "~/" + below
		}
		return d.Rule == layout.RuleReadOnly && (unasked(name) || slices.ContainsFunc(tries, func(pattern string) bool {
			ok, err := filepath.Match(pattern, name)
			return ok && err == nil
		}))
	})
}

// unasked reports whether a place is, by its names, one for Python's compiled files, or
// one in the home directory or below /var for caches, logs, histories or telemetry.
func unasked(name string) bool {
	if strings.Contains(name+"/", "/__pycache__/") {
		return true
	}
	if !strings.HasPrefix(name, "~/") && !strings.HasPrefix(name, "/var/") {
		return false
	}
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		if part == "log" || strings.HasSuffix(part, ".log") || strings.TrimLeft(part, "._") == "logs" {
			return true
		}
		for _, word := range []string{"cache", "history", "telemetry", "analytics"} {
			if strings.Contains(part, word) {
				return true
			}
		}
	}
	return false
}

// JSONWanted reports whether args are a bawn run whose end a program reads,
// also where they can't be understood, or start a session whose spec says so.
func JSONWanted(e *Env, root *cobra.Command, args []string) bool {
	if e.spec != nil {
		return e.spec.JSON
	}
	c, rest, err := root.Find(args)
	if err != nil || c.Name() != "run" {
		return false
	}
	if c.Flags().Changed("json") || c.Flags().NArg() > 0 { // was understood as far as the guest's command
		wanted, err := c.Flags().GetBool("json")
		return err == nil && wanted
	}
	if i := slices.Index(rest, "--"); i >= 0 {
		rest = rest[:i]
	}
	return slices.Contains(rest, "--json")
}

// End is the line of JSON with which bawn run --json ends. Keys are those
// of the audit log (docs/audit-format.md).
type End struct {
	Session    string            `json:"session,omitempty"` // "" where none was made
	Exit       int               `json:"exit"`
	TimedOut   bool              `json:"timedOut,omitempty"`
	Limits     []sandbox.Hit     `json:"limits,omitempty"`
	Error      *endError         `json:"error,omitempty"` // where Bawn, and not the guest, decided on the exit code
	DurationMS int64             `json:"durationMs"`
	Denials    []jsonDenial      `json:"denials"`
	Missed     int               `json:"denialsNotListed,omitempty"`
	InPart     []bawn.Capability `json:"enforcedInPart,omitempty"`
	NoSandbox  string            `json:"noSandbox,omitempty"` // why, where nothing contained it
}

// endError says why, for a program and for a human.
type endError struct {
	Code    string `json:"code"` // usage, denied, not_executable, not_found, unenforceable, timeout or failed
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// partly lists the attributes that a session gets in part, in any of its zones.
func partly(s *runner.Session) []bawn.Capability {
	list := s.Plan.Partly()
	if s.Split != nil {
		list = slices.Concat(list, executor.Partly(), slices.DeleteFunc(slices.Clone(s.Split.Plan.Partly()), func(c bawn.Capability) bool { return slices.Contains(list, c) }))
	}
	return list
}

// sayPartly names the requested attributes that the session gets in part only:
// once, and again when that has changed. The line of --json always has it.
func (u *setup) sayPartly(provider string, partly []bawn.Capability) {
	if u.Quiet || u.JSON || len(partly) == 0 {
		return
	}
	var names, all []string
	for _, c := range partly {
		names, all = append(names, c.Attribute), append(all, c.Attribute, How(c))
	}
	if news(u.env, "partly-"+provider, strings.Join(all, "\n")) {
		u.note(u.env, "enforced in part on this machine: "+strings.Join(names, ", ")+" (said once; \"bawn doctor\" says how, and what would mend it)")
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

// NewEndError describes an error for End.
func NewEndError(exit int, err error, remedy string) *endError {
	return &endError{Code: errorWord(exit, err), Message: err.Error(), Remedy: remedy}
}

// errorWord is an error's name for programs.
func errorWord(exit int, err error) string {
	var absent *sandbox.NotFoundError
	var mismatch *sandbox.MismatchError
	switch {
	case exit == verb.ExitUsage:
		return "usage"
	case errors.As(err, &mismatch):
		return "unenforceable"
	case exit == verb.ExitNotFound:
		return "not_found"
	case errors.As(err, &absent):
		return "not_executable"
	case exit == verb.ExitDenied:
		return "denied"
	}
	return "failed"
}

// endOf describes a session that was made; err is what outcome returned.
func endOf(s *runner.Session, r runner.Result, err error) End {
	end := End{Session: s.ID, Exit: r.Code, TimedOut: r.TimedOut, Limits: r.Limits, DurationMS: r.Duration.Milliseconds(), Missed: r.Missed, InPart: partly(s), NoSandbox: s.Uncontained}
	for _, d := range r.Denials {
		end.Denials = append(end.Denials, jsonDenial(d))
	}
	var ce *verb.Error
	if errors.As(err, &ce) {
		end.Exit, end.Error = ce.Code, NewEndError(ce.Code, ce.Err, ce.Hint)
	}
	if r.TimedOut && end.Error == nil {
		end.Error = &endError{Code: "timeout", Message: fmt.Sprintf("the session's time of %v was up", s.Isolation.Resources.Timeout), Remedy: "give it more with --timeout"}
	}
	return end
}

// Write prints the line; a returned error makes its exit code Bawn's.
func (end End) Write(e *Env) error {
	if end.Denials == nil {
		end.Denials = []jsonDenial{}
	}
	_ = verb.JSONLines(e.Stderr).Encode(end) // strings, numbers and lists of them; a reader that is gone needs no line
	if end.Exit == 0 {
		return nil
	}
	return verb.Status(end.Exit)
}
