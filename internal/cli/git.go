package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newGitCommand(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "git",
		Short: "List what sessions have left in git that needs you",
		Long: `List what sessions have left in git that needs you.

A session has a git directory of its own, from which commits, branches, tags and
the index are published into your repository while it runs. What can't be is kept:

  refs/bawn/...     commits to a branch that you have moved as well, or under a
                    name that can't be yours. "git merge REF" takes them.
  sessions          which ended in the middle of a rebase or merge, or whose
                    objects git refuses
  repositories      that a session has made: yours has an empty .git there until
                    you keep it`,
		Example: `  bawn git
  git merge refs/bawn/k3xr.../heads/main
  bawn git keep ./vendor/lib      # a repository that a session has made
  bawn git discard refs/bawn/k3xr.../heads/main`,
		Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listGit(e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	c.AddCommand(newGitListCommand(e), newGitKeepCommand(e), newGitDiscardCommand(e))
	return c
}

func newGitListCommand(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List what sessions have left in git, as \"bawn git\" does", Args: verb.NoArgs,
		Example: "  bawn git list\n  bawn git list --json | jq -r '.beside[].beside'",
		RunE:    func(*cobra.Command, []string) error { return listGit(e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func newGitKeepCommand(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use: "keep PATH", Short: "Take over a repository that a session has made",
		Long: `Take over the repository that a session has made at PATH.

Its commits, branches, tags, HEAD and index are checked and taken over. Of its
configuration it gets the remotes and what its branches follow: hooks, filters and
all else stay behind.`,
		Example:           "  bawn git keep ./vendor/lib",
		Args:              onePath,
		ValidArgsFunction: completeGit(e, func(l *gitLeft) []string { return l.paths() }),
		RunE:              func(_ *cobra.Command, args []string) error { return keepGit(e, settings.Absolute(&e.World, args[0])) },
	}
}

func newGitDiscardCommand(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use: "discard REF|PATH|SESSION", Short: "Remove what a session has left in git",
		Long: `Remove what a session has left in git: one of its refs, a repository that it has
made, or everything that it has left. The files of a repository stay, and so does the
empty .git in it.`,
		Example:           "  bawn git discard refs/bawn/k3xr.../heads/main\n  bawn git discard ./vendor/lib\n  bawn git discard k3xr",
		Args:              onePath,
		ValidArgsFunction: completeGit(e, func(l *gitLeft) []string { return append(append(l.paths(), l.refs()...), l.sessions()...) }),
		RunE:              func(_ *cobra.Command, args []string) error { return discardGit(e, args[0]) },
	}
}

func onePath(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return verb.Usage("\"bawn git\" lists them", "want one argument")
	}
	return nil
}

// A gitLeft is what there is to list.
type gitLeft struct {
	Repository string           `json:"repository,omitempty"`
	Beside     []gitstore.Kept  `json:"beside"`
	Sessions   []gitstore.Ended `json:"sessions"`
	repo       *gitstore.Repository
	options    gitstore.Options
}

// leftInGit finds what sessions have left in git, here and elsewhere.
func leftInGit(e *launch.Env) (*gitLeft, error) {
	o, err := launch.GitOptions(e, launch.SettingOf(e, nil).Native(), "")
	if err != nil {
		return nil, err
	}
	l := &gitLeft{options: o, Beside: []gitstore.Kept{}}
	if e.Dir != "" {
		l.repo, _ = gitstore.Find(settings.WorkspaceOf(e.Dir, e.Getenv("HOME"))) // there may be none here
	}
	if l.repo != nil {
		l.Repository = l.repo.Common
		kept, err := gitstore.Beside(l.repo)
		if err != nil {
			return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
		}
		l.Beside = append(l.Beside, kept...)
	}
	ended, err := gitstore.List(o.State)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	l.Sessions = append([]gitstore.Ended{}, ended...)
	return l, nil
}

func (l *gitLeft) paths() (list []string) {
	for _, s := range l.Sessions {
		for _, m := range s.Made {
			list = append(list, filepath.Dir(m.Path))
		}
	}
	return list
}

func (l *gitLeft) refs() (list []string) {
	for _, k := range l.Beside {
		list = append(list, k.Beside)
	}
	return list
}

func (l *gitLeft) sessions() (list []string) {
	for _, s := range l.Sessions {
		list = append(list, s.Session)
	}
	return list
}

func listGit(e *launch.Env, asJSON bool) error {
	l, err := leftInGit(e)
	if err != nil {
		return err
	}
	if asJSON {
		return verb.WriteJSON(e.Stdout, l)
	}
	var text strings.Builder
	for _, k := range l.Beside {
		if k.Undo {
			fmt.Fprintf(&text, "%s\n    what the repository had before a session, for bawn undo\n", redact.Visible(k.Beside))
			continue
		}
		fmt.Fprintf(&text, "%s\n    what a session has made of %s\n    take it: git merge %s\n", redact.Visible(k.Beside), redact.Visible(k.Ref), redact.Visible(k.Beside))
	}
	for _, s := range l.Sessions {
		fmt.Fprintf(&text, "session %s in %s\n", short(s.Session), redact.Visible(s.Workspace))
		for _, line := range s.Report {
			fmt.Fprintf(&text, "    %s\n", redact.Visible(line))
		}
		for _, m := range s.Made {
			at := redact.Visible(filepath.Dir(m.Path))
			if !m.There {
				at += " (gone from there)"
			}
			fmt.Fprintf(&text, "    has made the repository %s\n    take it: bawn git keep %s\n", at, redact.Visible(filepath.Dir(m.Path)))
		}
	}
	if text.Len() == 0 {
		fmt.Fprintln(e.Stderr, "bawn: note: no session has left anything in git that needs you")
	}
	_, err = fmt.Fprint(e.Stdout, text.String())
	return err
}

// keepGit makes a repository the human's.
func keepGit(e *launch.Env, at string) error {
	l, err := leftInGit(e)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	r, err := gitstore.Keep(context.Background(), l.options, at)
	if text := launch.GitWords(r); text != "" {
		fmt.Fprintf(e.Stderr, "bawn: git: %s\n", redact.Visible(text))
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: errors.New(redact.Visible(err.Error())), Hint: "\"bawn git\" lists what sessions have made"}
	}
	return nil
}

