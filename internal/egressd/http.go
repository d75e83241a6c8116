package egressd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/egress/relay"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/netrule"
	"github.com/bawn-dev/bawn/internal/policy"
)

// requests speaks HTTP with the guest. It is a relay.Handler.
type requests struct {
	session *session
	server  *mitm.Server
}

func newRequests(s *session) *requests {
	r := &requests{session: s}
	r.server = &mitm.Server{
		CA: s.ca, Dial: s.dial, Decide: r.decide, Limited: r.limited, Done: r.done, Remedy: r.remedy, Session: s.config.Session,
		Bindings: s.bindings, Matches: matches, Secrets: s, Offer: r.offer, Sent: s.budgets.send,
		Watched: s.workspace.watched, Leak: r.leak,
	}
	s.masked = r.server.Mask
	return r
}

// Serve speaks with one client.
func (r *requests) Serve(ctx context.Context, conn net.Conn, t relay.Target) error {
	return r.server.Serve(ctx, conn, mitm.Target{Host: t.Host, Port: t.Port, TLS: t.TLS})
}

// matches reports whether a binding is for a host.
func matches(b bawn.Binding, host string, port uint16) bool {
	h, err := netrule.ParseHost(b.Host)
	return err == nil && h.Match(host, port)
}

// decide puts one request to the guard. The connection was decided on before; if
// no rule opens the host, only the request's contents are left to decide on.
func (r *requests) decide(ctx context.Context, req mitm.Request) bawn.Decision {
	lent, budgets := req.Lent(), &r.session.budgets
	budgets.use(lent)
	d := r.judge(ctx, req)
	if d.Verdict != bawn.Allow {
		budgets.back(lent)
	}
	return d
}

func (r *requests) judge(ctx context.Context, req mitm.Request) bawn.Decision {
	s := r.session
	d, ok := r.decideGit(ctx, req)
	carries, over := s.carries(req)
	if !ok && len(carries) == 0 && !s.opened(req.Host, req.Port) {
		return bawn.Decision{Verdict: bawn.Allow, Source: bawn.User, Rule: "isolation:hosts", Reason: "the connection was allowed"}
	}
	if !ok {
		return r.decideCarrying(ctx, req, carries, over)
	}
	return r.told(req, d)
}

// decideCarrying puts a request with its contents to the guard. A yes renews the budgets
// that were shown as used up, and none that others use up meanwhile.
func (r *requests) decideCarrying(ctx context.Context, req mitm.Request, carries, over []string) bawn.Decision {
	s := r.session
	g, e := s.guard, s.event
	g.Decider = deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		return s.decideRequest(ctx, a, req, carries)
	})
	path := req.Readings[0]
	if len(carries) > 0 {
		e.Details = maps.Clone(e.Details)
		if e.Details == nil {
			e.Details = map[string]string{}
		}
		e.Details["path"], path = path, policy.Operation(req.Method, path)
	}
	d := g.Check(ctx, s.action(resource(req, path), append([]string{req.Method}, carries...)...), e)
	if d.Verdict == bawn.Allow {
		s.budgets.renew(over)
	}
	return r.told(req, d)
}

// told tells the human of a refusal.
func (r *requests) told(req mitm.Request, d bawn.Decision) bawn.Decision {
	s := r.session
	if d.Verdict != bawn.Allow {
		s.tell(egress.Denial{Operation: bawn.Connect, Resource: resource(req, req.Readings[0]), Rule: d.Rule, Reason: d.Reason, Remedy: r.remedy(req, d)})
	}
	return d
}

// leak puts a request to the guard again when its body turns out to hold a
// secret.
func (r *requests) leak(ctx context.Context, req mitm.Request) bawn.Decision {
	carries, over := r.session.carries(req)
	return r.decideCarrying(ctx, req, carries, over)
}

// decideRequest judges every path that the host may read in a request; the
// strictest verdict counts.
func (s *session) decideRequest(ctx context.Context, a bawn.Action, req mitm.Request, carries []string) (worst bawn.Decision, err error) {
	if len(req.Header.Values("Destination")) > 0 && s.rules.Opened(req.Host, req.Port) {
		return bawn.Denied("the header Destination names a second path, and no entry of isolation.http can speak of two", policy.RuleHTTP), nil
	}
	a.Args = append([]string{req.Method}, carries...)
	for i, path := range req.Readings {
		a.Resource = resource(req, path)
		d, err := s.inside().Decide(ctx, a)
		if err != nil {
			return d, err
		}
		if i == 0 || d.Verdict < worst.Verdict {
			worst = d
		}
	}
	return worst, nil
}

