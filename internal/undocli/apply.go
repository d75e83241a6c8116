package undocli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

type applyFlags struct {
	cwd, branch       string
	conflicts         string
	yes, asJSON, held bool
	parts             bool
}

// NewApply returns the verb.
func NewApply(e *launch.Env) *cobra.Command {
	f := &applyFlags{}
	c := &cobra.Command{
		Use:   "apply [flags] [COPY] [PATH...]",
		Short: "Take over what a session on a copy has changed",
		Long: `Take over into the workspace what a session on a copy ("bawn run --copy") has
changed: all of it, or these paths only. Without a name it is the only copy there is.

What would be done is shown first. Where you have changed a text since the session
began, both changes are merged. Where both have changed the same lines, your file stays
as it is and is listed; --conflicts says what to do instead: take the session's lines
there ("session"), yours ("mine"), or both with markers as git's ("markers").

What programs of yours would execute or obey later, such as .envrc or .vscode, stays in
the copy until you open it, file by file, with --held.

A checkpoint is taken before, so that "bawn undo" takes it back. An apply that was
killed can be run again. Commits are apart from files: --branch makes a branch of them.`,
		Example: `  bawn apply
  bawn apply fix-auth src
  bawn apply fix-auth -p
  bawn apply fix-auth README.md --conflicts session
  bawn apply fix-auth .envrc --held
  bawn apply fix-auth --branch agent/fix-auth`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(e, args, c.ArgsLenAtDash()) },
	}
	fl := c.Flags()
	fl.BoolVarP(&f.yes, "yes", "y", false, "do it without asking")
	fl.BoolVarP(&f.parts, "patch", "p", false, "choose file by file and hunk by hunk, at a terminal")
	fl.BoolVar(&f.held, "held", false, "also take over the one path that is named, though it is held back; asks at a terminal")
	fl.StringVar(&f.conflicts, "conflicts", "", "`what` becomes of lines that both have changed: session, mine or markers (default: the file stays yours)")
	fl.StringVar(&f.branch, "branch", "", "make a branch of this `name` of the session's commits, and leave the files alone")
	fl.BoolVar(&f.asJSON, "json", false, "print a JSON object; nothing is done without --yes")
	addCwd(c, &f.cwd)
	c.ValidArgsFunction = completeCopies(e, &f.cwd)
	return c
}

// check refuses flags that don't go together.
func (f *applyFlags) check(e *launch.Env, paths []string) error {
	switch {
	case !slices.Contains([]undo.Prefer{undo.Keep, undo.Theirs, undo.Mine, undo.Markers}, undo.Prefer(f.conflicts)):
		return verb.Usage("for example: bawn apply COPY README.md --conflicts session", "--conflicts %q: want session, mine or markers", f.conflicts)
	case f.branch != "" && (f.conflicts != "" || f.held || f.asJSON || len(paths) > 0):
		return verb.Usage("run it once for the branch and once for the files", "--branch takes over commits alone")
	case f.parts && (f.branch != "" || f.held || f.yes || f.asJSON || !verb.IsTerminal(e.Stdin)):
		return verb.Usage("run it at a terminal, without --yes, --json, --held and --branch", "-p asks about each change")
	case f.held && len(paths) != 1:
		return verb.Usage("for example: bawn apply COPY .envrc --held", "--held wants one path: what is held back is opened one by one")
	case f.held && (f.yes || f.asJSON || !verb.IsTerminal(e.Stdin)):
		return &verb.Error{Code: verb.ExitDenied, Err: errors.New("--held asks a human at a terminal; without one, and with --yes or --json, it does nothing"), Hint: "run it at your terminal"}
	}
	return nil
}

func (f *applyFlags) run(e *launch.Env, args []string, dash int) error {
	w, err := open(e, f.cwd)
	if err != nil {
		return err
	}
	r, paths, err := w.chooseCopy(args, dash)
	if err != nil {
		return err
	}
	if err := f.check(e, paths); err != nil {
		return err
	}
	if err := w.reviewer(e).Idle(r.Workspace); err != nil {
		return notIdle(err)
	}
	if err := publish(e, r.Workspace); err != nil && r.Ended.IsZero() {
		fmt.Fprintf(e.Stderr, "bawn: note: what an earlier session did in git is not known: %s\n", redact.Visible(err.Error()))
	}
	c, err := w.openCopy(e, r)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.branch != "" {
		return f.makeBranch(e, &c.Record)
	}
	var opened []string
	if f.held {
		opened = paths
	}
	p, err := c.Prepare(paths, opened, undo.Prefer(f.conflicts))
	if err != nil {
		return notIdle(err)
	}
	defer p.Close()
	return f.apply(e, w, c, p, paths)
}

// notIdle says which session to end first, if that is why nothing can be taken over.
func notIdle(err error) error {
	var running *undo.RunningError
	if errors.As(err, &running) {
		return verb.Usage("\"bawn kill "+short(running.Session)+"\" ends it", "%w", running)
	}
	return internal(err)
}

