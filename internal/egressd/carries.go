package egressd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/policy"
)

// carries says what a request has in it besides what it asks for, as the policy's
// arguments. Of a credential of the guest's own it says a digest with a key of the
// session's: a yes to one is no yes to another, and the log has no value.
func (s *session) carries(req mitm.Request) []string {
	var foreign []string
	for _, c := range req.Foreign {
		foreign = append(foreign, c.Where+"#"+s.digest(c.Value))
	}
	lent := slices.Sorted(slices.Values(req.Secrets))
	return policy.Carries(lent, foreign, req.Found, s.budgets.over(lent))
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

// longPart is how long a part of a path is at least that is taken for an identity
// where digits are in it.
const longPart = 16

// operation is the path of a request without what tells one thing from another of
// its kind: that is what a yes to a lent secret holds for. Of a request that only
// reads it is the whole host.
func operation(method, path string) string {
	if method == "GET" || method == "HEAD" || method == "OPTIONS" {
		return "/"
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if identity(p) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// identity reports whether a part of a path is a number, a digest or the like.
func identity(part string) bool {
	digits, hexadecimal := 0, 0
	for _, c := range part {
		if c >= '0' && c <= '9' {
			digits++
		}
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == '-' {
			hexadecimal++
		}
	}
	return digits > 0 && (digits == len(part) || hexadecimal == len(part) && len(part) >= 7 || len(part) >= longPart)
}
