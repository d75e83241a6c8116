package launch

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// maxProgramLine is how much of a program's words a refusal holds, in characters.
const maxProgramLine = 200

// holdPrograms has every program of the session put to the rules, if a rule of a person
// forbids a command when the session starts. Otherwise programs start as they do
// without Bawn.
func (p *gatherer) holdPrograms(req *sandbox.Request) error {
	rules, err := p.networkRules(p.env, req.Session.Isolation.Workspace)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rules.Rules, func(r bawn.Rule) bool { return r.Kind == bawn.Command && r.Verdict == bawn.Deny }) {
		planned := p.Planned
		zone := sync.OnceValue(func() asking.Zone { return asking.Zone{Question: SessionQuestion(planned.env, planned.Session)} })
		req.Refuses = func(program sandbox.Program) (sandbox.Denial, bool) {
			return forbidden(planned.Session, zone(), program)
		}
	}
	return nil
}

// forbidden reports whether a rule of a person forbids a program under any of its names.
// A shell is started: what it starts is judged by itself.
func forbidden(s *runner.Session, zone asking.Zone, p sandbox.Program) (sandbox.Denial, bool) {
	if strings.HasPrefix(p.Names[0], ownPlace) || invocation.NameOf(p.Names[0]) != "" {
		return sandbox.Denial{}, false
	}
	for _, name := range p.Names {
		argv := append([]string{path.Base(name)}, p.Args...)
		a := bawn.Action{
			Kind: bawn.Command, Operation: bawn.Exec, Resource: strings.Join(argv, " "), Args: argv, Session: s.ID, Agent: s.Agent, Dir: p.Dir, At: time.Now(),
		}
		if d, ok := s.Prompter.Forbids(zone, a); ok {
			return sandbox.Denial{
				Kind: bawn.Command, Operation: bawn.Exec, Resource: programLine(argv), Rule: d.Rule, Reason: d.Reason,
				Remedy: "do it another way, or have your human take the rule back (\"bawn policy show\" says where it is)",
			}, true
		}
	}
	return sandbox.Denial{}, false
}

// ownPlace is where a guest finds programs of Bawn's.
const ownPlace = "/run/bawn/"

// programLine is argv in one line, with secrets masked.
func programLine(argv []string) string {
	line := []rune(strings.Join(redact.Args(argv), " "))
	if len(line) > maxProgramLine {
		return string(line[:maxProgramLine]) + " …"
	}
	return string(line)
}
