package cli

import (
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/shell/grammar"
)

// advice is what rules would allow an action, or why none can.
type advice struct {
	file  string
	rules []bawn.Rule
	none  string
}

func (a *advice) text() string {
	switch {
	case len(a.rules) == 1:
		return "this rule in " + a.file + " would allow it; widen the pattern with care"
	case len(a.rules) > 1:
		return "these rules in " + a.file + " would allow it; widen their patterns with care"
	case a.none != "":
		return "no rule can allow it: " + a.none
	}
	return ""
}

// asksAlways are the stages of a trace whose answer no rule changes.
var asksAlways = map[string]string{
	"opaque": "", "dangerous": "it is dangerous: ", "protected path": "the path is protected: ", "written in the same line": "it asks as long as both stand in one line: ", "secret variable": "",
	"variable": "", "loop": "", "input": "",
}

// advise looks for the narrowest rules that would allow what x explains. Each
// was tried, and none is more than is needed.
func advise(p *policy.Policy, o policy.Options, x *explanation) advice {
	if x.decision.Verdict == bawn.Allow {
		return advice{}
	}
	s := suggester{q: x.question, opts: o, all: p.Rules()}
	for i := range x.parts {
		if part := &x.parts[i]; part.Verdict < bawn.Allow {
			if why := beyondRules(part); why != "" {
				return advice{none: why}
			}
			s.part(part)
		}
	}
	d, ok := s.try(s.found)
	switch {
	case !ok && s.unsaid != "":
		return advice{none: s.unsaid}
	case !ok:
		return advice{none: d.Reason}
	}
	for i := len(s.found) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(s.found), i, i+1); len(fewer) > 0 {
			if _, ok := s.try(fewer); ok {
				s.found = fewer
			}
		}
	}
	return advice{rules: s.found}
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
	q      *policy.Question
	opts   policy.Options
	all    []bawn.Rule // in force
	found  []bawn.Rule
	unsaid string // what no pattern can say
}

// try decides with further rules of the user's.
func (s *suggester) try(more []bawn.Rule) (bawn.Decision, bool) {
	own := slices.DeleteFunc(slices.Clone(s.all), func(r bawn.Rule) bool { return r.Source == bawn.Builtin })
	p, err := policy.New(slices.Concat(own, more), s.opts)
	if err != nil || len(more) == 0 {
		return bawn.Decision{Reason: "no pattern can name exactly this"}, false
	}
	d := p.Decide(s.q)
	return d, d.Verdict == bawn.Allow
}

// part adds rules about one part: about what it is, and about what it uses.
func (s *suggester) part(part *policy.Part) {
	if part.Command == nil {
		s.resource(part)
		return
	}
	s.command(part)
	for _, step := range part.Steps {
		if to, ok := strings.CutPrefix(step.Why, "to "); ok && step.Stage == "uses" && step.Verdict < bawn.Allow {
			s.use(to, step.Why)
		}
	}
}

// add adds a rule that allows, above those that speak in why.
func (s *suggester) add(r bawn.Rule, why string) {
	r.Verdict, r.Source, r.Priority = bawn.Allow, bawn.User, 10
	for _, other := range s.all {
		if strings.Contains(": "+why, ": "+other.ID+": ") {
			r.Priority = max(r.Priority, other.Priority+1)
		}
	}
	r.ID = "allow-" + slug(r.Pattern)
	if policy.Check(r) != nil {
		r.Match = nil
	}
	if policy.Check(r) == nil {
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

func (s *suggester) command(part *policy.Part) {
	words := part.Command.Words
	if len(words) == 0 {
		return
	}
	pattern, said := patternOf(words)
	if !said {
		s.unsaid = "no pattern can name exactly the words of " + partText(part)
		return
	}
	why := ""
	for _, step := range part.Steps {
		if step.Stage != "uses" {
			why += ": " + step.Why
		}
	}
	s.add(bawn.Rule{Kind: bawn.Command, Pattern: pattern, Match: []string{pattern}}, why)
}

// patternOf is the pattern that permits exactly these words; there is none
// where one is not known, or reads as something else in a pattern.
func patternOf(words []grammar.Word) (string, bool) {
	var out []string
	for _, w := range words {
		if !w.Literal() || w.Text == "" || strings.ContainsAny(w.Text, ",*! \t\n") {
			return "", false
		}
		out = append(out, w.Text)
	}
	return strings.Join(out, " "), true
}

// use adds a rule about a path or a host that a part of a trace names, as in
// "read /a/b: outside the workspace".
func (s *suggester) use(to, why string) {
	for v := grammar.Look; v <= grammar.Use; v++ {
		target, ok := strings.CutPrefix(to, v.String()+" ")
		if target, _, _ = strings.Cut(target, ": "); !ok {
			continue
		}
		switch {
		case v == grammar.Connect:
			s.host(target, why)
		case filepath.IsAbs(target):
			s.path(target, useOperation(v), why)
		}
	}
}

// useOperation is what a rule calls a use.
func useOperation(v grammar.Verb) bawn.Operation {
	switch v {
	case grammar.Write, grammar.WriteTree:
		return bawn.Write
	case grammar.Delete, grammar.Move:
		return bawn.Delete
	case grammar.Execute:
		return bawn.Exec
	}
	return bawn.Read
}

func (s *suggester) path(name string, op bawn.Operation, why string) {
	if strings.ContainsAny(name, "*?[\\") {
		s.unsaid = "no pattern can name exactly the path " + name
		return
	}
	example := name
	if w := s.q.Workspace; w != "/" && fspath.Below(name, w) && name != w {
		name = strings.TrimPrefix(name, w+"/")
		example = name
	}
	s.add(bawn.Rule{Kind: bawn.Filesystem, Operations: []bawn.Operation{op}, Pattern: name, Match: []string{example}}, why)
}

func (s *suggester) host(target, why string) {
	if host, _, port, err := hostname.Split(target); err == nil {
		if _, err := netip.ParseAddr(host); err != nil && port != "" {
			host += ":" + port
		}
		s.add(bawn.Rule{Kind: bawn.Network, Pattern: host, Match: []string{target}}, why)
	}
}

// resource adds a rule about an action that is no command.
func (s *suggester) resource(part *policy.Part) {
	why := ""
	for _, step := range part.Steps {
		why += ": " + step.Why
	}
	a := &s.q.Action
	switch a.Kind {
	case bawn.Filesystem:
		if name, err := fspath.Clean(a.Resource, a.Dir, s.q.Home); err == nil {
			s.path(path.Clean(name), a.Operation, why)
		}
	case bawn.Network:
		s.host(a.Resource, why)
	case bawn.Tool:
		s.add(bawn.Rule{Kind: bawn.Tool, Pattern: a.Resource, Match: []string{a.Resource}}, why)
	case bawn.Command:
		s.unsaid = "nothing of it can be named by a rule"
	}
}
