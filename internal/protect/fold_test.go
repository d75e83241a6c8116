package protect

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Folding twice is folding once, and case never matters.
func TestFoldIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-zA-Z~./ :ſKıß\x{200c}é-]{0,12}`).Draw(t, "name")
		once := Fold(s)
		if twice := Fold(once); twice != once {
			t.Fatalf("%q: once %q, twice %q", s, once, twice)
		}
		if upper := Fold(strings.ToUpper(s)); exact(strings.ToLower(s)) && upper != once {
			t.Fatalf("%q: %q, in capitals %q", s, once, upper)
		}
	})
}

// TestFoldPlain: a plain path is folded as its names are.
func TestFoldPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`/?[a-cX-Z /. ~_]{1,20}`).Draw(t, "path")
		names := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
		for i, n := range names {
			names[i] = FoldName(n)
		}
		want := strings.Join(names, "/")
		if p[0] == '/' {
			want = "/" + want
		}
		if got := Fold(p); got != want {
			t.Errorf("Fold(%q) = %q; want %q", p, got, want)
		}
	})
}
