package policy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// A rule is a bawn.Rule whose pattern is compiled.
type rule struct {
	bawn.Rule
	shape shape  // of a command
	path  string // of the file system: absolute, "~/…", "**/…" or relative to the workspace
	host  string
	port  string
}

// MaxPattern is the longest pattern a rule may have, in bytes.
const MaxPattern = 1024

// compile checks a rule and makes its pattern ready.
func compile(r bawn.Rule) (*rule, error) {
	c := &rule{Rule: r}
	if r.Pattern == "" || len(r.Pattern) > MaxPattern || strings.ContainsFunc(r.Pattern, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, fmt.Errorf("rule %q: want a pattern of 1 to %d printable characters", r.ID, MaxPattern)
	}
	if r.Source.String() == "invalid" || r.Verdict > bawn.Allow {
		return nil, fmt.Errorf("rule %q: it lacks a source or a verdict", r.ID)
	}
	var err error
	switch r.Kind {
	case bawn.Command:
		c.shape, err = parseShape(r.Pattern)
	case bawn.Filesystem:
		c.path, err = pathPattern(r.Pattern)
	case bawn.Network:
		c.host, c.port, err = hostPattern(r.Pattern)
	case bawn.Tool:
	default:
		err = fmt.Errorf("want the kind filesystem, network, command or tool")
	}
	if err == nil && r.Verdict == bawn.Allow && r.Kind == bawn.Command && slices.ContainsFunc(c.shape.programs, func(p string) bool { return strings.Contains(p, "*") }) {
		err = fmt.Errorf("a rule that allows must name its programs without %q", "*")
	}
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", r.ID, err)
	}
	return c, nil
}

// pathPattern brings a pattern into its one form: no trailing slash, no empty
// segment, no "." or "..".
func pathPattern(p string) (string, error) {
	dir := strings.HasSuffix(p, "/")
	clean := path.Clean(p)
	switch {
	case clean == "." || clean == ".." || strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("the pattern %q leaves the workspace; write it from / or ~", p)
	case strings.HasPrefix(clean, "~") && clean != "~" && !strings.HasPrefix(clean, "~/"):
		return "", fmt.Errorf("the pattern %q names another user's home; write it from /", p)
	case dir:
		clean += "/**"
	}
	return clean, nil
}

// hostPattern accepts NAME, *.NAME or *, each with an optional port.
func hostPattern(p string) (host, port string, err error) {
	host, port, ok := strings.Cut(p, ":")
	if n, err := strconv.ParseUint(port, 10, 16); ok && (err != nil || n == 0) {
		return "", "", fmt.Errorf("the port %q of the host %q; want NAME, *.NAME or *, with an optional :PORT", port, host)
	}
	bare := strings.TrimPrefix(host, "*.")
	if host == "*" {
		return host, port, nil
	}
	normal, _, err := hostname.Normal(bare)
	if err == nil && normal != bare {
		err = fmt.Errorf("the host %q is not in its normal form %q", bare, normal)
	}
	return host, port, err
}

// matchesCommand reports whether the rule is about a simple command.
func (r *rule) matchesCommand(a *argv) bool {
	if r.Verdict == bawn.Allow {
		return r.shape.permits(a)
	}
	return r.shape.matches(a) && (r.shape.open || r.shape.closed(a))
}

// counts reports whether the rule counts where the question is asked.
func (r *rule) counts(q *Question) bool {
	return r.When == bawn.WhenAlways || q.Contained != bawn.ContainedFully
}

// speaksOf reports whether the rule is about an operation.
func (r *rule) speaksOf(op bawn.Operation) bool {
	return len(r.Operations) == 0 || slices.Contains(r.Operations, op)
}

// matchesPath reports whether the pattern matches a clean absolute path.
func (r *rule) matchesPath(q *Question, p string) bool {
	want := r.path
	switch {
	case want[0] == '/' || strings.HasPrefix(want, "**"):
	case want == "~" || strings.HasPrefix(want, "~/"):
		if q.Home == "" {
			return false
		}
		want = path.Join(q.Home, want[1:])
	default:
		if q.Workspace == "" {
			return false
		}
		want = path.Join(q.Workspace, want)
	}
	return fspath.Match(want, p)
}

// A table finds the rules that may match without looking at all of them.
type table struct {
	commands map[string][]*rule // by program; "" for those with a wildcard
	paths    index[*rule]
	hosts    map[string][]*rule // by the last two labels; "" for the rest
	tools    map[string][]*rule // by name; "" for those with a wildcard
}

