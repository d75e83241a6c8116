package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A registry is what this user's sessions are.
type registry struct {
	dir      string
	sessions []attach.Entry
}

func openRegistry(e *launch.Env) (registry, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return registry{}, err
	}
	dir := settings.RuntimeDir(&e.World, state)
	sessions, err := attach.List(dir)
	if err != nil {
		return registry{}, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	launch.SweepSockets(filepath.Join(dir, launch.SocketsName), sessions)
	return registry{dir, sessions}, nil
}

// find returns the session of that ID, or whose ID begins so. Without an ID it
// is the only one that is fit.
func (r registry) find(id string, fit func(attach.Entry) bool) (attach.Entry, error) {
	among := r.sessions
	if id == "" {
		among = slices.DeleteFunc(slices.Clone(among), func(s attach.Entry) bool { return !fit(s) })
	}
	s, err := attach.Find(among, id)
	var none *attach.NotFoundError
	if !errors.As(err, &none) {
		return s, err
	}
	hint := "\"bawn ps\" lists those that run"
	if len(none.Matches) > 0 {
		hint = "name one of them, by as much of its ID as only it has"
		if id == "" {
			what := "run"
			if slices.ContainsFunc(among, func(s attach.Entry) bool { return s.State != attach.Running }) {
				what = "have output, running or ended"
			}
			err = fmt.Errorf("%d sessions %s: %s", len(none.Matches), what, strings.Join(none.Matches, ", "))
		}
	}
	return s, &verb.Error{Code: verb.ExitUsage, Err: errors.New(redact.Visible(err.Error())), Hint: hint}
}

// shortest is how many characters of an ID are shown where it can be told from
// the others.
const shortest = 8

func short(id string) string { return id[:min(len(id), shortest)] }

// shorten returns as much of each ID as tells it from the others.
func shorten(sessions []attach.Entry) map[string]string {
	out := map[string]string{}
	for _, s := range sessions {
		n := min(len(s.ID), shortest)
		for _, other := range sessions {
			for n < len(s.ID) && other.ID != s.ID && strings.HasPrefix(other.ID, s.ID[:n]) {
				n++
			}
		}
		out[s.ID] = s.ID[:n]
	}
	return out
}

// completeSessions completes the IDs of sessions that are fit, with what they
// run; most is how many arguments there may be, 0 for any number.
func completeSessions(e *launch.Env, fit func(attach.Entry) bool, most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		reg, err := openRegistry(e)
		if err != nil || most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, s := range reg.sessions {
			if fit(s) && !slices.Contains(args, s.ID) {
				ids = append(ids, s.ID+"\t"+string(s.State)+" "+cut(commandOf(s), 40))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// commandOf is a session's command on one line.
func commandOf(s attach.Entry) string { return redact.Visible(strings.Join(s.Argv, " ")) }
