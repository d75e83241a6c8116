package hookcli

import (
	"fmt"
	"slices"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/hooksetup"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// The steps of the guide.
const (
	stepShell = "shell"
	stepHooks = "hooks"
)

// guides reports whether nothing is chosen, so that all is offered step by step.
func (f initFlags) guides() bool {
	return len(f.agents) == 0 && !f.user && !f.managed && !f.check && !f.asJSON
}

// runGuide offers what sets Bawn up. Nothing is written before it was shown.
func runGuide(e *launch.Env, f initFlags) error {
	if err := f.refused(e); err != nil {
		return err
	}
	for _, step := range f.skip {
		if step != stepShell && step != stepHooks {
			return verb.Usage("for example: bawn init --skip shell", "--skip %q: want %s or %s", step, stepShell, stepHooks)
		}
	}
	f.user = atHome(e) // where there is no project
	s, err := newSetup(e, f)
	if err != nil {
		return err
	}
	who, err := f.chosen(s, nil)
	if err != nil {
		return err
	}
	g := guide{initiation: newInitiation(e, f, s), who: who}
	if f.undo {
		return g.takeBack()
	}
	g.greet()
	g.quiet = true
	if err := g.shell(); err != nil {
		return err
	}
	if err := g.hooks(); err != nil {
		return err
	}
	g.offer()
	return nil
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
	who []*agents.Agent // that are installed
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
	enforced := "the sandbox holds here; \"bawn doctor\" says more"
	if !doctor.Examine().Healthy() {
		enforced = "the sandbox does not hold here: \"bawn doctor\" says what would mend it"
	}
	g.say("enforced: ", enforced)
}

// programs are the commands by which the agents start.
func (g *guide) programs() (names []string) {
	for _, a := range g.who {
		names = append(names, a.Programs[0])
	}
	return names
}

// shellStep is what is written for the shell, or taken back.
func (g *guide) shellStep() (initiated, error) {
	plan, err := g.setup.Shell(g.programs(), g.flags.undo)
	file := g.setup.StartFile()
	return initiated{agent: &agents.Agent{Title: "your shell"}, found: &hooksetup.Found{Path: file}, plan: plan}, err
}

// shell offers that agents start in Bawn.
func (g *guide) shell() error {
	if g.skips(stepShell) {
		return nil
	}
	g.head("Agents start in Bawn when you type their names")
	if g.setup.StartFile() == "" {
		g.say("", "nothing is written for this shell; start them as \"bawn run -- "+g.programs()[0]+"\"")
		return nil
	}
	step, err := g.shellStep()
	if err != nil {
		return initError(err)
	}
	i := g.initiation
	i.seen = []initiated{step}
	return i.run()
}

// hooks offers that agents ask, also where they are started without Bawn.
func (g *guide) hooks() error {
	if g.skips(stepHooks) {
		return nil
	}
	g.head("Agents ask Bawn, also where you start them without it")
	i := g.initiation
	for _, a := range g.who {
		i.look(a)
	}
	return i.run()
}

func (g *guide) head(words string) { fmt.Fprintf(g.env.Stdout, "\n== %s\n", words) }

// offer names what is done by verbs of their own.
func (g *guide) offer() {
	g.head("Next")
	if keys := g.keys(); len(keys) > 0 {
		g.say("keep keys outside: ", "bawn secret import --env "+keys[0])
	}
	g.say("answer from your phone: ", "bawn serve -d --listen 127.0.0.1:7443 && bawn pair (docs/relay.md)")
	g.say("start: ", "bawn run -- "+g.programs()[0])
	g.say("take back what was written: ", "bawn init --undo")
}

// keys are variables that are set and hold keys of the agents.
func (g *guide) keys() (names []string) {
	for _, a := range g.who {
		for _, name := range a.Environment.Keys {
			if g.env.Getenv(name) != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// takeBack undoes all steps, with one question.
func (g *guide) takeBack() error {
	step, err := g.shellStep()
	if err != nil {
		return initError(err)
	}
	if !g.skips(stepShell) {
		g.seen = append(g.seen, step)
	}
	if !g.skips(stepHooks) {
		for _, a := range g.who {
			g.look(a)
		}
	}
	return g.run()
}
