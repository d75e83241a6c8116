package egressd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/policy"
)

// carries returns the contents of a request besides its target, as the policy's
// arguments, and the secrets whose budget is used up. A credential of the guest's own appears as a digest with a key of the
// session's. So a yes to one is no yes to another, and the log has no value.
func (s *session) carries(req mitm.Request) (all, over []string) {
	var foreign []string
	for _, c := range req.Foreign {
		foreign = append(foreign, c.Where+"#"+s.digest(c.Value))
	}
	lent := slices.Sorted(slices.Values(req.Secrets))
	var offered []string
	if req.Offered != "" {
		offered = []string{req.Offered}
	}
	over = s.budgets.over(append(lent, offered...))
	return policy.Carries(policy.Carried{Lent: lent, Foreign: foreign, Found: req.Found, Over: over, Offered: offered}), over
}

// digest tells values apart without saying them.
func (s *session) digest(value string) string {
	h := hmac.New(sha256.New, s.key[:])
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// inside decides on what happens on a connection that has been allowed.
func (s *session) inside() bawn.Decider {
	if s.within != nil {
		return s.within
	}
	return s.guard.Decider
}
