package fspath

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"/w/**/.env", "/w/.env", true},
		{"/w/**/.env", "/w/a/b/.ENV", true},
		{"/w/**/.env", "/w/a/.env/x", true},
		{"/w/**/.env", "/w/a/.envrc", false},
		{"/w/**/.env", "/v/.env", false},
		{"/w/*.pem", "/w/a.pem", true},
		{"/w/*.pem", "/w/a/a.pem", false},
		{"/w/src/**/private/*.key", "/w/src/private/a.key", true},
		{"/w/src/**/private/*.key", "/w/src/x/y/private/a.key", true},
		{"/w/src/**/private/*.key", "/w/src/x/y/a.key", false},
		{"/w/secrets/**", "/w/secrets", true},
		{"/w/?.txt", "/w/a.txt", true},
		{"/w/?.txt", "/w/ab.txt", false},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Below(tt.path); got != tt.want {
			t.Errorf("%s at %s: %v, want %v", tt.pattern, tt.path, got, tt.want)
		}
	}
}

func TestPatternBase(t *testing.T) {
	for pattern, want := range map[string]string{
		"/w/**/.env": "/w", "/w/conf/*.PEM": "/w/conf", "/*.pem": "/", "/A/b/c?/d": "/A/b",
	} {
		p, err := ParsePattern(pattern)
		if err != nil || p.Base() != want {
			t.Errorf("%s: base %q, %v; want %q", pattern, p.Base(), err, want)
		}
	}
}

func TestPatternRefuses(t *testing.T) {
	for _, text := range []string{"**/.env", "/w/../*.pem", "/w/*.{pem,key}", "/w/[ab]*", `/w/\*`, "/" + strings.Repeat("a/", 70) + "*"} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("%q is read as %v", text, p)
		}
	}
}

// TestPatternIsMatch: a pattern matches a path or a directory above it, as Match says,
// and what is left of it below a directory matches the same.
func TestPatternIsMatch(t *testing.T) {
	seg := rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "?", "**"})
	name := rapid.SampledFrom([]string{"a", "b", "ab", "ba"})
	rapid.Check(t, func(t *rapid.T) {
		text := "/" + strings.Join(rapid.SliceOfN(seg, 1, 5).Draw(t, "pattern"), "/")
		names := rapid.SliceOfN(name, 1, 5).Draw(t, "path")
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		abs := "/" + strings.Join(names, "/")
		want := false
		for i := range len(names) + 1 {
			want = want || Match(text, "/"+strings.Join(names[:i], "/"))
		}
		if got := p.Below(abs); got != want {
			t.Fatalf("%s at %s: %v, want %v", text, abs, got, want)
		}
		dir := path.Dir(abs)
		if p.Below(dir) {
			return
		}
		rest := slices.ContainsFunc(p.Rest(dir), func(r string) bool { return Match(r, path.Base(abs)) })
		if got := p.Below(abs); got != rest {
			t.Fatalf("%s at %s: %v, and %q below %s says %v", text, abs, got, p.Rest(dir), dir, rest)
		}
	})
}
