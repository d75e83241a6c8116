package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyDecide(e *Env) *cobra.Command {
	var s situation
	var asJSON bool
	c := &cobra.Command{
		Use:   "decide [flags] [-- COMMAND LINE]",
		Short: "Say what the policy decides about actions",
		Long: `Decide actions without doing, asking or recording anything.

With a command line as its one argument, decide it. Without, read actions as
JSON objects from standard input, one a line, and write one decision a line.
An action has "kind" (filesystem, network, command, tool) and the resource:
"command" (a line for a shell) or "args" (an argv), "path", "host", "tool", or
"resource" for any of them. It may have "operation", "cwd", "workspace",
"home", "mode", "autonomy", "contained", "untrusted", "private", "session",
"agent" and "id", which is handed back.

The exit code is 0 if every line was an action, whatever was decided.`,
		Example: `  bawn policy decide 'rm -rf build'
  bawn policy decide --contained --mode auto -- 'go test ./...'
  echo '{"kind":"command","command":"git push","contained":true}' | bawn policy decide --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := loadPolicy(e)
			if err != nil {
				return err
			}
			d := decider{e: e, policy: p, base: s}
			if len(args) == 1 {
				return d.one(c, args[0], asJSON)
			}
			return d.stream()
		},
	}
	s.declare(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON also for a command line given as an argument")
	return c
}

// A situation is what an action is decided in, as flags or JSON say it.
type situation struct {
	Cwd       string `json:"cwd"`
	Workspace string `json:"workspace"`
	Home      string `json:"home"`
	Mode      string `json:"mode"`
	Autonomy  string `json:"autonomy"`
	System    string `json:"system"`
	Contained bool   `json:"contained"`
	Untrusted bool   `json:"untrusted"`
	Private   bool   `json:"private"`
}

func (s *situation) declare(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&s.Cwd, "cwd", "", "working directory (default: the current one)")
	fl.StringVar(&s.Workspace, "workspace", "", "workspace (default: the repository around the working directory)")
	fl.StringVar(&s.Mode, "mode", "", "mode: "+strings.Join(bawn.ModeNames(), ", ")+" (default: normal)")
	fl.StringVar(&s.Autonomy, "autonomy", "", "autonomy: none, limited, moderate, full (default: the mode's)")
	fl.BoolVar(&s.Contained, "contained", false, "the action happens in a verified sandbox")
	fl.BoolVar(&s.Untrusted, "untrusted", false, "the session has read untrusted content")
	fl.BoolVar(&s.Private, "private", false, "the session has read private data")
	_ = c.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(bawn.ModeNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("autonomy", cobra.FixedCompletions([]string{"none", "limited", "moderate", "full"}, cobra.ShellCompDirectiveNoFileComp))
}

// An actionLine is one action as JSON.
type actionLine struct {
	situation
	ID        json.RawMessage `json:"id"`
	Kind      string          `json:"kind"`
	Operation string          `json:"operation"`
	Resource  string          `json:"resource"`
	Command   string          `json:"command"`
	Args      []string        `json:"args"`
	Path      string          `json:"path"`
	Host      string          `json:"host"`
	URL       string          `json:"url"`
	Tool      string          `json:"tool"`
	Session   string          `json:"session"`
	Agent     string          `json:"agent"`
}

// A decisionLine is one decision as JSON.
type decisionLine struct {
	ID        json.RawMessage `json:"id,omitempty"`
	Verdict   bawn.Verdict    `json:"verdict"`
	Reason    string          `json:"reason"`
	Rule      string          `json:"rule"`
	Source    string          `json:"source"`
	Canonical string          `json:"canonical,omitempty"`
	Env       []string        `json:"env,omitempty"`
	Trace     []stepLine      `json:"trace"`
}

type stepLine struct {
	Stage   string       `json:"stage"`
	Verdict bawn.Verdict `json:"verdict"`
	Why     string       `json:"why"`
}

func newDecisionLine(id json.RawMessage, d bawn.Decision) decisionLine {
	l := decisionLine{
		ID: id, Verdict: d.Verdict, Reason: d.Reason, Rule: d.Rule, Source: d.Source.String(),
		Canonical: d.Canonical, Env: d.Env, Trace: make([]stepLine, len(d.Trace)),
	}
	for i, s := range d.Trace {
		l.Trace[i] = stepLine(s)
	}
	return l
}

// A decider decides actions of one command.
type decider struct {
	e          *Env
	policy     *policy.Policy
	base       situation
	workspaces map[string]string // of directories seen so far
}

// MaxAction is the longest line of JSON that is read, in bytes.
const maxAction = 1 << 20

// stream decides one action a line. A line that is none is answered by a
// denial, and makes the exit code 2.
func (d *decider) stream() error {
	in := bufio.NewReaderSize(d.e.Stdin, 64<<10)
	out := bufio.NewWriterSize(d.e.Stdout, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	wrong := 0
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		if len(bytes.TrimSpace(line)) > 0 || err != nil && !errors.Is(err, io.EOF) {
			l, bad := d.line(n, line, err)
			if bad {
				wrong++
			}
			if err := enc.Encode(l); err != nil {
				return outputError(d.e, err)
			}
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return outputError(d.e, err)
			}
		}
		if err != nil && !errors.Is(err, errLong) {
			break
		}
	}
	if err := out.Flush(); err != nil {
		return outputError(d.e, err)
	}
	if wrong > 0 {
		return usageError("see \"bawn policy decide --help\" for what an action has", "%d of the lines are no actions; each was denied", wrong)
	}
	return nil
}

var errLong = errors.New("the line is longer than 1 MiB")

// readLine reads a line, or skips one that is too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxAction; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long:
			return nil, errLong
		default:
			return line, err
		}
	}
}

// line decides one line of JSON.
func (d *decider) line(n int, data []byte, err error) (decisionLine, bool) {
	refuse := func(err error) (decisionLine, bool) {
		return newDecisionLine(nil, bawn.Denied(fmt.Sprintf("line %d: %v", n, err), "builtin:invalid-action")), true
	}
	if errors.Is(err, errLong) {
		return refuse(err)
	}
	a := actionLine{situation: d.base}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return refuse(err)
	}
	q, err := d.question(&a)
	if err != nil {
		l, bad := refuse(err)
		l.ID = a.ID
		return l, bad
	}
	return newDecisionLine(a.ID, d.policy.Decide(q)), false
}

// question makes a question of an action. What it does not say is what the
// command was started with.
func (d *decider) question(a *actionLine) (*policy.Question, error) {
	q := &policy.Question{
		Contained: a.Contained, Home: a.Home, System: a.System, Workspace: a.Workspace,
		Taint: policy.Taint{Untrusted: a.Untrusted, Private: a.Private},
	}
	if q.Home == "" {
		q.Home = d.e.Getenv("HOME")
	}
	if q.System == "" {
		q.System = runtime.GOOS
	}
	if err := d.action(a, &q.Action); err != nil {
		return nil, err
	}
	if q.Workspace == "" {
		q.Workspace = d.workspace(q.Action.Dir, q.Home)
	}
	for name, dir := range map[string]string{"cwd": q.Action.Dir, "workspace": q.Workspace, "home": q.Home} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil, fmt.Errorf("%s is %q; want a clean absolute path", name, dir)
		}
	}
	return q, knob(a, q)
}

// knob sets mode and autonomy; where one of them is not said, it follows from
// the other.
func knob(a *actionLine, q *policy.Question) error {
	q.Mode = bawn.ModeNormal
	if a.Mode != "" {
		if err := q.Mode.UnmarshalText([]byte(a.Mode)); err != nil {
			return err
		}
	}
	q.Autonomy = policy.AutonomyOf(q.Mode)
	if a.Autonomy == "" {
		return nil
	}
	if err := q.Autonomy.UnmarshalText([]byte(a.Autonomy)); err != nil {
		return err
	}
	if a.Mode == "" {
		q.Mode = policy.ModeOf(q.Autonomy)
	}
	return nil
}

// operations are what is done to a resource where an action does not say.
var operations = map[bawn.Kind]bawn.Operation{
	bawn.Command: bawn.Exec, bawn.Network: bawn.Connect, bawn.Tool: bawn.Call, bawn.Filesystem: bawn.Read,
}

func (d *decider) action(a *actionLine, to *bawn.Action) error {
	*to = bawn.Action{Args: a.Args, Session: a.Session, Agent: a.Agent, Dir: a.Cwd}
	if to.Dir == "" {
		to.Dir = d.e.Dir
	}
	if err := to.Kind.UnmarshalText([]byte(a.Kind)); err != nil {
		return err
	}
	to.Operation = operations[to.Kind]
	if a.Operation != "" {
		if err := to.Operation.UnmarshalText([]byte(a.Operation)); err != nil {
			return err
		}
	}
	given := 0
	own := map[bawn.Kind]string{bawn.Command: a.Command, bawn.Filesystem: a.Path, bawn.Network: a.Host + a.URL, bawn.Tool: a.Tool}
	for kind, resource := range own {
		if resource != "" && kind != to.Kind {
			return fmt.Errorf("a %s action has no %s", to.Kind, kind)
		}
	}
	for _, resource := range []string{a.Resource, a.Command, a.Path, a.Host, a.URL, a.Tool} {
		if resource != "" {
			to.Resource = resource
			given++
		}
	}
	if to.Kind == bawn.Command && given == 0 && len(a.Args) > 0 {
		to.Resource, given = strings.Join(a.Args, " "), 1
	}
	if given != 1 {
		return fmt.Errorf("want exactly one resource: command, args, path, host, url, tool or resource")
	}
	return nil
}

// workspace finds the repository around a directory, once.
func (d *decider) workspace(dir, home string) string {
	if w, ok := d.workspaces[dir]; ok {
		return w
	}
	w := workspaceOf(dir, home)
	if d.workspaces == nil || len(d.workspaces) > 1000 {
		d.workspaces = map[string]string{}
	}
	d.workspaces[dir] = w
	return w
}

// one decides a command line given as an argument.
func (d *decider) one(c *cobra.Command, command string, asJSON bool) error {
	a := &actionLine{situation: d.base, Kind: "command", Command: command}
	if a.Cwd != "" {
		a.Cwd = absolute(d.e, a.Cwd)
	}
	if a.Workspace != "" {
		a.Workspace = absolute(d.e, a.Workspace)
	}
	q, err := d.question(a)
	if err != nil {
		return usageError("see \"bawn policy decide --help\"", "%v", err)
	}
	l := newDecisionLine(nil, d.policy.Decide(q))
	if asJSON {
		enc := json.NewEncoder(c.OutOrStdout())
		enc.SetEscapeHTML(false)
		return enc.Encode(l)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", l.Verdict, l.Reason)
	return err
}

// resolveLinks returns where a path leads when links are followed, as far as
// it exists.
func resolveLinks(name string) string {
	rest := ""
	for dir := name; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		switch {
		case err == nil:
			return filepath.Join(real, rest)
		case !errors.Is(err, os.ErrNotExist) || dir == "/" || dir == ".":
			return name
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
