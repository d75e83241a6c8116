package policycli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func NewPolicyDecide(e *launch.Env) *cobra.Command {
	var s situation
	var asJSON bool
	c := &cobra.Command{
		Use:   "decide [flags] [COMMAND LINE | -- COMMAND ARG...]",
		Short: "Say what the policy decides about actions",
		Long: `Decide actions without doing, asking or recording anything.

One argument is a command line, as a shell would be given it; several are one
command with its arguments. Without any, read actions as JSON objects from
standard input, one a line, and write one decision a line, in the same order.

An action has "kind" (filesystem, network, command, tool) and one resource:
"command" (a line for a shell) or "args" (a list: a command without a shell),
"path", "host", "url", "tool", or "resource" for any of them. It may have
"operation" (read, write, create, delete, exec, connect, call), "cwd",
"workspace", "home", "system", "mode", "autonomy", "contained", "untrusted",
"private", "session", "agent", and an "id", which is handed back; the flags
give what an action leaves out. A line that is no action is denied.

The rules of the project are those of each action's workspace. Files are read
once, when they are first needed.

The exit code is 0 whatever was decided, and 2 if a line was no action.`,
		Example: `  bawn policy decide 'rm -rf build'
  bawn policy decide --contained --mode auto 'go test ./...'
  bawn policy decide -- git commit -m 'two words'
  echo '{"kind":"command","command":"git push","contained":true}' | bawn policy decide`,
		RunE: func(c *cobra.Command, args []string) error {
			d, err := newDecider(e, s)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return d.one(c, args, asJSON)
			}
			if term.IsTerminal(int(e.Stdin.Fd())) {
				fmt.Fprintln(e.Stderr, "bawn: note: reading actions as JSON from the terminal, one a line; Ctrl-D ends")
			}
			return d.stream(e.Stdin, e.Stdout)
		},
	}
	s.declare(c)
	c.SetFlagErrorFunc(lineFlagError)
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON also for a command given as arguments")
	return c
}

// lineFlagError says what to do with a flag that belongs to the command that
// is asked about.
func lineFlagError(c *cobra.Command, err error) error {
	err = verb.FlagError(c, err)
	var ce *verb.Error
	if errors.As(err, &ce) && strings.HasPrefix(ce.Hint, "see ") {
		ce.Hint = fmt.Sprintf("quote the command line as one argument, or put \"--\" before it; see \"%s --help\"", c.CommandPath())
	}
	return err
}

// A situation is what an action is decided in, as flags or JSON say it.
type situation struct {
	Cwd       string
	Workspace string
	Home      string
	Mode      string
	Autonomy  string
	System    string
	Contained bool
	Covered   bool
	Untrusted bool
	Private   bool
}

var autonomyNames = []string{"none", "limited", "moderate", "full"}

func (s *situation) declare(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&s.Cwd, "cwd", "", "working `directory` (default: the current one)")
	fl.StringVar(&s.Workspace, "workspace", "", "workspace `directory` (default: the repository around the working directory)")
	fl.StringVar(&s.Mode, "mode", "", "mode: "+strings.Join(bawn.ModeNames(), ", ")+" (default: normal)")
	fl.StringVar(&s.Autonomy, "autonomy", "", "autonomy: "+strings.Join(autonomyNames, ", ")+" (default: the mode's)")
	fl.BoolVar(&s.Contained, "contained", false, "the action happens in a verified sandbox")
	fl.BoolVar(&s.Covered, "covered", false, "a checkpoint covers what the action may destroy")
	fl.BoolVar(&s.Untrusted, "untrusted", false, "the session has read untrusted content")
	fl.BoolVar(&s.Private, "private", false, "the session has read private data")
	_ = c.MarkFlagDirname("cwd")
	_ = c.MarkFlagDirname("workspace")
	verb.CompleteFlags(c, map[string]func() []string{"mode": bawn.ModeNames, "autonomy": verb.Fixed(autonomyNames...)})
}

