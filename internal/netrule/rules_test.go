package netrule

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

func itoa(n int) string { return strconv.Itoa(n) }

func mustHTTP(t testing.TB, s string) HTTP {
	t.Helper()
	h, err := ParseHTTP(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustGit(t testing.TB, s string) Git {
	t.Helper()
	g, err := ParseGit(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestParseHTTP(t *testing.T) {
	for in, want := range map[string]string{
		"api.example.org GET /":                              "api.example.org GET /",
		"api.example.org  POST,GET,GET\t/v1/**":              "",
		"api.example.org  POST,GET,GET   /v1/**":             "api.example.org GET,POST /v1/**",
		"*.example.org:443 * /**":                            "*.example.org:443 * /**",
		"10.0.0.1:80 M-SEARCH,VERSION_1 /a/*/b*c/**/d\u00e9": "10.0.0.1:80 M-SEARCH,VERSION_1 /a/*/b*c/**/d\u00e9",
		"h PUT /a/": "h PUT /a/",
	} {
		h, err := ParseHTTP(in)
		if (err != nil) != (want == "") || h.String() != want && want != "" {
			t.Errorf("ParseHTTP(%q) = %q, %v; want %q", in, h, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "has 0 parts", "h GET": "has 2 parts", "h GET /a b": "has 4 parts", "h get /": `write "GET"`, "h G@T /": "is invalid", "h GET, /": "is invalid", "h *,GET /": "is invalid",
		"h CONNECT /": "makes a tunnel", "h GET a": `begins with "/"`, "h GET *": `begins with "/"`, "h GET /a?b": "a query", "h GET /#": "a query", "h GET /%2e": "without escapes",
		"h GET /a//b": "empty segment", "h GET //": "empty segment", "h GET /a/../b": `".."`, "h GET /./": `".."`, "h GET /***": "across them", `h GET /a\b`: "backslash", "h GET /\x7f": "no control character",
		"h GET /\xff": "no pattern", "H GET /": `write "h"`, "* GET /": "every host", "h GET /" + strings.Repeat("a", 1024): "at most 1024", "h " + strings.Repeat("A", 33) + " /": "is invalid",
	} {
		if h, err := ParseHTTP(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseHTTP(%q) = %q, %v; want a refusal with %q", in, h, err, want)
		}
	}
}

func TestHTTPMatch(t *testing.T) {
	for _, tt := range []struct {
		entry, method, path string
		want                bool
	}{
		{"h GET /", "GET", "/", true},
		{"h GET /", "GET", "/a", false},
		{"h GET /", "POST", "/", false},
		{"h GET /", "get", "/", false},
		{"h * /**", "DELETE", "/a/b", true},
		{"h * /**", "CONNECT", "/a/b", false},
		{"h * /**", "", "/a", false},
		{"h * /**", "GET /", "/a", false},
		{"h * /**", "GET", "/", true},
		{"h * /**", "GET", "", false},
		{"h * /**", "GET", "a", false},
		{"h * /**", "GET", "/a\nb", false},
		{"h * /**", "GET", "/a\x01b", false},
		{"h * /*", "GET", "/a", true},
		{"h * /*", "GET", "/a/b", false},
		{"h * /*", "GET", "/a/", false},
		{"h * /a/**", "GET", "/a/", true},
		{"h * /a/**", "GET", "/a", false},
		{"h * /a/**", "GET", "/ab", false},
		{"h * /a/*/c", "GET", "/a/b/c", true},
		{"h * /a/*/c", "GET", "/a/b/b/c", false},
		{"h * /a/**/c", "GET", "/a/b/b/c", true},
		{"h * /a/**/c", "GET", "/a/c", false},
		{"h * /*.js", "GET", "/a.js.js", true},
		{"h * /*a/b*c", "GET", "/xa/bac", true},
		{"h * /*a/b*c", "GET", "/xa/ba/c", false},
		{"h * /**x*y", "GET", "/a/x/bxcy", true},
		{"h * /*", "GET", "/*", true},
		{"h * /a", "GET", "/*", false},
	} {
		if got := mustHTTP(t, tt.entry).Match("h", 443, tt.method, tt.path); got != tt.want {
			t.Errorf("%q permits %s %s: %t; want %t", tt.entry, tt.method, tt.path, got, tt.want)
		}
	}
	if h := mustHTTP(t, "h GET /"); h.Match("g", 443, "GET", "/") || h.Match("h", 22, "GET", "/") || h.Host().String() != "h" {
		t.Error("the host does not count")
	}
}

func TestParseGit(t *testing.T) {
	for _, in := range []string{
		"github.com fetch", "github.com fetch team/*", "github.com push team/app refs/heads/agent/*", "git.corp:2222,8443 fetch", "*.corp push ** refs/**", "github.com:22 fetch",
		"me@git.corp fetch", "me.x@git.corp:2222 push /srv/git/* refs/heads/*", "git.corp fetch /**", "git.corp fetch /srv/git/*",
	} {
		if g, err := ParseGit(in); err != nil || g.String() != in {
			t.Errorf("ParseGit(%q) = %q, %v", in, g, err)
		}
	}
	if g := mustGit(t, "github.com:443,22 fetch **"); g.String() != "github.com fetch" || g.Push() || g.Host().Ports().String() != "22,443" {
		t.Errorf("got %q", g)
	}
	if g := mustGit(t, "git@h fetch a"); g.String() != "h fetch a" || g.User() != "git" || g.Rooted() {
		t.Errorf("got %q of %q", g, g.User())
	}
	if g := mustGit(t, "me@h fetch /a"); g.User() != "me" || !g.Rooted() || g.Repo() != "a" {
		t.Errorf("got %q of %q", g, g.User())
	}
	for in, want := range map[string]string{
		"": "HOST fetch", "github.com": "HOST fetch", "github.com clone": "HOST fetch", "github.com push": "HOST fetch", "github.com push a": "HOST fetch", "github.com fetch a b": "HOST fetch",
		"github.com fetch //a": `without "/"`, "-a@github.com fetch": "user", "@github.com fetch": "user", "a b@github.com fetch": "git rule", "a@b@github.com fetch": "host", "me@github.com fetch /~a": `without "/"`, "github.com fetch a/": `without "/"`, "github.com fetch a.git": `without ".git"`, "github.com fetch a/../b": `without "/"`, "github.com fetch ~a": `without "/"`,
		"github.com fetch a%2e": `without "/"`, "github.com fetch a***": "across them", "github.com push a main": "refs/heads/main", "github.com push a heads/x": "refs/heads/x", "github.com push a *": "refs/**",
		"github.com push a **": "refs/**", "github.com push a refs/": `begins with "refs/"`, "github.com push a refs/../x": `".."`, "GitHub.com fetch": `write "github.com"`, "github.com fetch \x00": "control character",
		"github.com push a refs/\u2028": "", "github.com push a/ refs/x": `without "/"`,
	} {
		g, err := ParseGit(in)
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ParseGit(%q) = %q, %v; want a refusal with %q", in, g, err, want)
		}
	}
}

func TestGitMatch(t *testing.T) {
	fetch, push := mustGit(t, "h fetch team/*"), mustGit(t, "h push team/app refs/heads/agent/*")
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"a repository that is named", fetch.Fetches("h", 443, "team/x"), true},
		{"over ssh", fetch.Fetches("h", 22, "team/x"), true},
		{"over http", fetch.Fetches("h", 80, "team/x"), false},
		{"another host", fetch.Fetches("g", 443, "team/x"), false},
		{"another team", fetch.Fetches("h", 443, "other/x"), false},
		{"deeper", fetch.Fetches("h", 443, "team/x/y"), false},
		{"fetch is no push", fetch.Pushes("h", 443, "team/x", "refs/heads/agent/1"), false},
		{"push", push.Pushes("h", 443, "team/app", "refs/heads/agent/1"), true},
		{"push implies fetch", push.Fetches("h", 443, "team/app"), true},
		{"another ref", push.Pushes("h", 443, "team/app", "refs/heads/main"), false},
		{"a deeper ref", push.Pushes("h", 443, "team/app", "refs/heads/agent/a/b"), false},
		{"another repository", push.Pushes("h", 443, "team/x", "refs/heads/agent/1"), false},
		{"no ref", push.Pushes("h", 443, "team/app", ""), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %t; want %t", tt.name, tt.got, tt.want)
		}
	}
}

// TestGitPlaces: an entry for one user or place covers no other, and what both
// of two permit is no more than either does.
func TestGitPlaces(t *testing.T) {
	for _, tt := range []struct {
		a, b   string
		covers bool
		meet   string // "" is nothing
	}{
		{"h fetch a", "h fetch a", true, "h fetch a"},
		{"h fetch", "h fetch /a", true, "h fetch /a"},
		{"h fetch /a", "h fetch", false, "h fetch /a"},
		{"h fetch /**", "h fetch a", false, ""},
		{"h fetch a", "h fetch /a", false, ""},
		{"h fetch", "me@h fetch", false, ""},
		{"me@h fetch", "h fetch a", false, ""},
		{"me@h fetch", "me@h push /a refs/**", false, "me@h fetch /a"},
		{"me@h push /* refs/**", "me@h push /a refs/x", true, "me@h push /a refs/x"},
	} {
		a, b := mustGit(t, tt.a), mustGit(t, tt.b)
		m, ok := a.Meet(b)
		if got := a.Covers(b); got != tt.covers || ok != (tt.meet != "") || ok && m.String() != tt.meet {
			t.Errorf("%q, %q: covers %t, meet in %q, %t", tt.a, tt.b, got, m, ok)
		}
	}
}

func TestRepository(t *testing.T) {
	for in, want := range map[string]string{"/team/app.git": "team/app", "team/app": "team/app", "/team/app.git/": "team/app", "a": "a", "/.gitx": ".gitx"} {
		if got, ok := Repository(in); !ok || got != want {
			t.Errorf("Repository(%q) = %q, %t; want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "/", "//", "/.git", "//a", "/a//b", "/a/../b", "a/.", "..", "~a/b", "/~a", "a b", "a\x00", "a%2fb", `a\b`, "\u00e9", "a/.git", "a//"} {
		if got, ok := Repository(in); ok || got != "" {
			t.Errorf("Repository(%q) = %q; want a refusal", in, got)
		}
	}
}

// drawGlob draws patterns and texts over an alphabet so small that they meet.
var drawGlob = rapid.Custom(func(t *rapid.T) string {
	s := "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", "*", "**"}), 0, 6).Draw(t, "parts"), "")
	for _, bad := range []string{"//", "***"} {
		for strings.Contains(s, bad) {
			s = strings.ReplaceAll(s, bad, bad[1:])
		}
	}
	return s
})

// paths are all texts of up to five letters.
var paths = func() []string {
	all, last := []string{}, []string{""}
	for range 6 {
		var next []string
		for _, p := range last {
			for _, c := range []string{"a", "b", "/"} {
				next = append(next, p+c)
			}
		}
		all, last = append(all, last...), next
	}
	var out []string
	for _, p := range all {
		out = append(out, "/"+p)
	}
	return out
}()

// slow is the definition of a glob, read aloud.
func slow(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case strings.HasPrefix(pattern, "**"):
		return slow(pattern[2:], text) || text != "" && slow(pattern, text[1:])
	case pattern[0] == '*':
		return slow(pattern[1:], text) || text != "" && text[0] != '/' && slow(pattern, text[1:])
	}
	return text != "" && text[0] == pattern[0] && slow(pattern[1:], text[1:])
}

