// Package suggest looks for the narrowest rules that would decide a question as
// a human has. It says what else those rules would decide, and tries them with
// the rules in force.
package suggest

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// An Input is one question and the policy that it was put to.
type Input struct {
	Question policy.Question
	Rules    []bawn.Rule // in force besides the built-in ones, which are left out if they are there
	Options  policy.Options
	// Decide puts a question to a policy made of other rules; nil means
	// Policy.Decide. A session's network has entries of its own (policy.Egress).
	Decide func(*policy.Policy, *policy.Question) bawn.Decision
}

// Advice is what rules would decide a question, or why none can.
type Advice struct {
	Rules  []bawn.Rule // each was tried, none is more than is needed
	Covers []string    // what else they decide alike, examples that were tried
	None   string      // why Rules is empty, "" if no rule was wanted
}

// asksAlways are the stages of a trace whose answer no rule that allows
// changes.
var asksAlways = map[string]string{
	"opaque": "", "dangerous": "it is dangerous: ", "protected path": "the path is protected: ",
	"secret variable": "", "variable": "", "loop": "", "request": "",
	"isolation": "entries of isolation.http and isolation.git are about this host: ",
}

// Allow looks for rules of the user's that would allow something that the
// policy does not. It returns no rules and no reason if it is allowed already.
func Allow(in Input) Advice { return in.find(bawn.Allow) }

// Deny looks for rules of the user's that would deny something that the policy
// does not.
func Deny(in Input) Advice { return in.find(bawn.Deny) }

func (in Input) find(want bawn.Verdict) Advice {
	in.Rules = slices.DeleteFunc(slices.Clone(in.Rules), func(r bawn.Rule) bool { return r.Source == bawn.Builtin })
	if in.Decide == nil {
		in.Decide = (*policy.Policy).Decide
	}
	s := suggester{in: in, want: want}
	now, err := policy.New(in.Rules, in.Options)
	if err != nil {
		return Advice{None: "the rules in force can't be read"}
	}
	s.all = now.Rules()
	d, parts := s.explain(now)
	if d.Verdict == want {
		return Advice{}
	}
	if none := s.collect(parts); none != "" {
		return Advice{None: none}
	}
	if none := s.least(); none != "" {
		return Advice{None: none}
	}
	return Advice{Rules: s.found, Covers: s.covers(now)}
}

// explain decides, and says how each part was judged.
func (s *suggester) explain(p *policy.Policy) (bawn.Decision, []policy.Part) {
	q := s.in.Question
	if q.Action.Kind == bawn.Command {
		return p.Explain(&q)
	}
	d := s.in.Decide(p, &q)
	if len(d.Trace) == 0 {
		return d, nil
	}
	return d, []policy.Part{{Text: d.Trace[0].Why, Verdict: d.Verdict, Rule: d.Rule, Source: d.Source, Reason: d.Reason, Steps: d.Trace[1:]}}
}

// collect finds rules for each part that is not decided as wanted; it returns
// why none can be found.
func (s *suggester) collect(parts []policy.Part) string {
	for i := range parts {
		part := &parts[i]
		if s.want == bawn.Allow && part.Verdict == bawn.Allow || s.want == bawn.Deny && part.Verdict != bawn.Ask {
			continue
		}
		if s.want == bawn.Allow {
			if why := beyondRules(part); why != "" {
				return why
			}
		}
		s.part(part)
	}
	return ""
}

// least tries the found rules, and drops those that are not needed.
func (s *suggester) least() string {
	d, ok := s.try(s.found)
	switch {
	case !ok && s.unsaid != "":
		return s.unsaid
	case !ok:
		return d.Reason
	}
	for i := len(s.found) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(s.found), i, i+1); len(fewer) > 0 {
			if _, ok := s.try(fewer); ok {
				s.found = fewer
			}
		}
	}
	return ""
}

// beyondRules says why no rule can allow a part, "" if that is not known.
func beyondRules(part *policy.Part) string {
	for _, s := range part.Steps {
		if lead, ok := asksAlways[s.Stage]; ok && s.Verdict < bawn.Allow {
			return lead + s.Why
		}
	}
	return ""
}

// A suggester looks for rules.
type suggester struct {
	in     Input
	want   bawn.Verdict
	all    []bawn.Rule // in force, with the built-in ones
	found  []bawn.Rule
	unsaid string // what no pattern can say
}

// with makes the policy of the rules in force and further ones.
func (s *suggester) with(more []bawn.Rule) (*policy.Policy, error) {
	return policy.New(slices.Concat(s.in.Rules, more), s.in.Options)
}

// try decides with further rules of the user's.
func (s *suggester) try(more []bawn.Rule) (bawn.Decision, bool) {
	p, err := s.with(more)
	if err != nil || len(more) == 0 {
		return bawn.Decision{Reason: "no pattern can name exactly this"}, false
	}
	q := s.in.Question
	d := s.in.Decide(p, &q)
	return d, d.Verdict == s.want
}

// add adds a rule above those that speak in why.
func (s *suggester) add(r bawn.Rule, why string) {
	r.Verdict, r.Source, r.Priority = s.want, bawn.User, 10
	for _, other := range s.all {
		if strings.Contains(": "+why, ": "+other.ID+": ") {
			r.Priority = max(r.Priority, other.Priority+1)
		}
	}
	r.ID = s.want.String() + "-" + slug(r.Pattern)
	if policy.Check(r) != nil {
		r.Match = nil
	}
	if policy.Check(r) == nil && !slices.ContainsFunc(s.found, func(f bawn.Rule) bool { return f.ID == r.ID && f.Pattern == r.Pattern }) {
		s.found = append(s.found, r)
	}
}

// slug makes an identity of a pattern.
func slug(pattern string) string {
	const longest = 40
	words := strings.FieldsFunc(pattern, func(c rune) bool { return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') })
	name := strings.ToLower(strings.Join(words, "-"))
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}

// below returns name as a rule of the workspace says it, and whether it lies
// in there.
func below(name, workspace string) (string, bool) {
	if workspace == "/" || workspace == "" || name == workspace {
		return name, false
	}
	rest, ok := strings.CutPrefix(name, path.Clean(workspace)+"/")
	if !ok {
		return name, false
	}
	return rest, true
}
