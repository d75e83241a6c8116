package mitm

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// offers has the server offer the rig's secret in a place, which the guest holds no
// placeholder of.
func offers(place bawn.Place, name string, verdict bawn.Verdict) func(*rig) {
	return func(r *rig) {
		bind(place, name)(r)
		b := r.Bindings[0]
		r.Bindings = nil
		r.Offer = func(context.Context, Request) (bawn.Binding, bool) { return b, true }
		decide := r.Decide
		r.Decide = func(ctx context.Context, q Request) bawn.Decision {
			d := decide(ctx, q)
			if q.Offered != "" {
				d.Verdict = verdict
			}
			return d
		}
	}
}

// TestOffer: a secret that is offered goes with a request that brings no credential, after
// a yes; a value that comes back is hidden.
func TestOffer(t *testing.T) {
	for _, tt := range []struct {
		place  bawn.Place
		name   string
		header []string // of the guest
		want   string   // at the server
	}{
		{bawn.Bearer, "", nil, "Bearer " + value}, {bawn.Basic, "alice", nil, basic("alice", value)}, {bawn.Basic, "", nil, basic("x-access-token", value)},
		{bawn.Header, "X-Key", nil, value}, {bawn.InQuery, "api key", nil, value},
		{bawn.Bearer, "", []string{"Authorization", "Bearer mine"}, "Bearer mine"}, {bawn.Bearer, "", []string{"X-Api-Key", "mine"}, ""},
	} {
		for _, verdict := range []bawn.Verdict{bawn.Allow, bawn.Deny} {
			var got *http.Request
			r := newRig(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				got = q
				_, _ = w.Write([]byte(q.Header.Get("Authorization") + q.URL.RawQuery))
			}), offers(tt.place, tt.name, verdict))
			res, body := r.do(r.client(false), request(t, "POST", r.url("/x?q=1"), strings.NewReader("y"), tt.header...))
			switch offered := tt.header == nil; {
			case strings.Contains(body, value):
				t.Errorf("%v: the guest got the value", tt.place)
			case offered && verdict == bawn.Deny:
				if got != nil || res.StatusCode != 403 {
					t.Errorf("%v: after a no: %d", tt.place, res.StatusCode)
				}
			case got == nil || res.StatusCode != 200:
				t.Errorf("%v: %d %q", tt.place, res.StatusCode, body)
			case tt.place == bawn.InQuery:
				if got.URL.Query().Get(tt.name) != tt.want || got.URL.Query().Get("q") != "1" {
					t.Errorf("%v: the server got %q; want the secret besides what the guest asked", tt.place, got.URL.RawQuery)
				}
			case tt.place == bawn.Header && got.Header.Get("X-Key") != tt.want, tt.place != bawn.Header && got.Header.Get("Authorization") != tt.want:
				t.Errorf("%v %v: the server got %v; want %q", tt.place, tt.header, got.Header, tt.want)
			}
		}
	}
}