func TestGlob(t *testing.T) {
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawGlob.Draw(t, "a"), drawGlob.Draw(t, "b")
		if rapid.Bool().Draw(t, "wide") {
			x = "/**"
		}
		a, err1 := parseGlob(x)
		b, err2 := parseGlob(y)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		covers := a.covers(b)
		if covers && x != y {
			covered++
		}
		for _, p := range paths {
			inA := a.match(p)
			if want := slow(x, p); inA != want {
				t.Fatalf("%q matches %q: %t; want %t", x, p, inA, want)
			}
			if covers && !inA && b.match(p) {
				t.Fatalf("%q does not cover %q: %q", x, y, p)
			}
		}
	})
	if covered == 0 {
		t.Error("nothing covered anything: the property was not tried")
	}
}

func TestRuleCovers(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"h * /**", "h GET /a", true},
		{"h GET,POST /**", "h GET /a/*", true},
		{"h GET /**", "h GET,POST /a", false},
		{"h GET /**", "h * /a", false},
		{"h * /**", "h * /**", true},
		{"h GET /a/*", "h GET /a/**", false},
		{"h GET /a/**", "h GET /a/*", true},
		{"h GET /*", "h GET /**", false},
		{"*.h GET /", "a.h:443 GET /", true},
		{"h:443 GET /", "h GET /", false},
	} {
		if got := mustHTTP(t, tt.a).Covers(mustHTTP(t, tt.b)); got != tt.want {
			t.Errorf("%q covers %q: %t", tt.a, tt.b, got)
		}
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"h fetch", "h fetch a/b", true},
		{"h push a/* refs/heads/*", "h fetch a/b", true},
		{"h push a/* refs/heads/*", "h push a/b refs/heads/x", true},
		{"h push a/* refs/heads/*", "h push a/b refs/heads/x/y", false},
		{"h push a/* refs/heads/*", "h push b refs/heads/x", false},
		{"h fetch", "h push a refs/x", false},
		{"h:22 fetch", "h fetch", false},
	} {
		if got := mustGit(t, tt.a).Covers(mustGit(t, tt.b)); got != tt.want {
			t.Errorf("%q covers %q: %t", tt.a, tt.b, got)
		}
	}
}