func newTable(rules []*rule) *table {
	t := &table{paths: newIndex[*rule](len(rules)), commands: map[string][]*rule{}, hosts: map[string][]*rule{}, tools: map[string][]*rule{}}
	for _, r := range rules {
		switch r.Kind {
		case bawn.Command:
			for _, p := range r.shape.programs {
				t.commands[literal(base(p))] = append(t.commands[literal(base(p))], r)
			}
		case bawn.Filesystem:
			t.paths.add(r.path, r)
		case bawn.Network:
			t.hosts[domain(r.host)] = append(t.hosts[domain(r.host)], r)
		default:
			t.tools[literal(r.Pattern)] = append(t.tools[literal(r.Pattern)], r)
		}
	}
	return t
}

// literal returns s, or "" if it has a wildcard.
func literal(s string) string {
	if strings.ContainsAny(s, "*?") {
		return ""
	}
	return s
}

// domain is the last two labels of a host, which a pattern that can match it
// shares, or "".
func domain(host string) string {
	labels := strings.Split(host, ".")
	if n := len(labels); n >= 2 && !strings.Contains(labels[n-2], "*") {
		return labels[n-2] + "." + labels[n-1]
	}
	return ""
}

// winner is the rule that decides among those that match.
func winner(q *Question, lists [2][]*rule, op bawn.Operation, matches func(*rule) bool) (w verdicts) {
	for _, list := range lists {
		for _, r := range list {
			if r.counts(q) && r.speaksOf(op) && matches(r) {
				w.add(r)
			}
		}
	}
	return w
}

// verdicts are the best rules so far, by how far their sources are trusted: the
// less trusted may only tighten the more trusted.
type verdicts struct{ managed, person, all, project, denial *rule }

// Approved begins the identities of the rules that Bawn has made of a human's
// answers. A rule that allows yields to every rule that denies, whatever the
// priorities: a person's denial is newer, or was not in sight.
const Approved = "approved:"

func (w *verdicts) add(r *rule) {
	if r.Verdict == bawn.Deny {
		w.denial = stronger(w.denial, r)
	}
	switch r.Source {
	case bawn.Project, bawn.Learned:
		w.project = stronger(w.project, r)
		return
	case bawn.Managed:
		w.managed = stronger(w.managed, r)
	}
	if r.Source != bawn.Builtin {
		w.person = stronger(w.person, r)
	}
	w.all = stronger(w.all, r)
}

// stronger is the rule with the higher priority; at equal priority deny beats
// ask beats allow. Then their identities decide, so that the order of the rules
// never does.
func stronger(a, b *rule) *rule {
	switch {
	case a == nil:
		return b
	case a.Priority != b.Priority:
		if a.Priority > b.Priority {
			return a
		}
		return b
	case a.Verdict != b.Verdict:
		if a.Verdict < b.Verdict {
			return a
		}
		return b
	case b.ID < a.ID:
		return b
	}
	return a
}

// decide applies the winners' verdicts to a judgement.
func (w *verdicts) decide(j *judgement) {
	if w.all != nil {
		defer w.yield(j)
		if w.all.Source == bawn.Builtin && w.all.Verdict == bawn.Ask && j.verdict == bawn.Deny {
			j.lower(stageTighten, w.all.Verdict, w.all.ID, w.all.Source, w.all.why()) // a question of Bawn's own is no permission
		} else {
			j.set(stageRule, w.all.Verdict, w.all.ID, w.all.Source, w.all.why())
		}
	}
	if w.person != nil && w.all.Source == bawn.Builtin { // which lifts no person's no
		j.lower(stageTighten, w.person.Verdict, w.person.ID, w.person.Source, w.person.why())
	}
	if w.managed != nil && w.managed != w.all {
		j.lower(stageTighten, w.managed.Verdict, w.managed.ID, w.managed.Source, w.managed.why())
	}
	if w.project != nil {
		j.lower(stageTighten, w.project.Verdict, w.project.ID, w.project.Source, w.project.why())
	}
}

// yield lets a denial win over an approved rule.
func (w *verdicts) yield(j *judgement) {
	if d := w.denial; d != nil && w.all.Verdict == bawn.Allow && strings.HasPrefix(w.all.ID, Approved) {
		j.lower(stageTighten, d.Verdict, d.ID, d.Source, d.why())
	}
}

func (r *rule) why() string {
	switch {
	case r.When == bawn.WhenUncontained:
		return r.ID + ": " + r.Reason + " (where nothing contains it)"
	case r.Reason != "":
		return r.ID + ": " + r.Reason
	}
	return r.ID + ": " + r.Kind.String() + " " + r.Pattern
}
