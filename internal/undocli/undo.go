package undocli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

type undoFlags struct {
	cwd                   string
	yes, asJSON, override bool
}

// NewUndo returns the verb.
func NewUndo(e *launch.Env) *cobra.Command {
	f := &undoFlags{}
	c := &cobra.Command{
		Use:   "undo [flags] [SESSION|CHECKPOINT] [PATH...]",
		Short: "Take back what a session has changed",
		Long: `Take back what a session has changed: files of the workspace, and commits,
branches, tags and stashes of its repository.

Without a name it is the last session, or the last "bawn apply", that has changed
anything here. With the ID of a checkpoint the workspace goes back to that moment. With
paths only these are put back, and git stays as it is.

What would be done is shown first. What you have changed since the session stays,
and is listed. A checkpoint of the present is taken before, so that an undo can be
undone: its ID is printed.`,
		Example: `  bawn undo
  bawn undo k3xr --yes
  bawn undo k3xr src/main.go
  bawn undo 20261127-093015.120-k3xr
  bawn undo --json | jq -r '.changes[].path'`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(e, args, c.ArgsLenAtDash()) },
	}
	fl := c.Flags()
	fl.BoolVarP(&f.yes, "yes", "y", false, "do it without asking")
	fl.BoolVar(&f.override, "override-mine", false, "also take back what you have changed since")
	fl.BoolVar(&f.asJSON, "json", false, "print a JSON object; nothing is done without --yes")
	addCwd(c, &f.cwd)
	c.ValidArgsFunction = complete(e, &f.cwd)
	return c
}

func (f *undoFlags) run(e *launch.Env, args []string, dash int) error {
	w, err := open(e, f.cwd)
	if err != nil {
		return err
	}
	t, paths, err := w.choose(args, dash)
	if err != nil {
		return err
	}
	var roots []string
	for _, r := range t.To.Roots {
		roots = append(roots, r.Top())
	}
	if running := launch.Writing(w.registry, "", roots); len(running) > 0 {
		return verb.Usage("\"bawn kill "+short(running[0].ID)+"\" ends it", "session %s still runs in %q", short(running[0].ID), running[0].Workspace)
	}
	if err := publish(e, w.path); err != nil {
		fmt.Fprintf(e.Stderr, "bawn: note: what an earlier session did in git is not published: %s\n", redact.Visible(err.Error()))
	}
	p, err := undo.Prepare(undo.Request{State: w.state, Workspace: w.path, Target: *t, Own: launch.OwnDirs(e), Paths: paths, Path: e.Getenv("PATH"), Override: f.override})
	if err != nil {
		return internal(err)
	}
	defer p.Close()
	if f.asJSON {
		return f.json(e, p)
	}
	if err := w.preview(e.Stdout, p); err != nil || p.Empty() {
		return err
	}
	if !f.yes {
		if err := ask(e, "take this back", "undone"); err != nil {
			return err
		}
	}
	done, err := p.Apply()
	if done > 0 || err == nil {
		fmt.Fprintf(e.Stderr, "bawn: %s taken back; \"bawn undo %s\" undoes that\n", undo.Count(p.Done(done, err), "change"), p.Before.ID)
	}
	if err != nil {
		return internal(err)
	}
	return nil
}

// publish brings into a repository what a killed session has left, so that it is
// undone as well.
func publish(e *launch.Env, workspace string) error {
	repo, err := gitstore.Find(workspace)
	if err != nil || repo == nil {
		return nil // a session writes in none
	}
	o, err := launch.GitOptions(e, launch.SettingOf(e, nil).Native(), "")
	if err == nil {
		_, err = launch.RecoverGit(repo, o)
	}
	return err
}

// ask asks at the terminal whether to do what was shown.
func ask(e *launch.Env, what, done string) error {
	if !verb.IsTerminal(e.Stdin) {
		return verb.Usage("look at the list above and say --yes", "nothing was %s: there is no terminal to ask at", done)
	}
	fmt.Fprintf(e.Stdout, "\n%s? [y/N] ", what)
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return internal(err)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return &verb.Error{Code: 1, Err: errors.New("nothing was " + done)}
	}
	return nil
}

// preview lists what would be done.
func (w *workspace) preview(out io.Writer, p *undo.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in %s\n", title(&p.Target), redact.Visible(w.path))
	if p.Killed && p.After == nil {
		b.WriteString("it was killed: whatever differs from its start counts as its own\n")
	}
	do, keep := p.Steps()
	for _, s := range do {
		switch {
		case s.Path == "":
			fmt.Fprintf(&b, "  %-9s %s: %s\n", s.What, redact.Visible(s.Ref), redact.Visible(s.Detail))
		case s.Detail != "":
			fmt.Fprintf(&b, "  %-9s %s %s\n", s.What, w.show(s.Path), redact.Visible(s.Detail))
		default:
			fmt.Fprintf(&b, "  %-9s %s\n", s.What, w.show(s.Path))
		}
	}
	if p.Empty() {
		b.WriteString("  there is nothing to undo\n")
	}
	for _, s := range keep {
		name := w.show(s.Path)
		if s.Path == "" {
			name = "git " + redact.Visible(s.Ref)
		}
		fmt.Fprintf(&b, "  %-9s %s: %s\n", s.What, name, redact.Visible(s.Detail))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// json prints the plan, and does it with --yes.
func (f *undoFlags) json(e *launch.Env, p *undo.Plan) error {
	out := struct {
		Session string               `json:"session,omitempty"`
		To      string               `json:"to"`
		Killed  bool                 `json:"killed,omitempty"`
		Changes []checkpoint.Change  `json:"changes"`
		Kept    []checkpoint.Change  `json:"kept"`
		Git     []gitstore.RefChange `json:"git"`
		Done    int                  `json:"done"`
		Before  string               `json:"before,omitempty"` // the checkpoint to which the undo can be undone
		Error   string               `json:"error,omitempty"`
	}{Session: p.Session, To: p.To.ID, Killed: p.Killed, Changes: append([]checkpoint.Change{}, p.Files.Changes...), Kept: append([]checkpoint.Change{}, p.Files.Kept...), Git: append([]gitstore.RefChange{}, p.Git...)}
	var failed error
	if f.yes && !p.Empty() {
		done, err := p.Apply()
		out.Done = p.Done(done, err)
		out.Before = p.Before.ID
		if err != nil {
			out.Error, failed = err.Error(), internal(err)
		}
	}
	return errors.Join(verb.WriteJSON(e.Stdout, out), failed)
}