// discardGit removes a ref, a repository or all that is left of a session.
func discardGit(e *launch.Env, what string) error {
	l, err := leftInGit(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if strings.HasPrefix(what, "refs/") {
		if l.repo == nil {
			return verb.Usage("change to the repository's directory", "there is no repository here")
		}
		return gitDone(gitstore.Forget(ctx, l.repo, l.options, what))
	}
	var match []string
	at := settings.Absolute(&e.World, what)
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	for _, s := range l.Sessions {
		for _, m := range s.Made {
			if m.Path == at || filepath.Dir(m.Path) == at {
				return gitDone(gitstore.Discard(l.options.State, s.Session, m.Path))
			}
		}
		if strings.HasPrefix(s.Session, what) {
			match = append(match, s.Session)
		}
	}
	if len(match) != 1 {
		return verb.Usage("\"bawn git\" lists them", "%q names %d of what sessions have left, want one", what, len(match))
	}
	return gitDone(gitstore.Discard(l.options.State, match[0], ""))
}

func gitDone(err error) error {
	if err == nil {
		return nil
	}
	return &verb.Error{Code: verb.ExitInternal, Err: errors.New(redact.Visible(err.Error())), Hint: "\"bawn git\" lists what can be removed"}
}

func completeGit(e *launch.Env, words func(*gitLeft) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		l, err := leftInGit(e)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(l), cobra.ShellCompDirectiveNoFileComp
	}
}
