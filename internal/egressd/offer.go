package egressd

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/secrets"
)

// offers are the vault's secrets that were not lent, read on first use.
type offers struct {
	once     sync.Once
	vault    *secrets.Vault
	own      bool // the vault was opened for this
	bindings []bawn.Binding
}

func (o *offers) close() {
	o.once.Do(func() {})
	if o.own {
		o.vault.Close()
	}
}

// offer finds a secret of the vault that is bound to a request's host and was not lent to
// the session. It applies where the request needs one: a push that begins, or a change
// that asks the human anyway. The secret is put in after a yes that names it.
func (r *requests) offer(ctx context.Context, req mitm.Request) (bawn.Binding, bool) {
	s := r.session
	if req.Scheme != "https" || len(req.Secrets)+len(req.Foreign) > 0 || !s.asking() || !s.opened(req.Host, req.Port) {
		return bawn.Binding{}, false
	}
	if s.agents(req) || !pushes(req) && !r.asksAbout(ctx, req) {
		return bawn.Binding{}, false
	}
	return s.unlent(ctx, req)
}

// agents reports whether the agent logs in at the host by itself.
func (s *session) agents(req mitm.Request) bool {
	if s.own == nil {
		return false
	}
	_, own := s.own.Match(req.Host, req.Port)
	return own
}

// pushes reports whether a request is one of git's push over HTTP.
func pushes(req mitm.Request) bool {
	const service = "git-receive-pack"
	return strings.HasSuffix(req.Path, "/"+service) || strings.HasSuffix(req.Path, "/info/refs") && req.Query == "service="+service
}

// asksAbout reports whether a request changes something and asks as it is.
func (r *requests) asksAbout(ctx context.Context, req mitm.Request) bool {
	s := r.session
	if reads := req.Method == "GET" || req.Method == "HEAD" || req.Method == "OPTIONS"; reads || len(s.gitRules(req.Host, req.Port)) > 0 && gitPath(req.Path) {
		return false
	}
	carries, _ := s.carries(req)
	d, err := s.decideRequest(ctx, s.action(resource(req, req.Readings[0]), req.Method), req, carries)
	return err == nil && d.Verdict == bawn.Ask
}

// gitPath reports whether only git asks for such a path.
func gitPath(path string) bool {
	return strings.HasSuffix(path, "/git-upload-pack") || strings.Contains(path, "/info/lfs/")
}

// unlent is the first binding of the vault for a host whose value can be had, Basic
// before others for git, which knows nothing else.
func (s *session) unlent(ctx context.Context, req mitm.Request) (bawn.Binding, bool) {
	v, all := s.wholeVault()
	var fit []bawn.Binding
	for _, b := range all {
		if b.Place != bawn.Signed && (b.Place != bawn.InQuery || !pushes(req)) && matches(b, req.Host, req.Port) && !slices.Contains(s.config.Egress.Secrets, b.Secret) {
			fit = append(fit, b)
		}
	}
	if pushes(req) {
		slices.SortStableFunc(fit, func(a, b bawn.Binding) int { return basicLast(b) - basicLast(a) })
	}
	for _, b := range fit {
		if _, err := v.Bindings(ctx, []string{b.Secret}); err == nil { // the human is not asked for what then fails
			return b, true
		}
	}
	return bawn.Binding{}, false
}

func basicLast(b bawn.Binding) int {
	if b.Place == bawn.Basic {
		return 1
	}
	return 0
}

// wholeVault opens the vault when a secret is first looked for that was not lent. Without
// one, or where it can't be read, nothing is offered.
func (s *session) wholeVault() (*secrets.Vault, []bawn.Binding) {
	s.offers.once.Do(func() {
		if s.offers.vault = s.vault; s.vault == nil {
			v, err := s.open()
			if err != nil {
				return
			}
			s.offers.vault, s.offers.own = v, true
		}
		list, err := s.offers.vault.List()
		if err != nil {
			return
		}
		for _, e := range list {
			s.offers.bindings = append(s.offers.bindings, e.Bindings...)
		}
		if s.offers.bindings, err = ofZone(s.offers.bindings, s.config.Zone, s.config.Models); err != nil {
			s.offers.bindings = nil
		}
	})
	return s.offers.vault, s.offers.bindings
}

// Lend is mitm's source of values: the vault's lent secrets, or the offered ones.
func (s *session) Lend(ctx context.Context, session string, b bawn.Binding) (bawn.Secret, error) {
	if s.vault != nil {
		return s.vault.Lend(ctx, session, b)
	}
	v, _ := s.wholeVault()
	if v == nil {
		return bawn.Secret{}, errNoVault
	}
	return v.Lend(ctx, session, b)
}
