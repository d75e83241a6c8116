package relaycli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

func newApprovals(e *Env) *cobra.Command {
	var asJSON, watch, plain bool
	c := &cobra.Command{
		Use:   "approvals",
		Short: "See what guests ask, and answer",
		Long: `Show what is pending on a screen that updates itself, and answer with one key:
y once, s for the session, a always, n no, N never. The rule that
"always" or "never" would make is shown first, and you confirm it.

Without a terminal, or with --plain, the command prints a list. --json writes
one JSON object a line; with --watch it goes on and writes each change. NO_COLOR
turns colours off.`,
		Example: "  bawn approvals\n  bawn approvals --json | jq -r .id\n  bawn approvals --watch --json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "unexpected argument %q", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			screen := term.IsTerminal(int(e.Stdout.Fd())) && term.IsTerminal(int(e.Stdin.Fd())) && !asJSON && !plain && !watch
			relay, err := e.reach(contextOf(c), screen || watch)
			switch {
			case errors.Is(err, ErrNoRelay):
				_, err := fmt.Fprintln(e.Stderr, "bawn: note: nothing is pending: no relay runs; a session at a terminal asks there, and \"bawn serve\" has all of them ask here too")
				return err
			case err != nil:
				return err
			case screen:
				return e.show(contextOf(c), relay)
			case watch:
				return e.watch(contextOf(c), relay, asJSON)
			}
			return e.list(contextOf(c), relay, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	c.Flags().BoolVar(&watch, "watch", false, "go on, and write each change")
	c.Flags().BoolVar(&plain, "plain", false, "write a list, also to a terminal")
	return c
}

func (e *Env) list(ctx context.Context, relay bawnv1connect.ApprovalServiceClient, asJSON bool) error {
	list, err := pending(ctx, relay)
	if err != nil {
		return err
	}
	if asJSON {
		for _, r := range list {
			if err := e.writeJSON(newRow(r)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(e.Stderr, "bawn: note: nothing is pending")
		return err
	}
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tLEFT\tAGENT\tWHAT")
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", short(r.GetId()), left(r, e.Now()), redact.Visible(r.GetAgent()), summary(r))
	}
	return t.Flush()
}

// errGone says that the relay ended, or that it could not keep up.
var errGone = errors.New("the relay has ended")

func (e *Env) watch(ctx context.Context, relay bawnv1connect.ApprovalServiceClient, asJSON bool) error {
	changes, err := follow(ctx, relay)
	if err != nil {
		return err
	}
	for r := range changes {
		if asJSON {
			err = e.writeJSON(newRow(r))
		} else {
			_, err = fmt.Fprintf(e.Stdout, "%s  %s  %s  %s\n", short(r.GetId()), outcome(r), redact.Visible(r.GetAgent()), what(r))
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errGone
}
