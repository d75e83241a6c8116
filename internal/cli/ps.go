package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undocli"
	"github.com/bawn-dev/bawn/internal/verb"
)

type psFlags struct{ asJSON, all, quiet, tree bool }

func newPsCommand(e *launch.Env) *cobra.Command {
	f := &psFlags{}
	c := &cobra.Command{
		Use:   "ps [flags]",
		Short: "List the sessions that run",
		Long: `List the sessions that run, in the background and at terminals, the oldest
first. A session whose host was killed is "dead": it is listed once, and its
guest has died with it. --all also lists those that have ended and whose output
is kept (see "bawn logs").`,
		Example: `  bawn ps
  bawn ps --tree
  bawn ps --json | jq -r '.[] | select(.viewers == 0) | .id'
  bawn kill $(bawn ps -q)`,
		Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.list(e) },
	}
	c.Flags().BoolVar(&f.asJSON, "json", false, "print a list of JSON objects")
	c.Flags().BoolVarP(&f.all, "all", "a", false, "also those that have ended")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print the IDs only")
	c.Flags().BoolVar(&f.tree, "tree", false, "show below each session those that it has started")
	return c
}

func (f *psFlags) list(e *launch.Env) error {
	reg, err := openRegistry(e)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(reg.sessions), func(s attach.Entry) bool {
		return !f.all && (s.State == attach.Ended || s.State == attach.Dead && !s.Ended.IsZero())
	})
	if f.quiet {
		shown = slices.DeleteFunc(shown, func(s attach.Entry) bool { return !f.all && s.State != attach.Running })
	}
	if err := f.print(e, shown); err != nil {
		return err
	}
	attach.Sweep(reg.dir, time.Now())
	return nil
}

func (f *psFlags) print(e *launch.Env, sessions []attach.Entry) error {
	rows := flat(sessions)
	if f.tree {
		rows = tree(sessions)
	}
	switch {
	case f.asJSON:
		return verb.WriteJSON(e.Stdout, append([]attach.Entry{}, entries(rows)...))
	case f.quiet:
		for _, r := range rows {
			if _, err := fmt.Fprintln(e.Stdout, r.ID); err != nil {
				return err
			}
		}
		return nil
	}
	return printTable(e, rows)
}

// A row is a session as it is listed.
type row struct {
	attach.Entry
	lead string // the lines that lead to it in the tree
}

func flat(sessions []attach.Entry) []row {
	var rows []row
	for _, s := range sessions {
		rows = append(rows, row{s, ""})
	}
	return rows
}

func entries(rows []row) (out []attach.Entry) {
	for _, r := range rows {
		out = append(out, r.Entry)
	}
	return out
}

// tree puts sessions below those that started them; one whose parent is not
// listed stands by itself.
func tree(sessions []attach.Entry) []row {
	below := map[string][]attach.Entry{}
	known := map[string]bool{}
	for _, s := range sessions {
		known[s.ID] = true
	}
	for _, s := range sessions {
		if known[s.Parent] && s.Parent != s.ID {
			below[s.Parent] = append(below[s.Parent], s)
		} else {
			below[""] = append(below[""], s)
		}
	}
	return branch(below, "", "", map[string]bool{})
}

// branch returns the sessions below a session. Entries are files that others can
// change, so it must not follow a circle of parents.
func branch(below map[string][]attach.Entry, parent, indent string, seen map[string]bool) (rows []row) {
	for i, s := range below[parent] {
		if seen[s.ID] {
			continue
		}
		seen[s.ID] = true
		lead, deeper := "", ""
		if parent != "" {
			lead, deeper = indent+"├─ ", indent+"│  "
			if i == len(below[parent])-1 {
				lead, deeper = indent+"└─ ", indent+"   "
			}
		}
		rows = append(rows, row{s, lead})
		rows = append(rows, branch(below, s.ID, deeper, seen)...)
	}
	return rows
}

var psHeader = []string{"SESSION", "AGENT", "STATE", "STARTED", "VIEWERS", "NETWORK", "MODE", "COMMAND", "WORKSPACE"}

// widestCommand is how much of a command is listed.
const widestCommand = 40

func printTable(e *launch.Env, rows []row) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(e.Stderr, "bawn: no session runs")
		return err
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	some := slices.ContainsFunc(rows, func(r row) bool { return r.Copy != "" })
	line := func(cells []string, copied string) {
		if some { // before the command
			cells = slices.Insert(cells, len(cells)-2, copied)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	line(slices.Clone(psHeader), "COPY")
	ids := shorten(entries(rows))
	now := time.Now()
	for _, r := range rows {
		line(r.cells(ids, now), undocli.CopyOf(e, r.ID, r.Copy))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if width := terminalWidth(e); width > 0 {
			line = cut(line, width)
		}
		if i > 0 && wantColour(e) {
			line = colourState(line, rows[i-1].State)
		}
		if _, err := fmt.Fprintln(e.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func (r row) cells(ids map[string]string, now time.Time) []string {
	viewers := "-"
	if r.Hosted && r.State == attach.Running {
		viewers = strconv.Itoa(r.Viewers)
	}
	return []string{
		r.lead + ids[r.ID], redact.Visible(r.Agent), stateOf(r.Entry), ago(now.Sub(r.Started)), viewers, redact.Visible(r.Network), redact.Visible(r.Mode),
		cut(commandOf(r.Entry), widestCommand), redact.Visible(r.Workspace),
	}
}

func stateOf(s attach.Entry) string {
	if s.State == attach.Ended && s.Exit != nil {
		return fmt.Sprintf("ended (%d)", *s.Exit)
	}
	return string(s.State)
}

// ago is a time that has gone by, roughly.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// colourState gives the state its colour: the first word of that name.
func colourState(line string, s attach.State) string {
	colour := map[attach.State]string{attach.Running: "\x1b[32m", attach.Dead: "\x1b[31m", attach.Ended: "\x1b[2m"}[s]
	before, after, ok := strings.Cut(line, "  "+string(s))
	if !ok || colour == "" {
		return line
	}
	return before + "  " + colour + string(s) + "\x1b[0m" + after
}
