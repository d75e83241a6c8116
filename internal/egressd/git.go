package egressd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/policy"
)

// maxPacks is how many packs of pushes a session has looked at at a time: each
// may take 64 MiB of memory and a GiB of a file.
const maxPacks = 4

// gitRules are the git entries that speak of a host.
func (s *session) gitRules(host string, port uint16) (rules []git.Rule) {
	for e := range s.rules.Git(host, port) {
		rules = append(rules, git.Rule{User: e.User(), Rooted: e.Rooted(), Push: e.Push(), Repo: e.Repo(), Ref: e.Refs()})
	}
	return rules
}

// decideGit puts a request to the guard if it is one of git's to a host that
// git entries speak of; it reports false where it is not. Plain HTTP is no way
// around entries of the port of TLS. A yes renews budgets as in decideCarrying.
func (r *requests) decideGit(ctx context.Context, req mitm.Request) (bawn.Decision, bool) {
	s := r.session
	rules := s.gitRules(req.Host, req.Port)
	if len(rules) == 0 && req.Port == 80 {
		rules = s.gitRules(req.Host, 443)
	}
	if len(rules) == 0 {
		return bawn.Decision{}, false
	}
	var op git.Operation
	inspector := s.inspector
	inspector.Early = s.hopeless(rules)
	err := req.Inspect(func(in *http.Request) (err error) {
		op, err = inspector.HTTP(in)
		return err
	})
	if err == nil && op.Kind == git.None {
		return bawn.Decision{}, false
	}
	carries, over := s.carries(req)
	d := s.checkGit(ctx, resource(req, "/"+op.Repo+".git"), op, err, rules, carries...)
	if d.Verdict == bawn.Allow {
		s.budgets.renew(over)
	}
	return d, true
}

// hopeless refuses a push that no rule allows and no human can allow, before its
// pack is read.
func (s *session) hopeless(rules []git.Rule) func(git.Operation) error {
	return func(op git.Operation) error {
		ok, why := git.Allow(op, rules)
		if !ok && s.asking() {
			why = git.Never(op)
		}
		if why != "" {
			return errors.New(why)
		}
		return nil
	}
}

// asking reports whether somebody could answer a question of this session.
func (s *session) asking() bool {
	p, ok := s.guard.Approver.(*pending)
	return ok && p.can()
}

// checkGit puts what git would do to the guard. A request that could not be
// understood is denied with why.
func (s *session) checkGit(ctx context.Context, resource string, op git.Operation, unread error, rules []git.Rule, carries ...string) bawn.Decision {
	g := s.guard
	g.Decider = deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		if unread != nil {
			return bawn.Denied(unread.Error(), policy.RuleGit), nil
		}
		return s.decideGit(ctx, a, op, rules, carries)
	})
	if op.Discovery && op.Kind == git.Push && slices.ContainsFunc(carries, policy.Offers) {
		op.Updates = anyRef // a yes is for the push that begins here
	}
	args := slices.Concat(gitArgs(op), policy.SSHPlace(op.User, op.Rooted, op.Repo), carries)
	return g.Check(ctx, s.action(resource, args...), s.event)
}

// anyRef stands for the refs of a push that are known only later.
var anyRef = []git.Update{{Ref: "refs/*"}}

// decideGit lets rules decide, and the policy, which may ask about unlisted
// operations. It asks about no store of large files, and not as another user or
// from another root than a rule says.
func (s *session) decideGit(ctx context.Context, a bawn.Action, op git.Operation, rules []git.Rule, carries []string) (bawn.Decision, error) {
	ok, why := git.Allow(op, rules)
	if !ok && s.asking() && !op.LFS {
		if never := git.Never(op); never != "" {
			return bawn.Denied(never, policy.RuleGit), nil
		}
	} else if !ok {
		return bawn.Denied(why, policy.RuleGit), nil
	}
	reads := len(op.Updates) == 0 // a push begins with reading refs; those that it moves come later
	if reads {
		a.Args = slices.Concat([]string{"fetch"}, policy.SSHPlace(op.User, op.Rooted, op.Repo), carries)
	}
	d, err := s.inside().Decide(ctx, a)
	if !ok && !reads && d.Verdict == bawn.Allow && !op.Discovery {
		return bawn.Denied(why, policy.RuleGit), err
	}
	return d, err
}

// gitArgs is an operation as an action's arguments: "fetch", or "push" with
// each ref that it would move.
func gitArgs(op git.Operation) []string {
	args := []string{strings.ToLower(op.Kind.String())}
	for _, u := range op.Updates {
		args = append(args, u.Ref)
	}
	return slices.Clip(args)
}

// gitRemedy says what would allow a git operation.
func gitRemedy(host string, a []string, repo string) string {
	if len(a) > 1 {
		return fmt.Sprintf("whoever started the session can allow it: bawn run --git %q; nothing allows to force or to delete", host+" push "+repo+" "+a[1])
	}
	return fmt.Sprintf("whoever started the session can allow it: bawn run --git %q", host+" fetch "+repo)
}
