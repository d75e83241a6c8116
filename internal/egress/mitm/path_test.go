package mitm

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/bawn-dev/bawn"
)

func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		path string
		want []string // nil: refused
	}{
		{"/", []string{"/"}},
		{"/repos/a/b", []string{"/repos/a/b"}},
		{"/repos/a/", []string{"/repos/a/"}},
		{"/a%20b", []string{"/a b"}},
		{"/file%2etxt", []string{"/file.txt"}},
		{"/%E4%BD%A0", []string{"/你"}},
		{"/compare/main...next", []string{"/compare/main...next"}},
		{"/v2/x/manifests/sha256:ab", []string{"/v2/x/manifests/sha256:ab"}},
		{"/pool/g++_4%3a5.2~rc", []string{"/pool/g++_4:5.2~rc"}},
		{"/@babel%2fcore", []string{"/@babel/core", "/@babel%2Fcore"}},
		{"/projects/a%2Fb/issues", []string{"/projects/a/b/issues", "/projects/a%2Fb/issues"}},
		{"/admin;x=1", []string{"/admin;x=1", "/admin"}},
		{"/admin%3Bx", []string{"/admin;x", "/admin"}},
		{"/admin%3fx/public", []string{"/admin?x/public", "/admin"}},
		{"/a;b%3fc/d", []string{"/a;b?c/d", "/a/d", "/a;b", "/a"}},
		{"/admin%23x", []string{"/admin#x", "/admin"}},
		{"/100%2525", nil},
		{"/repos/../admin", nil},
		{"/repos/%2e%2e/admin", nil},
		{"/repos/.%2E/admin", nil},
		{"/repos/..", nil},
		{"/repos/./admin", nil},
		{"/repos/..%2fadmin", nil},
		{"/repos%2f..%2fadmin", nil},
		{"/repos/..;/admin", nil},
		{"/repos/..;x=y/admin", nil},
		{"/repos/.;/admin", nil},
		{"/repos/..%3b/admin", nil},
		{"/;/admin", nil},
		{"//admin", nil},
		{"/repos//admin", nil},
		{"/repos/%2fadmin", nil},
		{"/%2f", nil},
		{"/repos/..%20/admin", nil},
		{`/repos\..\admin`, nil},
		{"/repos/%5c..%5cadmin", nil},
		{"/repos/%5Cadmin", nil},
		{"/repos/%252e%252e/admin", nil},
		{"/repos%252fadmin", nil},
		{"/repos%255cadmin", nil},
		{"/a%00b", nil},
		{"/a%0d%0ab", nil},
		{"/a%7fb", nil},
		{"/%c0%ae%c0%ae/admin", nil},
		{"/%ff", nil},
		{"/．．/admin", nil},
		{"/a／b", nil},
		{"/\uFE52\uFE52/admin", nil},
		{"/%EF%B9%92%EF%B9%92/admin", nil},
		{"/..\uFE68admin", nil},
		{"/a\u2026/admin", nil},
		{"/\u2025/admin", nil},
		{"/a\uFF05/b", nil},
		{"/a\uFF1Bb", nil},
		{"/..\u2216admin", nil},
		{"/..\u00A5admin", nil},
		{"/..%c2%a0/admin", nil},
		{"/..%e2%80%8b/admin", nil},
		{"/.%cc%81./admin", nil},
		{"/%e3%80%80/admin", nil},
		{"/caf\u00e9.txt", []string{"/caf\u00e9.txt"}},
		{"/..\u20E5admin", nil},
		{"/a\u066A2fb", nil},
		{"/col\u00B7lecci\u00F3/\u30FB", []string{"/col\u00B7lecci\u00F3/\u30FB"}},
		{"/cafe\u0301.txt", []string{"/cafe\u0301.txt", "/caf\u00e9.txt"}},
		{"/\uFF76\uFF85", []string{"/\uFF76\uFF85", "/\u30AB\u30CA"}},
		{"/\uFF41dmin", []string{"/\uFF41dmin", "/admin"}},
		{"/con\uFB01g", []string{"/con\uFB01g", "/config"}},
		{"/a%zz", nil},
		{"/a%2", nil},
		{"/public%3f/../admin", nil},
		{"", nil},
		{"admin", nil},
		{"*", nil},
	} {
		got, err := readings(tt.path)
		if !slices.Equal(got, tt.want) || (err != nil) != (tt.want == nil) {
			t.Errorf("readings(%q) = %q, %v; want %q", tt.path, got, err, tt.want)
		}
	}
}

