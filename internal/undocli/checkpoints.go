package undocli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// NewCheckpoints returns the verb.
func NewCheckpoints(e *launch.Env) *cobra.Command {
	var cwd string
	var asJSON bool
	c := &cobra.Command{
		Use:   "checkpoints",
		Short: "List the checkpoints of a workspace",
		Long: `List the checkpoints of a workspace, the oldest first. A checkpoint has every file
that a session may write, ignored ones too, and the state of git: before the
session's command starts, at each prompt, before commands that destroy, every five
minutes while something changes, and at the end.

It does not have what programs can make again (node_modules, target, .venv), single
files above 64 MiB, and what goes beyond 1 GiB in all. Sessions do not write those
large files until you allow it: see "bawn checkpoints allow".`,
		Example: `  bawn checkpoints
  bawn checkpoints --json | jq -r '.[].id'
  bawn checkpoints prune
  bawn checkpoints allow data/model.bin`,
		Args: verb.OnlyCommands,
		RunE: func(*cobra.Command, []string) error { return listCheckpoints(e, cwd, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects")
	addCwd(c, &cwd)
	c.AddCommand(newPrune(e), newAllow(e))
	return c
}

// A listed is a checkpoint in JSON.
type listed struct {
	ID        string                  `json:"id"`
	Session   string                  `json:"session,omitempty"`
	Agent     string                  `json:"agent,omitempty"`
	When      time.Time               `json:"when"`
	Why       checkpoint.Why          `json:"why"`
	Files     int                     `json:"files"`
	Bytes     int64                   `json:"bytes"`
	Git       bool                    `json:"git"`
	Roots     []string                `json:"roots"`
	Uncovered []checkpoint.Uncovering `json:"uncovered,omitempty"`
}

func listedOf(c *checkpoint.Checkpoint) listed {
	l := listed{ID: c.ID, Session: c.Session, Agent: c.Agent, When: c.When, Why: c.Why, Git: c.Git != nil}
	for _, r := range c.Roots {
		l.Files, l.Bytes = l.Files+r.Files, l.Bytes+r.Bytes
		l.Roots, l.Uncovered = append(l.Roots, r.Top()), append(l.Uncovered, r.Uncovered...)
	}
	return l
}

func listCheckpoints(e *launch.Env, cwd string, asJSON bool) error {
	w, err := open(e, cwd)
	if err != nil {
		return err
	}
	list := []listed{}
	for i := range w.list {
		list = append(list, listedOf(&w.list[i]))
	}
	if asJSON {
		return verb.WriteJSON(e.Stdout, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(e.Stderr, "bawn: no checkpoints of %s\n", redact.Visible(w.path))
		return err
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHECKPOINT\tTAKEN\tWHEN\tSESSION\tAGENT\tFILES\tSIZE")
	for _, c := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", c.ID, ago(time.Since(c.When)), cmp.Or(whyWords[c.Why], "unknown"), short(c.Session), redact.Visible(c.Agent), c.Files, undo.Bytes(c.Bytes))
	}
	size, err := checkpoint.Size(w.place())
	if err = errors.Join(err, t.Flush()); err != nil {
		return internal(err)
	}
	_, err = fmt.Fprintf(e.Stdout, "%s%s on the disk\n%s", b.String(), undo.Bytes(size), w.uncovered(list[len(list)-1]))
	return err
}

// uncovered lists what the last checkpoint does not have.
func (w *workspace) uncovered(last listed) string {
	if len(last.Uncovered) == 0 {
		return ""
	}
	consent, _ := undo.ReadConsent(w.state, w.path) // what can't be read allows nothing
	var b strings.Builder
	b.WriteString("not covered:\n")
	shut := consent.ReadOnly(last.Uncovered)
	for _, u := range last.Uncovered {
		how := "sessions write it: you have allowed it"
		if slices.Contains(shut, u) {
			how = "read-only for sessions"
		}
		fmt.Fprintf(&b, "  %s  %s (%s): %s\n", w.show(u.Path), undo.Bytes(u.Size), u.Why, how)
	}
	return b.String()
}

func newPrune(e *launch.Env) *cobra.Command {
	var cwd string
	var older time.Duration
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove old checkpoints of a workspace",
		Long: `Remove checkpoints that are older than 30 days, those within sessions after a day,
and the oldest if all together take more than 2 GiB. This happens by itself at the
end of each session that has changed something. The last two checkpoints stay.`,
		Example: "  bawn checkpoints prune\n  bawn checkpoints prune --older 24h",
		Args:    verb.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return prune(e, cwd, older) },
	}
	c.Flags().DurationVar(&older, "older", 0, "remove what is older than this `time`, for example 24h")
	addCwd(c, &cwd)
	return c
}

func prune(e *launch.Env, cwd string, older time.Duration) error {
	w, err := open(e, cwd)
	if err != nil {
		return err
	}
	if len(w.list) == 0 {
		_, err := fmt.Fprintf(e.Stderr, "bawn: no checkpoints of %s\n", redact.Visible(w.path))
		return err
	}
	limits := checkpoint.DefaultLimits
	if older < 0 {
		return verb.Usage("for example: --older 24h", "--older %v is no age", older)
	}
	if older > 0 {
		limits.Age, limits.Fine = older, min(limits.Fine, older)
	}
	s, err := checkpoint.Open(w.place(), 5*time.Second)
	if err != nil {
		return internal(err)
	}
	defer s.Close()
	gone, err := s.Prune(limits, time.Now())
	if err != nil {
		return internal(err)
	}
	size, err := checkpoint.Size(w.place())
	if err != nil {
		return internal(err)
	}
	_, err = fmt.Fprintf(e.Stdout, "%d checkpoints removed; %s on the disk\n", len(gone), undo.Bytes(size))
	return err
}

func newAllow(e *launch.Env) *cobra.Command {
	var cwd string
	var forget bool
	c := &cobra.Command{
		Use:   "allow PATH...",
		Short: "Let sessions write what no checkpoint covers",
		Long: `Let sessions write files and directories of this workspace that are too large for a
checkpoint. Until then they are read-only for sessions. What a session destroys there
does not come back. With --forget they are read-only again.`,
		Example: "  bawn checkpoints allow data/model.bin\n  bawn checkpoints allow .      # everything\n  bawn checkpoints allow --forget data/model.bin",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return verb.Usage("\"bawn checkpoints\" lists what is not covered", "want a path")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return allow(e, cwd, args, forget) },
	}
	c.Flags().BoolVar(&forget, "forget", false, "take it back")
	addCwd(c, &cwd)
	return c
}

func allow(e *launch.Env, cwd string, args []string, forget bool) error {
	w, err := open(e, cwd)
	if err != nil {
		return err
	}
	c, err := undo.ReadConsent(w.state, w.path)
	if err != nil {
		return internal(err)
	}
	for _, a := range args {
		path := w.absolute(a)
		if forget {
			c.Paths = slices.DeleteFunc(c.Paths, func(p string) bool { return p == path })
			c.Told = nil
			continue
		}
		c.Allow(path)
	}
	if err := c.Write(w.state); err != nil {
		return internal(err)
	}
	return nil
}