var (
	drawMethods = rapid.SampledFrom([]string{"*", "GET", "HEAD", "GET,HEAD", "POST"})
	drawHTTP    = rapid.Custom(func(t *rapid.T) string {
		return drawHost.Draw(t, "host") + " " + drawMethods.Draw(t, "methods") + " " + drawGlob.Draw(t, "path")
	})
	drawGit = rapid.Custom(func(t *rapid.T) string {
		repo := strings.ReplaceAll(strings.Trim(drawGlob.Draw(t, "repo"), "/")+"x", ".git", "")
		if rapid.Bool().Draw(t, "push") {
			return drawHost.Draw(t, "host") + " push " + repo + " refs" + strings.TrimSuffix(drawGlob.Draw(t, "ref"), "/") + "/x"
		}
		return drawHost.Draw(t, "host") + " fetch " + repo
	})
)

// TestHTTPCoversIsSound compares with matching all small requests.
func TestHTTPCoversIsSound(t *testing.T) {
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		a, err1 := ParseHTTP(drawHTTP.Draw(t, "a"))
		b, err2 := ParseHTTP(drawHTTP.Draw(t, "b"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if rapid.Bool().Draw(t, "same host") {
			b.host = a.host
		}
		if rapid.Bool().Draw(t, "same path") {
			b.path = a.path
		}
		if rapid.Bool().Draw(t, "same methods") {
			b.methods = a.methods
		}
		if !a.Covers(b) {
			return
		}
		covered++
		for _, name := range drawnNames {
			for _, port := range []uint16{1, 2, 443} {
				for _, m := range []string{"GET", "HEAD", "POST", "CONNECT", "PUT"} {
					for _, p := range paths[:40] {
						if b.Match(name, port, m, p) && !a.Match(name, port, m, p) {
							t.Fatalf("%q does not cover %q: %s:%d %s %s", a, b, name, port, m, p)
						}
					}
				}
			}
		}
	})
	if covered == 0 {
		t.Error("nothing covered anything: the property was not tried")
	}
}