// A rule that is asked about every reading can't be walked around: the server
// is never reached at /admin.
func TestPathsReachWhatWasDecided(t *testing.T) {
	var seen saw
	r := newRawRig(t, seen.recorder, func(r *rig) {
		r.Decide = func(_ context.Context, q Request) bawn.Decision {
			for _, p := range q.Readings {
				if !strings.HasPrefix(p, "/public/") {
					return bawn.Denied("not public", "")
				}
			}
			return bawn.Decision{Verdict: bawn.Allow}
		}
	})
	for sent, want := range map[string]string{
		"/public/a%20b;v=1/c%2Fd?x=/../y": "200", // the control: passes byte for byte
		"/public/../admin":                "400",
		"/public/%2e%2e/admin":            "400",
		"/public/..;/admin":               "400",
		"/admin":                          "403",
		"/admin;/public/":                 "403",
		"/admin%3f/public/":               "403",
	} {
		if got := statusCodes(r.raw("GET " + sent + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")); got != want {
			t.Errorf("%s: %s, want %s", sent, got, want)
		}
	}
	if got := seen.String(); !strings.HasPrefix(got, "GET /public/a%20b;v=1/c%2Fd?x=/../y HTTP/1.1\r\n") || strings.Count(got, "GET ") != 1 {
		t.Errorf("the server got %q", got)
	}
}

// FuzzReadings compares with what servers make of the bytes that are sent: Go's
// router, a server that cleans the unescaped path, one that also drops
// parameters, one that cleans before it unescapes.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{"/", "/a/b", "/a%2fb", "/a/../b", "/a;x/b", "//a", "/%2e", "/a%252e%252e/b", "/a?b", "/a%3fb#c", "/a/\uFE52\uFE52/b", "/%e2%80%a6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.ParseRequestURI(uri)
		if err != nil || !strings.HasPrefix(uri, "/") {
			return
		}
		sent := u.EscapedPath()
		got, err := readings(sent)
		if err != nil {
			return
		}
		again, err := url.ParseRequestURI((&url.URL{Path: u.Path, RawPath: u.RawPath}).RequestURI())
		if err != nil || again.EscapedPath() != sent {
			t.Fatalf("%q is sent as %q and read as %v, %v", uri, sent, again, err)
		}
		for _, p := range got {
			if folded := norm.NFKC.String(p); path.Clean(folded) != strings.TrimSuffix(folded, "/") && folded != "/" {
				t.Errorf("%q: a server that normalizes %q walks to %q", sent, folded, path.Clean(folded))
			}
		}
		for name, seen := range servers(again) {
			if !slices.Contains(got, seen) && !slices.Contains(got, seen+"/") {
				t.Errorf("%q: %s sees %q, the readings are %q", sent, name, seen, got)
			}
		}
	})
}

func servers(u *url.URL) map[string]string {
	out := map[string]string{"a cleaning server": path.Clean(u.Path)}
	parameters := strings.Split(u.Path, "/")
	for i, s := range parameters {
		parameters[i], _, _ = strings.Cut(s, ";")
	}
	out["a servlet container"] = path.Clean(strings.Join(parameters, "/"))
	if unescaped, err := url.PathUnescape(path.Clean(u.EscapedPath())); err == nil {
		out["one that cleans first"] = path.Clean(unescaped)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { out["Go's router"] = path.Clean(r.URL.Path) })
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, &http.Request{Method: "GET", URL: u, Host: host})
	if to := rec.Header().Get("Location"); to != "" {
		out["Go's router, by redirect"] = to
	}
	return out
}
