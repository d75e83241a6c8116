package relaycli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// A side is one of the two answers.
type side struct {
	verb, short, example string
	verdict              bawnv1.Verdict
	good                 string // the flag of "for good"
	goodHelp             string
}

var (
	approve = side{
		"approve", "Say yes to what a guest asks", "  bawn approve 3f2a\n  bawn approve 3f2a --session\n  bawn approve 3f2a --always",
		bawnv1.Verdict_VERDICT_ALLOW, "always", "from now on, by the rule that \"bawn approvals\" shows",
	}
	deny = side{
		"deny", "Say no to what a guest asks", "  bawn deny 3f2a --why 'use the staging host'\n  bawn deny 3f2a 7cdq\n  bawn deny 3f2a --never",
		bawnv1.Verdict_VERDICT_DENY, "never", "from now on, by the rule that \"bawn approvals\" shows",
	}
)

const answerLong = `%s. A question is named by its ID, or by as much of its
beginning as is unique, four characters or more; "bawn approvals" lists what is
pending.

The exit code is 0 if every answer counts, 1 if another answer came first
or the time is up (the output says which), 2 for an unknown ID, 126 if you may
not answer; a guest never may.`

// scopes are the flags that say how long an answer holds.
type scopes struct{ once, session, good bool }

// scope is that of the flag that is given; SCOPE_UNSPECIFIED leaves it to the question.
func (s scopes) scope(good string) (bawnv1.Scope, error) {
	n := 0
	for _, set := range []bool{s.once, s.session, s.good} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return 0, verb.Usage("say one of them", "--once, --session and --%s exclude each other", good)
	case s.session:
		return bawnv1.Scope_SCOPE_SESSION, nil
	case s.good:
		return bawnv1.Scope_SCOPE_ALWAYS, nil
	case s.once:
		return bawnv1.Scope_SCOPE_ONCE, nil
	}
	return bawnv1.Scope_SCOPE_UNSPECIFIED, nil
}

// usual is how long a plain answer to a question holds, at every frontend: as long as
// its first choice of that verdict, and once if the question is not pending any more.
func usual(list []*bawnv1.Approval, id string, v bawnv1.Verdict) bawnv1.Scope {
	for _, r := range list {
		for _, c := range r.GetChoices() {
			if r.GetId() == id && c.GetVerdict() == v && c.GetScope() != bawnv1.Scope_SCOPE_ALWAYS {
				return c.GetScope()
			}
		}
	}
	return bawnv1.Scope_SCOPE_ONCE
}

func newAnswer(e *Env, s side) *cobra.Command {
	var flags scopes
	var why string
	c := &cobra.Command{
		Use: s.verb + " ID...", Short: s.short, Long: fmt.Sprintf(answerLong, s.short), Example: s.example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return verb.Usage("\"bawn approvals\" lists what is pending", "no question to answer")
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			scope, err := flags.scope(s.good)
			if err != nil {
				return err
			}
			return e.answer(contextOf(c), ids, func(id string) *bawnv1.ApprovalServiceAnswerRequest {
				return &bawnv1.ApprovalServiceAnswerRequest{Id: id, Verdict: s.verdict, Scope: scope, Why: why}
			})
		},
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return e.pendingIDs(contextOf(c)), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := c.Flags()
	f.BoolVar(&flags.once, "once", false, "for this action alone (the default, unless the question says that its answer holds longer)")
	f.BoolVar(&flags.session, "session", false, "for exactly this action until the session ends")
	f.BoolVar(&flags.good, s.good, false, s.goodHelp)
	f.StringVar(&why, "why", "", "`text` for the log, and for the guest where it is a no")
	return c
}

// pendingIDs completes IDs with what they are about.
func (e *Env) pendingIDs(ctx context.Context) (out []string) {
	relay, err := e.reach(ctx, false)
	if err != nil {
		return nil
	}
	list, _ := pending(ctx, relay) // there is nothing to complete then
	for _, r := range list {
		out = append(out, short(r.GetId())+"\t"+what(r))
	}
	return out
}

// answer gives the same answer to all that are named. All are looked up before the
// first is given.
func (e *Env) answer(ctx context.Context, ids []string, to func(id string) *bawnv1.ApprovalServiceAnswerRequest) error {
	relay, err := e.reach(ctx, false)
	if errors.Is(err, ErrNoRelay) {
		return verb.Usage("a session at a terminal asks there; \"bawn serve\" has all of them ask here too", "nothing is pending: no relay runs")
	}
	if err != nil {
		return err
	}
	list, err := pending(ctx, relay)
	if err != nil {
		return err
	}
	full := make([]string, len(ids))
	for i, id := range ids {
		if full[i], err = find(list, strings.ToLower(id)); err != nil {
			return err
		}
		if len(id) < shortest {
			return verb.Usage("write more of it: "+full[i], "%q is too little of an ID: the question that you saw may be over, and another begin so", redact.Visible(id))
		}
	}
	var late []error
	for _, id := range full {
		req := to(id)
		if req.GetScope() == bawnv1.Scope_SCOPE_UNSPECIFIED {
			req.Scope = usual(list, id, req.GetVerdict())
		}
		m, err := relay.Answer(ctx, req)
		switch said := answered(m) + ": " + what(m.GetApproval()); {
		case err != nil:
			return err
		case !m.GetFirst():
			late = append(late, &verb.Error{Code: verb.ExitTooLate, Err: errors.New(said)})
		default:
			fmt.Fprintln(e.Stdout, said)
		}
	}
	return errors.Join(late...)
}

// shortest is how much of an ID is enough for an answer.
const shortest = 4

// idLength is that of a whole ID, which may be of a question that is over.
const idLength = 26

// find returns the one ID that begins so.
func find(list []*bawnv1.Approval, prefix string) (string, error) {
	var found []string
	for _, r := range list {
		if prefix != "" && strings.HasPrefix(r.GetId(), prefix) {
			found = append(found, r.GetId())
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", verb.Usage("write more of it: "+strings.Join(found, ", "), "%d questions begin with %q", len(found), prefix)
	case len(prefix) == idLength:
		return prefix, nil
	}
	return "", verb.Usage("\"bawn approvals\" lists what is pending, \"bawn audit query --kind approval\" what was answered", "no question that is pending begins with %q; it may have been answered or taken back", redact.Visible(prefix))
}
