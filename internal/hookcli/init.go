package hookcli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/hooksetup"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// initFlags are those of "bawn init".
type initFlags struct {
	agents                     []string
	user, managed, undo        bool
	check, dryRun, yes, asJSON bool
	stay                       bool
	skip                       []string // steps of the guide
}

// NewInit makes "bawn init".
func NewInit(e *launch.Env) *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init",
		Short: "Set Bawn up: agents that start in it, and that ask before they act",
		Long: `Find the coding agents that are installed and what is enforced here, and set up
step by step what you want: your shell (bash, zsh, fish) starts agents in Bawn;
hooks in their settings have Bawn decide on every call; keys are kept outside of
sessions; a page asks you in a browser. Each step shows what it would do and asks;
--skip leaves one out. With --agent, --user or --managed it is hooks only.

Hooks are written for this project: the git repository around the working directory,
or else that directory. --user writes it for all projects of yours, --managed for
everybody on this machine, where the agent has such settings and nobody but root
can take them out. What is your own is left as it is, to the byte, and --undo
gives every file back as it was. A second run changes nothing.

Hooks do not contain an agent: most agents go on if a hook is late. The sandbox
of "bawn run -- AGENT" contains it. The command says what stays uncovered.

With --check the exit code is 0 if all is in place, and 1 if not.`,
		Args: verb.NoArgs,
		Example: "  bawn init\n  bawn init --agent claude --user\n  sudo bawn init --managed\n" +
			"  bawn init --check\n  bawn init --undo",
		RunE: func(*cobra.Command, []string) error {
			if f.guides() {
				return runGuide(e, f)
			}
			return runInit(e, f)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.agents, "agent", nil, "only this one, installed or not; may be given again")
	flags.BoolVar(&f.user, "user", false, "for all projects of this user")
	flags.BoolVar(&f.managed, "managed", false, "for everybody on this machine (root)")
	flags.BoolVar(&f.stay, "no-sandbox", false, "let agents' commands run without a sandbox, and ask about most of them; without this flag an allowed command runs in a sandbox of its own")
	flags.BoolVar(&f.undo, "undo", false, "take back what was written")
	flags.BoolVar(&f.check, "check", false, "write nothing; say whether all is in place")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing; show what would be written")
	flags.BoolVar(&f.yes, "yes", false, "write files without asking; keys and the page want your own answer")
	flags.StringSliceVar(&f.skip, "skip", nil, "leave out these `steps`: shell, hooks, keys, page")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON; asks nothing, so with --yes, --dry-run or --check")
	_ = c.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(hookable(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// level is the one that the flags choose.
func (f initFlags) level() hooksetup.Level {
	switch {
	case f.managed:
		return hooksetup.Managed
	case f.user:
		return hooksetup.User
	}
	return hooksetup.Project
}

// fit refuses flags that contradict each other.
func (f initFlags) fit(e *launch.Env) error {
	switch {
	case f.user && f.managed:
		return verb.Usage("give one of them", "--user and --managed are two levels")
	case f.check && (f.undo || f.yes || f.dryRun):
		return verb.Usage("give --check alone", "--check writes nothing, and takes back nothing")
	case f.dryRun && f.yes:
		return verb.Usage("give one of them", "--dry-run writes nothing, --yes writes without asking")
	case !f.check && !f.dryRun && !f.yes && (f.asJSON || !verb.IsTerminal(e.Stdin)):
		return verb.Usage("look with --dry-run, then give --yes", "there is nobody at a terminal who could be asked")
	case f.managed && !f.check && !f.dryRun && os.Geteuid() != 0:
		return verb.Usage("run it as root: sudo bawn init --managed", "only root may write the settings of everybody")
	}
	return nil
}

// refused is the error of a guest, and of flags that contradict each other.
func (f initFlags) refused(e *launch.Env) error {
	if where := launch.Inside(e); where != "" {
		return &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("this is a guest, in %s: agents' settings are changed from outside", where), Hint: "ask the human to run \"bawn init\""}
	}
	return f.fit(e)
}

func runInit(e *launch.Env, f initFlags) error {
	named, err := f.named()
	if err != nil {
		return err
	}
	if err := f.refused(e); err != nil {
		return err
	}
	s, err := newSetup(e, f)
	if err != nil {
		return err
	}
	who, err := f.chosen(s, named)
	if err != nil {
		return err
	}
	i := newInitiation(e, f, s)
	for _, a := range who {
		i.look(a)
	}
	return i.run()
}

// newSetup gathers the inputs of the edits.
func newSetup(e *launch.Env, f initFlags) (hooksetup.Setup, error) {
	s := hooksetup.Setup{Root: "/", Getenv: e.Getenv, Stay: f.stay}
	dir, err := settings.RealDir(e.Dir)
	if err != nil {
		return s, err
	}
	s.Project = settings.WorkspaceOf(dir, e.Getenv("HOME"))
	if err := settings.HomeAndWorkspace(&e.World, s.Project); err != nil {
		return s, err
	}
	s.Home = e.Getenv("HOME")
	if s.State, err = settings.StateDir(&e.World); err != nil {
		return s, err
	}
	if f.managed {
		s.State = managedState
	}
	if real, err := filepath.EvalSymlinks(s.Home); f.level() == hooksetup.Project && err == nil && real == s.Project {
		return s, verb.Usage("give --user, or change to a project", "this is your home directory; a project's settings don't belong here")
	}
	if s.Bawn, err = ownPath(e, s.Project); err != nil || !f.managed {
		return s, err
	}
	if err := hooksetup.RootAlone(s.Bawn); err != nil {
		return s, verb.Usage("install it as root, for example in /usr/local/bin", "everybody's agents would run a bawn that others can exchange: %w", err)
	}
	return s, nil
}

// managedState is where root's settings for all users are recorded for undo.
const managedState = "/var/lib/bawn"

// ownPath is the place of this program that hooks are to call: the one in PATH,
// which stays when a package's version changes, or else the program itself. An
// agent could replace one that lies in its project.
func ownPath(e *launch.Env, project string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	if strings.HasPrefix(own, project+"/") {
		return "", verb.Usage("install it elsewhere: go install, or a directory of PATH", "%q lies in the project, where an agent can replace it", own)
	}
	self, err := os.Stat(own)
	if err != nil {
		return "", &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	for _, dir := range filepath.SplitList(e.Getenv("PATH")) {
		file := filepath.Join(dir, "bawn")
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(dir) && os.SameFile(info, self) && !strings.HasPrefix(file, project+"/") {
			return file, nil
		}
	}
	if filepath.Base(own) != "bawn" {
		return "", verb.Usage("name it bawn, in a directory of PATH", "this program is %q; hooks have to know it again by its name", own)
	}
	return own, nil
}

// named are the agents that the flags name. An agent for which nothing could be
// written is refused before anybody is asked.
func (f initFlags) named() (all []*agents.Agent, err error) {
	for _, name := range f.agents {
		a, ok := agents.ByName(name)
		if !ok {
			return nil, verb.Usage("want one of "+strings.Join(hookable(), ", "), "agent %q is not known", name)
		}
		if !a.Hooks.Veto && !f.undo && !f.check && !f.asJSON {
			return nil, verb.Usage("run it as a guest: bawn run -- "+a.Programs[0], "%s has no hooks that can veto", a.Title)
		}
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}

// hookable are the names of the agents that have hooks which can refuse.
func hookable() (names []string) {
	for _, a := range agents.All() {
		if a.Hooks.Veto {
			names = append(names, a.Name)
		}
	}
	return names
}

// chosen are the agents to set up: the named ones, or the installed ones.
// Undoing, and what everybody shares, is for all that are known.
func (f initFlags) chosen(s hooksetup.Setup, named []*agents.Agent) ([]*agents.Agent, error) {
	if len(named) > 0 {
		return named, nil
	}
	all := agents.All()
	if f.undo || f.managed {
		return all, nil
	}
	installed := f.offered(s)
	if len(installed) == 0 {
		return nil, verb.Usage("name one that is elsewhere: --agent "+strings.Join(hookable(), "|"), "no coding agent was found in PATH, nor where installers put one")
	}
	return installed, nil
}

// initError puts an error of hooksetup into words for the user at the terminal.
func initError(err error) error {
	var no *hooksetup.NoHooksError
	var file *hooksetup.FileError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &no):
		return verb.Usage(levelHint(no), "%w", err)
	case errors.As(err, &file):
		return verb.Usage("nothing of it was written", "%w", err)
	}
	return &verb.Error{Code: verb.ExitInternal, Err: err}
}

func levelHint(no *hooksetup.NoHooksError) string {
	var flags []string
	for _, l := range no.Other {
		switch l {
		case hooksetup.Project:
			flags = append(flags, "neither --user nor --managed")
		default:
			flags = append(flags, "--"+string(l))
		}
	}
	if len(flags) == 0 {
		return "run it as a guest: bawn run -- AGENT"
	}
	return "give " + strings.Join(flags, ", or ")
}
