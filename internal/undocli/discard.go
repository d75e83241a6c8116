package undocli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// NewDiscard returns the verb.
func NewDiscard(e *launch.Env) *cobra.Command {
	var cwd string
	var yes bool
	c := &cobra.Command{
		Use:   "discard [flags] COPY",
		Short: "Remove a copy with what its session has changed",
		Long: `Remove a copy ("bawn run --copy") with all that its session has changed and committed
there. What was taken over stays. Nothing brings the rest back.`,
		Example: `  bawn discard fix-auth
  bawn discard k3xr --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return verb.Usage("for example: bawn discard fix-auth", "want the name of one copy")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return discard(e, cwd, args, yes) },
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do it without asking")
	addCwd(c, &cwd)
	c.ValidArgsFunction = completeCopies(e, &cwd)
	return c
}

func discard(e *launch.Env, cwd string, args []string, yes bool) error {
	w, err := open(e, cwd)
	if err != nil {
		return err
	}
	r, _, err := w.chooseCopy(args, -1)
	if err != nil {
		return err
	}
	c, err := w.openCopy(e, r)
	if err != nil {
		return err
	}
	defer c.Close()
	n, _, err := c.Changed()
	if err != nil {
		return internal(err)
	}
	if !yes {
		fmt.Fprintf(e.Stdout, "%s\n  %s changed, commits on %s\n", copyTitle(&c.Record), undo.Files(n), undo.Count(len(c.Git), "ref"))
		if err := ask(e, "remove this", "removed"); err != nil {
			return err
		}
	}
	if err := c.Remove(); err != nil {
		return internal(err)
	}
	fmt.Fprintf(e.Stderr, "bawn: copy %s is removed\n", redact.Visible(r.Called()))
	return nil
}

// forgetCommits removes the refs that hold what a session has committed.
func forgetCommits(e *launch.Env, r *copies.Record) error {
	repo, err := gitstore.Find(r.Workspace)
	if err != nil || repo == nil {
		return nil // then it has no commits of ours
	}
	o, err := launch.GitOptions(e, launch.SettingOf(e, nil).Native(), "")
	if err != nil {
		return err
	}
	list, err := gitstore.Beside(repo)
	if err != nil {
		return err
	}
	for _, k := range list {
		if strings.HasPrefix(k.Beside, "refs/bawn/"+r.ID+"/") {
			err = errors.Join(err, gitstore.Forget(context.Background(), repo, o, k.Beside))
		}
	}
	return err
}

// completeCopies completes the names of copies, and then paths.
func completeCopies(e *launch.Env, cwd *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		w, err := open(e, *cwd)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		list, _ := copies.List(w.state, w.path)
		var out []string
		for i := range list {
			out = append(out, list[i].Called()+"\tcopy, "+ago(time.Since(list[i].Started)))
		}
		return out, cobra.ShellCompDirectiveDefault
	}
}