// TestGitCoversIsSound compares with matching all small operations.
func TestGitCoversIsSound(t *testing.T) {
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		a, err1 := ParseGit(drawGit.Draw(t, "a"))
		b, err2 := ParseGit(drawGit.Draw(t, "b"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if rapid.Bool().Draw(t, "same host") {
			b.host = a.host
		}
		if rapid.Bool().Draw(t, "same repository") {
			b.repo = a.repo
		}
		if rapid.Bool().Draw(t, "same refs") {
			b.refs = a.refs
		}
		if !a.Covers(b) {
			return
		}
		covered++
		for _, name := range drawnNames {
			for _, repo := range paths[:40] {
				repo = repo[1:] + "x"
				if b.Fetches(name, 22, repo) && !a.Fetches(name, 22, repo) {
					t.Fatalf("%q does not cover %q: fetch %s", a, b, repo)
				}
				for _, ref := range paths[:40] {
					if ref = "refs" + ref + "x"; b.Pushes(name, 22, repo, ref) && !a.Pushes(name, 22, repo, ref) {
						t.Fatalf("%q does not cover %q: push %s %s", a, b, repo, ref)
					}
				}
			}
		}
	})
	if covered == 0 {
		t.Error("nothing covered anything: the property was not tried")
	}
}

func TestCompile(t *testing.T) {
	r, err := Compile(bawn.Egress{
		Hosts: []string{"*.example.org"}, HTTP: []string{"api.example.org GET /**", "api.example.org:8443 POST /", "*.example.org:443 GET /x"}, Git: []string{"git.test fetch", "git.test push a refs/heads/*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var http, git []string
	for e := range r.HTTP("api.example.org", 443) {
		http = append(http, e.String())
	}
	for e := range r.Git("git.test", 22) {
		git = append(git, e.String())
		break
	}
	for range r.HTTP("api.example.org", 443) {
		break
	}
	if !slices.Equal(http, []string{"api.example.org GET /**", "*.example.org:443 GET /x"}) || !slices.Equal(git, []string{"git.test fetch"}) {
		t.Errorf("http %q, git %q", http, git)
	}
	for name, want := range map[string]bool{"api.example.org": true, "b.example.org": true, "git.test": true, "example.org": false, "other.test": false} {
		if got := r.Opened(name, 443); got != want {
			t.Errorf("%q is opened: %t; want %t", name, got, want)
		}
	}
	if r.Opened("git.test", 80) || r.Opened("b.example.org", 80) {
		t.Error("a port that no entry names is opened")
	}
	r, err = Compile(bawn.Egress{Hosts: []string{"*", "ok.test"}, HTTP: []string{"x"}, Git: []string{"y"}})
	if r != nil || err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, %v; want three errors and no rules", r, err)
	}
}

func TestPairs(t *testing.T) {
	for in, want := range map[string]string{"3000": "3000", "8080:3000": "8080:3000", "80:80": "80"} {
		p, err := ParsePublish(in)
		h, err2 := ParseHostPort(in)
		if err != nil || err2 != nil || p.String() != want || h.String() != want {
			t.Errorf("%q: %q, %v; %q, %v; want %q", in, p, err, h, err2, want)
		}
	}
	p, _ := ParsePublish("8080:3000")
	h, _ := ParseHostPort("15432:5432")
	if p != (Publish{Host: 8080, Guest: 3000}) || h != (HostPort{Guest: 15432, Host: 5432}) {
		t.Errorf("%+v, %+v", p, h)
	}
	for _, in := range []string{"", ":", "1:", ":1", "0", "1:0", "65536", "1:2:3", "a", "-1", "+1", "01", "1 ", "127.0.0.1:80:80"} {
		p, err := ParsePublish(in)
		h, err2 := ParseHostPort(in)
		if err == nil || err2 == nil || p != (Publish{}) || h != (HostPort{}) {
			t.Errorf("%q: %v, %v; want refusals", in, p, h)
		}
	}
}

func TestParseProxy(t *testing.T) {
	for in, want := range map[string]string{
		"http://proxy.corp:3128": "http://proxy.corp:3128", "https://Proxy.corp:443/": "https://proxy.corp:443", "socks5://127.0.0.1:1080": "socks5://127.0.0.1:1080", "http://[2001:db8::1]:1": "http://[2001:db8::1]:1",
	} {
		if p, err := ParseProxy(in); err != nil || p.String() != want {
			t.Errorf("ParseProxy(%q) = %q, %v; want %q", in, p, err, want)
		}
	}
	for _, in := range []string{"", "proxy:3128", "http://proxy", "ftp://proxy:1", "http://u:p@proxy:1", "http://proxy:0", "http://proxy:1/x", "http://:1", "http://2001:db8::1:1", "http://pro xy:1", "http://p\n:1", "http://" + strings.Repeat("a", 1024) + ":1"} {
		p, err := ParseProxy(in)
		if err == nil || p != (Proxy{}) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("ParseProxy(%q) = %q, %v; want a refusal that shows no password", in, p, err)
		}
	}
}

func fuzzIdentity[T interface{ String() string }](f *testing.F, parse func(string) (T, error), seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parse(s)
		if err != nil {
			return
		}
		if again, err := parse(v.String()); err != nil || again.String() != v.String() {
			t.Fatalf("parse(%q) = %q; of that it is %q, %v", s, v, again, err)
		}
	})
}

func FuzzParseHTTP(f *testing.F) {
	fuzzIdentity(f, ParseHTTP, "h GET /", "*.h:1 GET,POST /a/**", "10.0.0.1 * /*", "h CONNECT /", "h GET /\x01", "h GET /***", "h GET /..", " h  *  /** ", "h GET /%2e")
}

func FuzzParseGit(f *testing.F) {
	fuzzIdentity(f, ParseGit, "h fetch", "h fetch a/*", "h push a refs/heads/*", "h:443,22 fetch **", "h push * refs/\x01", "h push a.git refs/x", "h push ** refs/**")
}

func FuzzParsePublish(f *testing.F) {
	fuzzIdentity(f, ParsePublish, "1", "1:2", "0", "1:2:3", "65535:65536", "+1")
}

func FuzzParseHostPort(f *testing.F) { fuzzIdentity(f, ParseHostPort, "1", "1:2", "0", "1:2:3") }

func FuzzParseProxy(f *testing.F) {
	fuzzIdentity(f, ParseProxy, "http://h:1", "socks5://[2001:db8::1]:1", "https://u@h:1", "http://h:1/", "http://[fe80::1%25a]:1")
}
