package fspath

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/a/b", "/a/b"},
		{"/a/../b/./c//", "/b/c"},
		{"/../../etc", "/etc"},
		{".", "/ws"},
		{"src", "/ws/src"},
		{"../out", "/out"},
		{"~", "/home/u"},
		{"~/x/../y", "/home/u/y"},
		{"~/../../etc/shadow", "/etc/shadow"},
		{"a~b", "/ws/a~b"},
		{"/with space/ü", "/with space/ü"},
	} {
		got, err := Clean(c.in, "/ws", "/home/u")
		if err != nil || got != c.want {
			t.Errorf("Clean(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestCleanRefuses(t *testing.T) {
	for _, c := range []struct{ in, base, home, want string }{
		{"", "/ws", "/h", "is empty"},
		{"~root/x", "/ws", "/h", "another user's home"},
		{"/a\x00b", "/ws", "/h", "control character"},
		{"/a\nb", "/ws", "/h", "control character"},
		{"/a\u0085b", "/ws", "/h", "control character"},
		{"/a\xff", "/ws", "/h", "not UTF-8"},
		{"~/x", "/ws", "", "needs the home directory"},
		{"x", "ws", "/h", "needs the workspace"},
	} {
		got, err := Clean(c.in, c.base, c.home)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Clean(%q) = %q, %v; want an error with %q", c.in, got, err, c.want)
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		p, dir string
		want   bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
		{"a/b", "a", false},
		{"/a", "", false},
	} {
		if got := Below(c.p, c.dir); got != c.want {
			t.Errorf("Below(%q, %q) = %v", c.p, c.dir, got)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, p string
		want       bool
	}{
		{"/etc/**", "/etc/passwd", true},
		{"/etc/**", "/etc", true},
		{"/etc/**", "/etcx/passwd", false},
		{"**/.env", "/a/b/.env", true},
		{"**/.env", "/a/b/.envrc", false},
		{"**/.ssh/**", "/home/u/.ssh/id", true},
		{"**/.ssh/**", "/home/u/ssh/id", false},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/b/b/c", false},
		{"/a/*", "/a/", true},
		{"/a/?", "/a/ü", true},
		{"/a/?", "/a/xy", false},
		{"*.go", "x.go", true},
		{"*.go", "dir/x.go", false},
		{"a**b", "axxb", true},
		{"**/a/**/b", "/x/a/y/a/z/b", true},
		{"", "", true},
		{"[a]", "a", false},
	} {
		if got := Match(c.pattern, c.p); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.p, got)
		}
	}
}

// FuzzMatchLists compares Match with a matcher that has lists of segments and of characters.
func FuzzMatchLists(f *testing.F) {
	for _, s := range [][2]string{{"/etc/**", "/etc/passwd"}, {"**/a/**/b*", "/x/a/y/a/z/bü"}, {"a?c//*", "aüc//"}, {"*\xff", "b\ufffd"}, {"**", ""}, {"", "/"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, p string) {
		characters := func(pattern, segment string) bool {
			return listed([]rune(pattern), []rune(segment), '*', func(a, b rune) bool { return a == '?' || a == b })
		}
		want := listed(strings.Split(pattern, "/"), strings.Split(p, "/"), "**", characters)
		if got := Match(pattern, p); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, p, got)
		}
	})
}

// listed is the greedy match of lists.
func listed[T comparable](pattern, list []T, any T, same func(pattern, item T) bool) bool {
	p, back, from := 0, -1, 0
	for i := 0; i < len(list); {
		switch {
		case p < len(pattern) && pattern[p] == any:
			back, from = p, i
			p++
		case p < len(pattern) && same(pattern[p], list[i]):
			p++
			i++
		case back >= 0:
			from++
			p, i = back+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == any {
		p++
	}
	return p == len(pattern)
}

// TestMatchLongInput would not end with an exponential matcher.
func TestMatchLongInput(t *testing.T) {
	pattern := strings.Repeat("**/a*a*a*/", 200) + "x"
	if Match(pattern, strings.Repeat("aaaaaaaaaaaaaaaaaaaa/", 200)) {
		t.Error("matched what lacks the last segment")
	}
}

// TestBelowIsAnOrder checks reflexivity and transitivity on random paths.
func TestBelowIsAnOrder(t *testing.T) {
	gen := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab"}), 0, 3),
		func(s []string) string { return "/" + strings.Join(s, "/") })
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := gen.Draw(t, "a"), gen.Draw(t, "b"), gen.Draw(t, "c")
		if !Below(a, a) {
			t.Fatalf("%q is not below itself", a)
		}
		if Below(a, b) && Below(b, c) && !Below(a, c) {
			t.Fatalf("%q %q %q: not transitive", a, b, c)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "~", "~/a", "~x", "../..", "/a/./b", "a\x00", "\xff", "~/../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Clean(s, "/ws", "/home/u")
		if err != nil {
			return
		}
		if !path.IsAbs(got) || path.Clean(got) != got || strings.ContainsRune(got, 0) {
			t.Errorf("Clean(%q) = %q: not clean and absolute", s, got)
		}
		if again, err := Clean(got, "/other", ""); err != nil || again != got {
			t.Errorf("Clean(%q) = %q, then %q, %v", s, got, again, err)
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add("/etc/**", "/etc/passwd")
	f.Add("**", "")
	f.Add("a*b?c", "axbyc")
	f.Fuzz(func(t *testing.T, pattern, p string) {
		Match(pattern, p)
		if !strings.ContainsAny(p, "*?") && !Match(p, p) {
			t.Errorf("%q does not match itself", p)
		}
		if !Match("**", p) {
			t.Errorf("** does not match %q", p)
		}
	})
}

func TestFold(t *testing.T) {
	for _, same := range [][2]string{{"Path", "pATH"}, {"\u212ait", "KIT"}, {"\u017f", "S"}, {"Ä", "ä"}, {"ς", "Σ"}, {"_1", "_1"}} {
		if Fold(same[0]) != Fold(same[1]) {
			t.Errorf("%q and %q are two", same[0], same[1])
		}
	}
	if Fold("path") == Fold("paths") || Fold("ä") == Fold("a") {
		t.Error("what differs by more than case is one")
	}
}
