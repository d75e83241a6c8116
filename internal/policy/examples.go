package policy

import (
	"fmt"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/shell"
)

// exampleQuestion is where examples are judged.
var exampleQuestion = Question{Workspace: "/proj", Home: "/home/user"}

// Check says what is wrong with a rule: a pattern that can't be read, an
// example of its own that it fails, or nothing.
func Check(r bawn.Rule) error {
	c, err := compile(r)
	if err != nil {
		return err
	}
	return c.check()
}

// check tries a rule's own examples (SPEC §5): one that fails means that the
// rule does not say what its author meant.
func (r *rule) check() error {
	for _, e := range r.Match {
		if !r.matchesExample(e) {
			return fmt.Errorf("rule %q: the pattern %q does not match its example %q", r.ID, r.Pattern, e)
		}
	}
	for _, e := range r.NotMatch {
		if r.matchesExample(e) {
			return fmt.Errorf("rule %q: the pattern %q matches %q, which it must not", r.ID, r.Pattern, e)
		}
	}
	return nil
}

// matchesExample reports whether the rule speaks of what an example names: a
// path, a host, a tool, or any command of a line.
func (r *rule) matchesExample(e string) bool {
	switch r.Kind {
	case bawn.Command:
		return slices.ContainsFunc(commandsOf(e), func(a argv) bool { return r.matchesCommand(&a) })
	case bawn.Filesystem:
		name, err := fspath.Clean(e, exampleQuestion.Workspace, exampleQuestion.Home)
		return err == nil && r.matchesPath(&exampleQuestion, name)
	case bawn.Network:
		host, _, port, err := hostname.Split(e)
		return err == nil && hostname.Match(r.host, host) && (r.port == "" || r.port == port)
	}
	return wild(r.Pattern, e)
}

// commandsOf takes a line apart.
func commandsOf(line string) (out []argv) {
	l := shell.Read(line, shell.Context{Dir: exampleQuestion.Workspace, Home: exampleQuestion.Home, Env: environment, Names: environmentNames})
	for _, c := range l.Commands {
		if len(c.Words) > 0 && c.Words[0].Literal() {
			out = append(out, newArgv(c.Words, nil))
		}
	}
	return out
}

// Examples are the command lines by which the built-in dangers are told, in
// order: a corpus to compare policies by.
func Examples() (out []string) {
	for _, f := range dangerFiles {
		for e := range entries(f.name, *f.text) {
			d := must(parseDanger(e))
			found, spared := d.lines()
			out = append(append(out, found...), spared...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