// limited reports whether the entries that speak of a host permit some reading
// of the request's path for some methods only.
func (r *requests) limited(req mitm.Request) bool {
	entries := slices.Collect(r.session.rules.HTTP(req.Host, req.Port))
	return len(entries) > 0 && slices.ContainsFunc(req.Readings, func(path string) bool {
		return !slices.ContainsFunc(entries, func(e netrule.HTTP) bool { return e.AnyMethod(path) })
	})
}

// action is the guest's request to the network.
func (s *session) action(resource string, args ...string) bawn.Action {
	return bawn.Action{
		Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args,
		Session: s.config.Session, Agent: s.config.Agent, Dir: s.config.Dir, At: now(),
	}
}

// resource is a request as a rule's resource: without its query, which may
// hold what nobody should read in a log.
func resource(req mitm.Request, path string) string {
	host := req.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !(req.Scheme == "https" && req.Port == 443) && !(req.Scheme == "http" && req.Port == 80) {
		host += ":" + strconv.Itoa(int(req.Port))
	}
	return req.Scheme + "://" + host + path
}

func (r *requests) remedy(req mitm.Request, d bawn.Decision) string {
	switch {
	case strings.HasPrefix(d.Rule, policy.RuleGit):
		return fmt.Sprintf("whoever started the session can allow operations of git: bawn run --git \"%s fetch\" or --git \"%[1]s push REPOSITORY REF\"; nothing allows to force or to delete", req.Host)
	case d.Rule == policy.RuleForeign:
		return "the guest brings no credential of its own to a host that is opened: whoever started the session can keep it in the vault (bawn secret set, bawn secret bind) and lend it (bawn run --secret)"
	case d.Rule == policy.RuleLent || d.Rule == policy.RuleOffer || d.Rule == policy.RuleFound || d.Rule == policy.RuleBudget:
		return "it takes the yes of the human who runs this session; go on with what does not need it, and say what is left to do"
	case d.Source == bawn.Managed || d.Source == bawn.User || d.Source == bawn.Project:
		return fmt.Sprintf("a rule of the %s's policy says so; \"bawn policy show\" has it", d.Source)
	}
	remedy := fmt.Sprintf("whoever started the session can allow it: bawn run --http %q", strings.Join([]string{req.Host, req.Method, req.Readings[0]}, " "))
	if d.Rule == guard.RuleApproval {
		remedy += relay.Meanwhile
	}
	return remedy
}

// done records what became of a request.
func (r *requests) done(req mitm.Request, res mitm.Result) {
	s := r.session
	plain := !s.opened(req.Host, req.Port) && res.Err == nil // the connection's end says it all
	denied := res.Decision.Rule != "" && res.Decision.Verdict == bawn.Deny
	if plain || denied { // the guard has recorded a denial
		return
	}
	path := req.Path
	if len(req.Readings) > 0 {
		path = req.Readings[0]
	}
	e := s.event
	e.Time, e.Kind, e.Operation, e.Resource, e.Args = now(), bawn.Network.String(), "end", resource(req, path), []string{req.Method}
	e.Requested, e.Resolved, e.Source, e.Rule = bawn.Allow, bawn.Allow, "rule", res.Decision.Rule
	e.Bytes = res.In + res.Out
	e.Details = map[string]string{"status": strconv.Itoa(res.Status), "bytesIn": strconv.FormatInt(res.In, 10), "bytesOut": strconv.FormatInt(res.Out, 10)}
	if res.Addr.IsValid() {
		e.Details["address"] = res.Addr.String()
	}
	if len(res.Secrets) > 0 { // their names; the log removes anything called secret
		e.Details["lent"] = strings.Join(slices.Sorted(slices.Values(res.Secrets)), " ")
	}
	if res.Err != nil {
		e.Reason = res.Err.Error()
	}
	var refusal *mitm.Refusal
	switch {
	case !errors.As(res.Err, &refusal):
	case res.Status < http.StatusInternalServerError:
		e.Resolved, e.Rule = bawn.Deny, "builtin:egress-"+refusal.Rule
		s.tell(egress.Denial{Operation: bawn.Connect, Resource: e.Resource, Rule: e.Rule, Reason: refusal.Reason, Remedy: refusal.Remedy})
	case refusal.Remedy != "": // as for a connection that could not be made
		s.tell(egress.Denial{Operation: bawn.Connect, Resource: e.Resource, Rule: relay.RuleFailed, Reason: refusal.Reason, Remedy: refusal.Remedy})
	}
	if e.Resolved != bawn.Allow { // nobody else has recorded that
		_ = s.events.Record(context.Background(), e) // a log that takes nothing denies the next request
		return
	}
	s.ended(e)
}