// check makes the directories absolute and refuses what is no mode, before
// anything is decided.
func (s *situation) check(e *launch.Env) error {
	for _, dir := range []*string{&s.Cwd, &s.Workspace} {
		if *dir != "" {
			*dir = settings.Absolute(&e.World, *dir)
		}
	}
	var q policy.Question
	if err := knob(s, &q); err != nil {
		return verb.Usage("for example: --mode normal", "%v", err)
	}
	return nil
}

// within is what a verified sandbox enforces.
func within(contained bool) bawn.Contained {
	if contained {
		return bawn.ContainedFully
	}
	return bawn.Contained{}
}

// A decider decides actions of one command.
type decider struct {
	e          *launch.Env
	base       situation
	policies   *policies
	workspaces map[string]string // of directories seen so far
	buffer     []byte            // of a line
}

// newDecider decides by the policy in force.
func newDecider(e *launch.Env, s situation) (*decider, error) {
	if err := s.check(e); err != nil {
		return nil, err
	}
	workspace := cmp.Or(s.Workspace, settings.WorkspaceOf(cmp.Or(s.Cwd, e.Dir), e.Getenv("HOME")))
	p, err := policiesInForce(e, workspace)
	if err != nil {
		return nil, err
	}
	return &decider{e: e, base: s, policies: p}, nil
}

// decide decides an action by the policy of its workspace.
func (d *decider) decide(a *actionLine) (bawn.Decision, error) {
	q, err := d.question(a)
	if err != nil {
		return bawn.Decision{}, err
	}
	p, err := d.policies.of(q.Workspace)
	if err != nil {
		return bawn.Decision{}, err
	}
	return p.Decide(q), nil
}

// question makes a question of an action. What it does not say is what the
// command was started with.
func (d *decider) question(a *actionLine) (*policy.Question, error) {
	q := &policy.Question{
		Contained: within(a.Contained), Covered: a.Covered, Home: a.Home, System: a.System, Workspace: a.Workspace,
		Taint: policy.Taint{Untrusted: a.Untrusted, Private: a.Private},
	}
	if q.Home == "" {
		q.Home = d.e.Getenv("HOME")
	}
	if q.System == "" {
		q.System = runtime.GOOS
	}
	if !slices.Contains(systems, q.System) {
		return nil, fmt.Errorf("system is %q; want one of %q", q.System, systems)
	}
	if err := d.action(a, &q.Action); err != nil {
		return nil, err
	}
	if err := cleaned("cwd", &q.Action.Dir); err != nil {
		return nil, err
	}
	if q.Workspace == "" {
		q.Workspace = d.workspace(q.Action.Dir, q.Home)
	}
	if err := cleaned("workspace", &q.Workspace); err != nil {
		return nil, err
	}
	if err := cleaned("home", &q.Home); err != nil {
		return nil, err
	}
	return q, knob(&a.situation, q)
}

var systems = []string{"linux", "darwin", "windows"}

// cleaned makes a directory clean. One with ".." in it is refused: where that
// leads depends on links.
func cleaned(what string, dir *string) error {
	if !filepath.IsAbs(*dir) || slices.Contains(strings.Split(*dir, "/"), "..") {
		return fmt.Errorf("%s is %q; want an absolute path without %q", what, *dir, "..")
	}
	*dir = filepath.Clean(*dir)
	return nil
}

// knob sets mode and autonomy; where one of them is not said, it follows from
// the other.
func knob(s *situation, q *policy.Question) error {
	q.Mode = bawn.ModeNormal
	if s.Mode != "" {
		if err := q.Mode.UnmarshalText([]byte(s.Mode)); err != nil {
			return nearly(err, s.Mode, bawn.ModeNames())
		}
	}
	q.Autonomy = policy.AutonomyOf(q.Mode)
	if s.Autonomy == "" {
		return nil
	}
	if err := q.Autonomy.UnmarshalText([]byte(s.Autonomy)); err != nil {
		return nearly(err, s.Autonomy, autonomyNames)
	}
	if s.Mode == "" {
		q.Mode = policy.ModeOf(q.Autonomy)
	}
	return nil
}

// nearly adds to an error about a word the one that was likely meant.
func nearly(err error, word string, words []string) error {
	if meant := config.Nearest(word, words); meant != "" {
		return fmt.Errorf("%w; did you mean %q", err, meant)
	}
	return err
}

