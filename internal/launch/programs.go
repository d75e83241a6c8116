package launch

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/bwrap"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// maxProgramLine is how much of a program's words a refusal holds, in characters.
const maxProgramLine = 200

// holdPrograms holds every program of the session for the rules, if a person's rule
// denies a command or asks about one when the session starts. It also records programs
// where that is configured. Otherwise programs start as they do without Bawn.
func (p *gatherer) holdPrograms(req *sandbox.Request) error {
	rules, err := p.networkRules(p.env, req.Session.Isolation.Workspace)
	if err != nil {
		return err
	}
	var held sandbox.Programs
	switch holds := p.choice.Name() == layout.NativeName || p.choice.Name() == bwrap.Name; {
	case req.Session.Isolation.LogPrograms && !holds:
		p.note(p.env, fmt.Sprintf("programs are not recorded: provider %q can't hold them", p.choice.Name()))
	case req.Session.Isolation.LogPrograms:
		p.programs = newProgramLog()
		held.Started, held.Ended = p.programs.started, p.programs.ended
	}
	ruled := slices.ContainsFunc(rules.Rules, func(r bawn.Rule) bool { return r.Kind == bawn.Command && r.Verdict != bawn.Allow })
	if ruled {
		planned := p.Planned
		zone := sync.OnceValue(func() asking.Zone {
			s := planned.Session
			return asking.Zone{Question: SessionQuestion(planned.env, s), Covered: s.Covered, Contains: contains(s, "the guest keeps to its sandbox, whatever is answered")}
		})
		no := &noes{}
		held.Rule = func(program sandbox.Program) sandbox.ProgramRule { return ruleOf(planned.Session, zone(), program, no) }
	}
	if ruled || p.programs != nil {
		req.Programs = &held
	}
	return nil
}

// ruleOf is the verdict of a person's rule about a program under any of its names. A
// shell is started: its commands are judged by themselves. A program that a yes to a
// line has named asks nobody: the line was asked about.
func ruleOf(s *runner.Session, zone asking.Zone, p sandbox.Program, no *noes) (rule sandbox.ProgramRule) {
	if strings.HasPrefix(p.Names[0], ownPlace) || invocation.NameOf(p.Names[0]) != "" {
		return rule
	}
	named := false
	for _, name := range p.Names {
		argv := append([]string{path.Base(name)}, p.Args...)
		a := bawn.Action{
			Kind: bawn.Command, Operation: bawn.Exec, Resource: strings.Join(argv, " "), Args: argv, Session: s.ID, Agent: s.Agent, Dir: p.Dir, At: time.Now(),
		}
		d, ok := s.Prompter.Held(zone, a)
		switch {
		case ok && d.Verdict == bawn.Deny:
			return sandbox.ProgramRule{Refused: refusedProgram(argv, d)}
		case ok && rule.Ask == nil && !named && !slices.Contains(passing, argv[0]):
			if named = s.Prompter.Named(a); named {
				continue
			}
			if said := no.to(a); said != nil {
				return sandbox.ProgramRule{Refused: said}
			}
			rule.Ask = func(ctx context.Context) *sandbox.Denial { return no.keep(a, askProgram(ctx, s, zone, a, d)) }
		}
	}
	return rule
}

// noes are refusals of a human, which hold for a moment: a refused caller looks for the
// program in the next directory of PATH (execvp(3)), and asks again.
type noes struct {
	mu   sync.Mutex
	said map[string]saidNo
}

type saidNo struct {
	at     time.Time
	denial *sandbox.Denial
}

// Bounds of noes.
const (
	noHolds = time.Minute
	maxNoes = 1000
)

// to returns the refusal of an action that holds, or nil.
func (n *noes) to(a bawn.Action) *sandbox.Denial {
	n.mu.Lock()
	defer n.mu.Unlock()
	if said, ok := n.said[a.Dir+"\x00"+a.Resource]; ok && a.At.Sub(said.at) < noHolds {
		return said.denial
	}
	return nil
}

// keep remembers a refusal, if it is one.
func (n *noes) keep(a bawn.Action, d *sandbox.Denial) *sandbox.Denial {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d != nil {
		if len(n.said) >= maxNoes || n.said == nil {
			n.said = map[string]saidNo{}
		}
		n.said[a.Dir+"\x00"+a.Resource] = saidNo{time.Now(), d}
	}
	return d
}

// passing are programs that become the one that they are given, or start it here. They
// are not asked about themselves, but the programs that they start are.
var passing = []string{"env", "nice", "ionice", "nohup", "setsid", "stdbuf", "timeout", "taskset", "chrt", "time", "xargs"}

// askProgram asks the human about a program that waits, and records the answer.
func askProgram(ctx context.Context, s *runner.Session, zone asking.Zone, a bawn.Action, d bawn.Decision) *sandbox.Denial {
	g := guard.Guard{Decider: decided(d), Approver: s.Prompter.Approver(zone), Recorder: s.Guard.Recorder}
	base := bawn.Event{Parent: s.Parent, Provider: s.Plan.Provider(), Mode: s.Mode}
	if d = g.Check(ctx, a, base); d.Verdict == bawn.Allow {
		return nil
	}
	return refusedProgram(a.Args, d)
}

// decided is a decision that has been made.
type decided bawn.Decision

// Decide returns it.
func (d decided) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision(d), nil
}

func refusedProgram(argv []string, d bawn.Decision) *sandbox.Denial {
	return &sandbox.Denial{
		Kind: bawn.Command, Operation: bawn.Exec, Resource: programLine(argv), Rule: d.Rule, Reason: d.Reason,
		Remedy: "do it another way, or have your human take the rule back (\"bawn policy show\" says where it is)",
	}
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