// apply shows the plan, asks and does it.
func (f *applyFlags) apply(e *launch.Env, w *workspace, a *copies.Review, p *undo.Plan, paths []string) error {
	if f.asJSON {
		return f.json(e, w, a, p, paths)
	}
	if err := f.preview(e.Stdout, w, a, p, paths); err != nil || p.Empty() {
		return err
	}
	switch {
	case f.parts:
		if err := pick(e, w, p); err != nil {
			return err
		}
	case !f.yes:
		if err := ask(e, "take this over", "applied"); err != nil {
			return err
		}
	}
	done, err := p.Apply()
	if done > 0 || err == nil {
		fmt.Fprintf(e.Stderr, "bawn: %s taken over; \"bawn undo %s\" takes that back\n", undo.Count(done, "change"), p.Before.ID)
	}
	if err != nil {
		return internal(err)
	}
	return nil
}

// preview lists what would be done: what is held back comes first. What is chosen in
// parts is shown later.
func (f *applyFlags) preview(out io.Writer, w *workspace, a *copies.Review, p *undo.Plan, paths []string) error {
	var b strings.Builder
	fmt.Fprintln(&b, copyTitle(&a.Record))
	for _, l := range a.Stays(paths) {
		word := "stays"
		if l.Held {
			word = "held"
		}
		fmt.Fprintf(&b, "  %-9s %s: %s\n", word, redact.Visible(l.Path), redact.Visible(l.Why))
	}
	do, keep := p.Steps()
	for _, s := range keep {
		fmt.Fprintf(&b, "  %-9s %s: %s\n", "conflict", w.show(s.Path), redact.Visible(copies.ConflictWhy(s)))
	}
	for _, s := range do {
		if !f.parts {
			fmt.Fprintf(&b, "  %-9s %s\n", copies.StepWord(s), strings.TrimSpace(w.show(s.Path)+" "+redact.Visible(s.Detail)))
		}
	}
	if len(p.Files.Kept) > 0 {
		b.WriteString("  --conflicts session takes the session's lines where both have changed some, \"mine\" yours, \"markers\" both\n")
	}
	if p.Empty() {
		b.WriteString("  there is nothing to take over\n")
	}
	for _, k := range a.Git {
		fmt.Fprintf(&b, "  %-9s %s at %s%s\n", "commits", redact.Visible(k.Ref), redact.Visible(k.Beside), redact.Visible(strings.TrimPrefix(k.Why, gitstore.WhyCopy)))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// json prints the plan, and does it with --yes.
func (f *applyFlags) json(e *launch.Env, w *workspace, a *copies.Review, p *undo.Plan, paths []string) error {
	out := struct {
		Copy    string               `json:"copy"`
		Name    string               `json:"name,omitempty"`
		Changes []checkpoint.Change  `json:"changes"`
		Kept    []checkpoint.Change  `json:"kept"`  // the human has changed it too
		Stays   []checkpoint.Leaving `json:"stays"` // held back, or not to be taken over
		Git     []gitstore.Kept      `json:"git"`
		Done    int                  `json:"done"`
		Before  string               `json:"before,omitempty"` // the checkpoint to which it can be undone
		Error   string               `json:"error,omitempty"`
	}{
		Copy: a.ID, Name: a.Name, Changes: append([]checkpoint.Change{}, p.Files.Changes...), Kept: append([]checkpoint.Change{}, p.Files.Kept...),
		Stays: append([]checkpoint.Leaving{}, a.Stays(paths)...), Git: append([]gitstore.Kept{}, a.Git...),
	}
	var failed error
	if f.yes && !p.Empty() {
		done, err := p.Apply()
		out.Done, out.Before = done, p.Before.ID
		if err != nil {
			out.Error, failed = err.Error(), internal(err)
		}
	}
	return errors.Join(verb.WriteJSON(e.Stdout, out), failed)
}

// makeBranch makes a branch of what the session has committed.
func (f *applyFlags) makeBranch(e *launch.Env, r *copies.Record) error {
	branches := slices.DeleteFunc(slices.Clone(r.Git), func(k gitstore.Kept) bool { return !strings.HasPrefix(k.Ref, "refs/heads/") })
	switch {
	case len(branches) == 0:
		return verb.Usage("\"bawn apply "+r.Called()+"\" takes over files", "copy %s has no commits on a branch", r.Called())
	case len(branches) > 1:
		return verb.Usage("\"bawn apply "+r.Called()+"\" lists them; git branch makes one of each", "copy %s has commits on %d branches", r.Called(), len(branches))
	case branches[0].Why != gitstore.WhyCopy:
		return &verb.Error{
			Code: verb.ExitDenied, Err: fmt.Errorf("the commits are held back: %s", redact.Visible(strings.TrimPrefix(branches[0].Why, gitstore.WhyCopy+"; "))),
			Hint: "look at them first: git log -p " + redact.Visible(branches[0].Beside),
		}
	}
	repo, err := gitstore.Find(r.Workspace)
	if err != nil || repo == nil {
		return internal(errors.Join(errors.New("the workspace's repository is gone"), err))
	}
	o, err := launch.GitOptions(e, launch.SettingOf(e, nil).Native(), "")
	if err == nil {
		err = gitstore.MakeBranch(context.Background(), repo, o, f.branch, branches[0].Beside)
	}
	if err != nil {
		return internal(err)
	}
	fmt.Fprintf(e.Stderr, "bawn: branch %s has the session's commits\n", redact.Visible(f.branch))
	return nil
}
