package suggest

import (
	"path"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/shell"
)

// part adds rules about one part: about its command and its uses.
func (s *suggester) part(part *policy.Part) {
	if part.Command == nil {
		s.resource(part)
		return
	}
	s.command(part)
	for _, step := range part.Steps {
		if target, kind, op, ok := policy.UseIn(step); ok && step.Verdict < bawn.Allow {
			s.use(target, kind, op, step.Why)
		}
	}
}

func (s *suggester) command(part *policy.Part) {
	words := part.Command.Words
	if len(words) == 0 {
		return
	}
	pattern, said := patternOf(words)
	if !said {
		s.unsaid = "no pattern can name exactly the words of " + Text(part)
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

// patternOf is the pattern that permits exactly these words. It returns false if a
// word is not known, or reads as something else in a pattern.
func patternOf(words []shell.Word) (string, bool) {
	var out []string
	for _, w := range words {
		if !w.Literal() || w.Text == "" || strings.ContainsAny(w.Text, ",*! \t\n") {
			return "", false
		}
		out = append(out, w.Text)
	}
	return strings.Join(out, " "), true
}

// use adds a rule about a path or a host that a part of a trace names.
func (s *suggester) use(target string, kind bawn.Kind, op bawn.Operation, why string) {
	if kind == bawn.Network {
		s.host(target, why)
	} else if path.IsAbs(target) {
		s.path(target, op, why)
	}
}

func (s *suggester) path(name string, op bawn.Operation, why string) {
	if strings.ContainsAny(name, "*?[\\") {
		s.unsaid = "no pattern can name exactly the path " + name
		return
	}
	name, _ = below(name, s.in.Question.Workspace)
	s.add(bawn.Rule{Kind: bawn.Filesystem, Operations: []bawn.Operation{op}, Pattern: name, Match: []string{name}}, why)
}

func (s *suggester) host(target, why string) {
	if host, _, port, err := hostname.Split(target); err == nil {
		if !address(host) && port != "" {
			host += ":" + port
		}
		s.add(bawn.Rule{Kind: bawn.Network, Pattern: host, Match: []string{target}}, why)
	}
}

// address reports whether a host that hostname accepts is one: the last label
// of a name does not begin with a digit.
func address(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Contains(host, ":") || last != "" && last[0] >= '0' && last[0] <= '9'
}

// resource adds a rule about an action that is no command.
func (s *suggester) resource(part *policy.Part) {
	why := ""
	for _, step := range part.Steps {
		why += ": " + step.Why
	}
	a := &s.in.Question.Action
	switch a.Kind {
	case bawn.Filesystem:
		if name, err := fspath.Clean(a.Resource, a.Dir, s.in.Question.Home); err == nil {
			s.path(path.Clean(name), a.Operation, why)
		}
	case bawn.Network:
		s.host(a.Resource, why)
	case bawn.Tool:
		if strings.Contains(a.Resource, "*") {
			s.unsaid = "no pattern can name exactly this tool"
			return
		}
		s.add(bawn.Rule{Kind: bawn.Tool, Pattern: a.Resource, Match: []string{a.Resource}}, why)
	case bawn.Command:
		s.unsaid = "nothing of it can be named by a rule"
	}
}

// Text is a command of a part as it was understood, written as a shell would
// need it, and any other part as it is.
func Text(part *policy.Part) string {
	c := part.Command
	if c == nil {
		return part.Text
	}
	var words []string
	for _, a := range c.Assigns {
		words = append(words, a.Name+"="+word(a.Value))
	}
	for _, w := range c.Words {
		words = append(words, word(w))
	}
	for _, r := range c.Redirects {
		if r.Writes() || r.Reads() {
			words = append(words, r.Fd+r.Op+" "+word(r.Target))
		}
	}
	return strings.Join(words, " ")
}

// word is a word as a shell would need it; of one that is not known it says
// why.
func word(w shell.Word) string {
	switch {
	case w.Vague != "":
		return "‹" + w.Vague + "›"
	case w.Text == "":
		return "''"
	case !w.Glob && strings.ContainsAny(w.Text, " \t\n'\"$`\\*?[]{}()<>|&;#~!"):
		return "'" + strings.ReplaceAll(w.Text, "'", `'\''`) + "'"
	}
	return w.Text
}
