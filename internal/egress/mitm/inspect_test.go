package mitm

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestInspectedIsSent: what reaches the host is what was judged, all of it and
// nothing else; what the judge has read does not go missing, and what it has
// not put into the request does not follow.
func TestInspectedIsSent(t *testing.T) {
	for name, tt := range map[string]struct {
		judge func(*http.Request) error
		want  string
	}{
		"not read":    {func(*http.Request) error { return nil }, "firstsecond"},
		"read, again": {func(r *http.Request) error { return again(r, 5, "") }, "firstsecond"},
		"replaced":    {func(r *http.Request) error { return again(r, 11, "other") }, "other"},
		"cut":         {func(r *http.Request) error { return again(r, 5, "first") }, "first"},
	} {
		for _, h2 := range []bool{false, true} {
			var seen saw
			r := newRig(t, http.HandlerFunc(seen.describe), func(r *rig) {
				r.Decide = func(_ context.Context, q Request) bawn.Decision {
					if err := q.Inspect(tt.judge); err != nil {
						return bawn.Denied(err.Error(), "test")
					}
					return bawn.Decision{Verdict: bawn.Allow}
				}
			})
			res, _ := r.do(r.client(h2), request(t, "POST", r.url("/"), io.MultiReader(strings.NewReader("first"), strings.NewReader("second")), "Content-Encoding", "odd"))
			if got := seen.String(); res.StatusCode != 200 || !strings.Contains(got, ` body="`+tt.want+`"`) || strings.Contains(got, "Content-Encoding") != (tt.want == "firstsecond") {
				t.Errorf("%s: %d, the host got %s", name, res.StatusCode, got)
			}
		}
	}
}

// again reads n bytes and puts with in the place of the body, or where that is
// empty what was read and the rest.
func again(r *http.Request, n int64, with string) error {
	read, err := io.ReadAll(io.LimitReader(r.Body, n))
	under := r.Body
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(read)), under))
	if with != "" {
		r.Header.Del("Content-Encoding")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(with)), -1
	}
	return err
}
