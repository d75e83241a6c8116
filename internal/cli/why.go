package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

// newWhyCommand makes `bawn why`, for guests and their human.
func newWhyCommand(e *launch.Env) *cobra.Command {
	last, asJSON := 5, false
	c := &cobra.Command{
		Use:   "why [flags] [SESSION|PATH]",
		Short: "Say what was refused last, why, and what would allow it",
		Long: `Say what a session has refused last, by which rule, why, and what would allow it.
Inside, a guest sees the refusals of its own session. With PATH it learns which
rule hides a place, which the kernel does without a recorded refusal. Outside, the
audit log is read; without SESSION it is the session with the latest refusal.`,
		Example: "  bawn why\n  bawn why ~/Documents/letter\n  bawn why --last 1 --json\n  bawn why k3xr",
		Args:    atMostOneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if last <= 0 {
				return verb.Usage("for example: --last 3", "--last is %d; want 1 or more", last)
			}
			list, err := refusedIn(c, e, strings.Join(args, ""), last)
			if err != nil {
				return err
			}
			if asJSON {
				return verb.WriteJSON(c.OutOrStdout(), list)
			}
			return printReasons(c.OutOrStdout(), list, placeOf(e, args))
		},
	}
	c.Flags().IntVarP(&last, "last", "n", last, "at most `N` refusals")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.ValidArgsFunction = completeSessions(e, func(attach.Entry) bool { return true }, 1)
	verb.CompleteFlags(c, map[string]func() []string{"last": verb.Fixed("1", "20")})
	return c
}

// refusedIn finds the refusals of a session, the newest last.
func refusedIn(c *cobra.Command, e *launch.Env, session string, last int) ([]intent.Reason, error) {
	if launch.Inside(e) == "" {
		return recordedReasons(e, session, last)
	}
	place := placeOf(e, []string{session})
	if session != "" && place == "" {
		return nil, verb.Usage("leave out the session, or name a place by a path with a slash", "a guest learns of its own session alone")
	}
	if !e.Guest() {
		return nil, &verb.Error{Code: verb.ExitDenied, Err: errors.New("this session has no socket at which a guest could ask"), Hint: "your human finds it outside, by \"bawn why\""}
	}
	list, err := shim.Why(c.Context(), last)
	if place != "" {
		list, err = shim.WhyHidden(c.Context(), place)
	}
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return nonNil(list), nil
}

// placeOf is the place that a guest asks about, absolute and links resolved as far as the
// guest can follow them, or "".
func placeOf(e *launch.Env, args []string) string {
	if len(args) == 0 || !strings.Contains(args[0], "/") || launch.Inside(e) == "" {
		return ""
	}
	p, err := filepath.Abs(args[0])
	if err != nil {
		return ""
	}
	for dir, rest := p, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == "/" {
			return p
		}
	}
}

// recordedReasons are those that the audit log has.
func recordedReasons(e *launch.Env, session string, last int) ([]intent.Reason, error) {
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return nil, err
	}
	if session, err = wholeSession(e, dir, session); err != nil {
		return nil, err
	}
	deny, list := bawn.Deny, []intent.Reason{}
	for entry, err := range audit.Query(dir, audit.Filter{Session: session, Verdict: &deny, NewestFirst: true}) {
		if err != nil { // "bawn audit verify" tells of it
			continue
		}
		if session == "" {
			session = entry.Event.Session
		}
		if entry.Event.Session != session || slices.ContainsFunc(list, func(r intent.Reason) bool { return again(&r, &entry.Event) }) {
			continue
		}
		if len(list) == last {
			break
		}
		list = append(list, recordedReason(&entry.Event))
	}
	slices.Reverse(list)
	return list, nil
}

func again(r *intent.Reason, v *bawn.Event) bool {
	return r.Kind == v.Kind && r.Operation == v.Operation && r.Resource == v.Resource && r.Rule == v.Rule
}

func recordedReason(v *bawn.Event) intent.Reason {
	r := intent.Reason{At: v.Time, Times: 1, Kind: v.Kind, Operation: v.Operation, Resource: v.Resource, Rule: v.Rule, Reason: v.Reason, Remedy: v.Details["remedy"]}
	switch {
	case r.Remedy != "":
	case v.Kind == bawn.Command.String():
		r.Remedy = "\"bawn policy explain\" says what would allow it"
	case v.Kind == bawn.Network.String() && v.Rule == guard.RuleApproval:
		r.Remedy = "bawn run --allow " + strings.TrimSuffix(v.Resource, ":443")
	}
	return r
}

// nonNil makes an empty list of none, which JSON tells apart.
func nonNil(list []intent.Reason) []intent.Reason { return append([]intent.Reason{}, list...) }

func printReasons(w io.Writer, list []intent.Reason, place string) error {
	if len(list) == 0 && place != "" {
		_, err := fmt.Fprintf(w, "no rule hides %s\n", redact.Visible(place))
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "nothing was refused")
		return err
	}
	var b strings.Builder
	for _, r := range list {
		times := ""
		if r.Times > 1 {
			times = fmt.Sprintf(", %d times", r.Times)
		}
		fmt.Fprintf(&b, "%s %s (rule %s%s)\n  why:    %s\n", redact.Visible(r.Operation), redact.Visible(r.Resource), redact.Visible(r.Rule), times, redact.Visible(r.Reason))
		if r.Remedy != "" {
			fmt.Fprintf(&b, "  remedy: %s\n", redact.Visible(r.Remedy))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
