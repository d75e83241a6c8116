package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// killPatience is how long a session may take to end that was told to: it gives
// its guest a grace, and then kills it.
const killPatience = 15 * time.Second

func newKillCommand(e *launch.Env) *cobra.Command {
	var sig string
	var all bool
	c := &cobra.Command{
		Use:   "kill [flags] SESSION...",
		Short: "End sessions",
		Long: `End sessions, whether they run in the background or at a terminal: their
command gets SIGTERM, and what is left of the guest after five seconds is
killed. --signal KILL does not wait.

Another signal is passed on to the session's command. The exit code is 0 if
every session ended, or got its signal, and 1 otherwise.`,
		Example: `  bawn kill k3xr
  bawn kill --signal INT k3xr
  bawn kill --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) > 0) == all {
				return verb.Usage("\"bawn ps\" lists them", "want sessions, or --all for every one")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return killSessions(e, args, sig, all) },
	}
	c.Flags().StringVarP(&sig, "signal", "s", "TERM", "`signal` to send: "+strings.Join(killSignals, ", "))
	c.Flags().BoolVarP(&all, "all", "a", false, "all sessions of yours")
	c.ValidArgsFunction = completeSessions(e, func(s attach.Entry) bool { return s.State == attach.Running }, 0)
	verb.CompleteFlags(c, map[string]func() []string{"signal": verb.Fixed(killSignals...)})
	return c
}

var killSignals = []string{"TERM", "KILL", "INT", "HUP", "QUIT", "USR1", "USR2", "TSTP", "CONT"}

// signalName reads TERM, term and SIGTERM.
func signalName(s string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for _, known := range killSignals {
		if name == known {
			return name, nil
		}
	}
	return "", verb.Usage("for example: --signal INT", "--signal %q is not passed on; want one of %s", s, strings.Join(killSignals, ", "))
}

func killSessions(e *launch.Env, ids []string, sig string, all bool) error {
	name, err := signalName(sig)
	if err != nil {
		return err
	}
	reg, err := openRegistry(e)
	if err != nil {
		return err
	}
	targets, err := reg.targets(ids, all)
	if err != nil {
		return err
	}
	failed := false
	told := make([]error, len(targets))
	for i, s := range targets { // all are told before the first is waited for
		told[i] = attach.Signal(reg.dir, s, name)
	}
	for i, s := range targets {
		if err := ended(reg.dir, s, name, told[i]); err != nil {
			failed = true
			fmt.Fprintf(e.Stderr, "bawn: session %s: %v\n", s.ID, err)
		}
	}
	if failed {
		return verb.Status(1)
	}
	return nil
}

// targets are the sessions that were named; each must be one.
func (r registry) targets(ids []string, all bool) ([]attach.Entry, error) {
	var out []attach.Entry
	if all {
		for _, s := range r.sessions {
			if s.State == attach.Running {
				out = append(out, s)
			}
		}
		return out, nil
	}
	for _, id := range ids {
		if id == "" {
			return nil, verb.Usage("\"bawn ps\" lists them", "%q names no session", id)
		}
		s, err := r.find(id, func(attach.Entry) bool { return true })
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// ended waits for the end where the signal asks for one.
func ended(dir string, s attach.Entry, name string, told error) error {
	if errors.Is(told, attach.ErrNotRunning) && s.State == attach.Running {
		told = nil // it ended meanwhile
	}
	if told != nil || name != "TERM" && name != "KILL" && name != "HUP" {
		return told
	}
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	if attach.WaitEnd(ctx, dir, s.ID) != nil {
		return fmt.Errorf("it has not ended within %v; --signal KILL waits for nothing", killPatience)
	}
	return nil
}