// usual are what is done to a resource where an action does not say.
var usual = map[bawn.Kind]bawn.Operation{
	bawn.Command: bawn.Exec, bawn.Network: bawn.Connect, bawn.Tool: bawn.Call, bawn.Filesystem: bawn.Read,
}

var (
	kindWords      = []string{"filesystem", "network", "command", "tool"}
	operationWords = []string{"read", "write", "create", "delete", "exec", "connect", "call"}
)

func (d *decider) action(a *actionLine, to *bawn.Action) error {
	*to = bawn.Action{Args: a.Args, Session: a.Session, Agent: a.Agent, Dir: a.Cwd}
	if to.Dir == "" {
		to.Dir = d.e.Dir
	}
	if a.Kind == "" {
		return fmt.Errorf("it has no kind; want \"kind\": one of %q", kindWords)
	}
	if err := to.Kind.UnmarshalText([]byte(a.Kind)); err != nil {
		return nearly(err, a.Kind, kindWords)
	}
	to.Operation = usual[to.Kind]
	if a.Operation != "" {
		if err := to.Operation.UnmarshalText([]byte(a.Operation)); err != nil {
			return nearly(err, a.Operation, operationWords)
		}
	}
	return a.resource(to)
}

// resource finds the one thing that an action is about.
func (a *actionLine) resource(to *bawn.Action) error {
	given := 0
	for _, r := range [...]struct {
		key, value string
		kind       bawn.Kind
	}{
		{"command", a.Command, bawn.Command}, {"path", a.Path, bawn.Filesystem}, {"host", a.Host, bawn.Network}, {"url", a.URL, bawn.Network},
		{"tool", a.Tool, bawn.Tool}, {"resource", a.Resource, to.Kind}, {"args", strings.Join(a.Args, " "), bawn.Command},
	} {
		switch {
		case r.value == "", r.key == "args" && r.value == to.Resource:
			continue // nothing, or the same in words
		case r.kind != to.Kind:
			return fmt.Errorf("an action of the kind %s has no %q", to.Kind, r.key)
		}
		to.Resource = r.value
		given++
	}
	if given != 1 {
		return fmt.Errorf("it has %d resources; want exactly one of %s", given, resourceKeys[to.Kind])
	}
	return nil
}

var resourceKeys = map[bawn.Kind]string{
	bawn.Command: `"command", "args"`, bawn.Filesystem: `"path"`, bawn.Network: `"host", "url"`, bawn.Tool: `"tool"`,
}

// workspace finds the repository around a directory, once.
func (d *decider) workspace(dir, home string) string {
	if w, ok := d.workspaces[dir]; ok {
		return w
	}
	w := settings.WorkspaceOf(dir, home)
	if d.workspaces == nil || len(d.workspaces) >= maxWorkspaces {
		d.workspaces = map[string]string{}
	}
	d.workspaces[dir] = w
	return w
}

// given is an action as arguments say it: one is a resource, of which a
// command is a line for a shell; several are a command.
func (d *decider) given(kind string, args []string) (*actionLine, error) {
	a := &actionLine{situation: d.base, Kind: kind}
	switch {
	case len(args) == 1:
		a.Resource = args[0]
	case kind == "command":
		a.Args = args
	default:
		return nil, fmt.Errorf("%q is one argument too many; want one resource", args[1])
	}
	return a, nil
}

// one decides a command given as arguments.
func (d *decider) one(c *cobra.Command, args []string, asJSON bool) error {
	a, err := d.given("command", args)
	if err != nil {
		return err
	}
	decision, err := d.decide(a)
	if err != nil {
		return asUsage(err, "see \"bawn policy decide --help\"")
	}
	if asJSON {
		return verb.JSONLines(c.OutOrStdout()).Encode(newDecisionLine(nil, decision))
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", decision.Verdict, verb.Visible(decision.Reason))
	return err
}

// asUsage makes an error one of usage, if it has no code of its own.
func asUsage(err error, hint string) error {
	var ce *verb.Error
	if errors.As(err, &ce) {
		return err
	}
	return verb.Usage(hint, "%w", err)
}
