package hookcli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/hooksetup"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// The steps of the guide, in their order.
const (
	stepShell = "shell"
	stepHooks = "hooks"
	stepKeys  = "keys"
	stepPage  = "page"
)

var steps = []string{stepShell, stepHooks, stepKeys, stepPage}

// guides reports whether nothing is chosen, so that all is offered step by step.
func (f initFlags) guides() bool {
	return len(f.agents) == 0 && !f.user && !f.managed && !f.check && !f.asJSON
}

// runGuide offers what sets Bawn up. Everything is shown before it is written.
func runGuide(e *launch.Env, f initFlags) error {
	if err := f.refused(e); err != nil {
		return err
	}
	for _, step := range f.skip {
		if !slices.Contains(steps, step) {
			return verb.Usage("for example: bawn init --skip shell,page", "--skip %q: want %s", step, strings.Join(steps, ", "))
		}
	}
	f.user = atHome(e) // where there is no project
	s, err := newSetup(e, f)
	if err != nil {
		return err
	}
	g := guide{initiation: newInitiation(e, f, s), who: f.offered(s)}
	if f.undo {
		return g.takeBack()
	}
	g.greet()
	g.quiet = true
	g.offer()
	g.next()
	return g.failed
}

// offered are the agents that are installed. For an undo they are all.
func (f initFlags) offered(s hooksetup.Setup) []*agents.Agent {
	return slices.DeleteFunc(agents.All(), func(a *agents.Agent) bool {
		_, found := s.Find(a)
		return !found && !f.undo
	})
}

// atHome reports whether the command was called in the home directory.
func atHome(e *launch.Env) bool {
	dir, err := settings.RealDir(e.Dir)
	if err != nil {
		return false
	}
	home, err := settings.RealDir(e.Getenv("HOME"))
	return err == nil && settings.WorkspaceOf(dir, home) == home
}

// A guide is one run of "bawn init" that offers all.
type guide struct {
	initiation
	who    []*agents.Agent // that are installed
	failed error           // the first step's that failed; the others are offered all the same
}

// skips reports whether a step is left out.
func (g *guide) skips(step string) bool { return slices.Contains(g.flags.skip, step) }

// greet says what was found.
func (g *guide) greet() {
	for _, a := range g.who {
		if found, ok := g.setup.Find(a); ok {
			g.say("found: ", initiated{agent: a, found: &found}.title())
		}
	}
	if len(g.who) == 0 {
		g.say("found: ", "no coding agent, neither in PATH nor where installers put one")
		g.say("known: ", strings.Join(programs(agents.All()), ", "))
	}
	enforced := "the sandbox holds here; \"bawn doctor\" says more"
	if !doctor.Examine().Healthy() {
		enforced = "the sandbox does not hold here: \"bawn doctor\" says what would mend it"
	}
	g.say("enforced: ", enforced)
}

// programs are the commands by which agents start.
func programs(who []*agents.Agent) (names []string) {
	for _, a := range who {
		names = append(names, a.Programs[0])
	}
	return names
}

// offer goes through the steps.
func (g *guide) offer() {
	for _, s := range []struct {
		name string
		do   func() error
	}{{stepShell, g.shell}, {stepHooks, g.hooks}, {stepKeys, g.keys}, {stepPage, g.page}} {
		if g.skips(s.name) {
			continue
		}
		err := s.do()
		if err == nil {
			continue
		}
		if g.failed == nil {
			g.failed = err
			continue
		}
		verb.Report(&g.env.World, err, hintOf(err))
	}
}

// shell offers that agents start in Bawn.
func (g *guide) shell() error {
	g.head("Agents start in Bawn when you type their names")
	if g.setup.StartFile() == "" {
		g.say("", "nothing is written for this shell; start them as \"bawn run -- "+g.example()+"\"")
		return nil
	}
	plan, err := g.setup.Shell(g.starters())
	if err != nil {
		return initError(err)
	}
	i := g.initiation
	i.seen = []initiated{shellStep(plan)}
	return i.run()
}

// starters are the programs that the shell starts: of the agents that are installed,
// or of all, once they are.
func (g *guide) starters() (all []hooksetup.Starter) {
	for _, name := range programs(g.who) {
		all = append(all, hooksetup.Starter{Program: name})
	}
	if len(all) > 0 {
		return all
	}
	for _, name := range programs(agents.All()) {
		all = append(all, hooksetup.Starter{Program: name, Later: true})
	}
	return all
}

// example is a program to name where one has to be.
func (g *guide) example() string { return programs(append(g.who, agents.All()...))[0] }

// shellStep is the text for the shell's file, or its removal.
func shellStep(plan hooksetup.Plan) initiated {
	step := initiated{agent: &agents.Agent{Title: "your shell"}, plan: plan, found: &hooksetup.Found{}}
	if len(plan.Edits) > 0 {
		step.found.Path = plan.Edits[0].Path
	}
	return step
}

// hooks offers that agents ask, also where they are started without Bawn.
func (g *guide) hooks() error {
	g.head("Agents ask Bawn, also where you start them without it")
	if len(g.who) == 0 {
		g.say("", "there is no agent to set up; once one is installed: bawn init")
		return nil
	}
	i := g.initiation
	for _, a := range g.who {
		i.look(a)
	}
	return i.run()
}

func (g *guide) head(words string) { fmt.Fprintf(g.env.Stdout, "\n== %s\n", words) }

// next says how to go on.
func (g *guide) next() {
	g.head("Next")
	start := "bawn run -- sh, or an agent once it is installed"
	if len(g.who) > 0 {
		start = "bawn run -- " + g.example()
	}
	g.say("start: ", start)
	g.say("take back what was done: ", "bawn init --undo")
}

// takeBack undoes all steps: the files with one question, and then what takes
// another program.
func (g *guide) takeBack() error {
	if !g.skips(stepShell) {
		plan, err := g.setup.UndoShell()
		if err != nil {
			return initError(err)
		}
		g.seen = append(g.seen, shellStep(plan))
	}
	if !g.skips(stepHooks) {
		for _, a := range g.who {
			g.look(a)
		}
	}
	deeds, err := g.setup.Noted()
	if err != nil {
		return initError(err)
	}
	if g.changes() > 0 || len(deeds) == 0 {
		err = g.run()
	}
	return errors.Join(err, g.takeBackDeeds(deeds))
}

// hintOf is what to do about an error.
func hintOf(err error) string {
	var ce *verb.Error
	if errors.As(err, &ce) {
		return ce.Hint
	}
	return ""
}
