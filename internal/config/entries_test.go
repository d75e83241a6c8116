package config

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEnvEntries(t *testing.T) {
	for _, e := range []string{"A", "_a1", "LC_*", "A=", "A=b=c", "A=*", "A=x\ny"} {
		if _, err := envEntry(e, paths{}); err != nil {
			t.Error(err)
		}
	}
	for _, e := range []string{"", "*", "=", "=x", "1A", "A B", "A*B", "**", "A*=x", "A\x00", "A=\x00", "ä", "A-B", "LC_*=1"} {
		if got, err := envEntry(e, paths{}); err == nil {
			t.Errorf("%q became %q", e, got)
		}
	}
	for _, c := range []struct {
		entry, other string
		want         bool
	}{
		{"A", "A", true}, {"A", "AB", false}, {"A*", "AB", true}, {"A*", "A*", true}, {"A*", "AB*", true}, {"AB*", "A*", false},
		{"A", "A=1", false}, {"A*", "AB=1", false}, {"A=1", "A=1", true}, {"A=1", "A=2", false}, {"A=1*", "A=1x", false}, {"A*", "B", false},
	} {
		if got := envCovers(c.entry, c.other); got != c.want {
			t.Errorf("envCovers(%q, %q) = %v", c.entry, c.other, got)
		}
	}
}

func TestNames(t *testing.T) {
	for _, d := range []string{"kvm", "dri/renderD128", "net/tun", "fuse"} {
		if _, err := deviceEntry(d, paths{}); err != nil {
			t.Error(err)
		}
	}
	for _, d := range []string{"", "/dev/kvm", "../etc/shadow", "a/../b", "a/", ".", "a b", "a\n"} {
		if _, err := deviceEntry(d, paths{}); err == nil {
			t.Errorf("device %q", d)
		}
	}
	for in, want := range map[string]string{"deploy.sh": "deploy.sh", "./ci//hooks": "ci/hooks", "..x": "..x"} {
		if got, err := protectedEntry(in, paths{}); err != nil || got != want {
			t.Errorf("protected %q: %q, %v", in, got, err)
		}
	}
	for _, p := range []string{"", ".", "..", "../x", "a/../../x", "/x", "~/x", "a*", "a\x00"} {
		if got, err := protectedEntry(p, paths{}); err == nil {
			t.Errorf("protected %q became %q", p, got)
		}
	}
	for _, o := range []string{"gh", "aws", "/x"} {
		if _, err := openEntry(o, paths{workspace: "/ws", home: "/h"}); err != nil {
			t.Error(err)
		}
	}
	for _, o := range []string{"", "GH", "g h", strings.Repeat("a", 65), "-x"} {
		if _, err := openEntry(o, paths{workspace: "/ws", home: "/h"}); err == nil {
			t.Errorf("open %q", o)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"network": "network", "netwrok": "network", "Network": "network", "memory-mb": "memory_mb", "memry_mb": "memory_mb",
		"rw": "rw", "wr": "rw", "x": "", "net": "network", "ne": "", "memory": "memory_mb", "frobnicate": "", strings.Repeat("network", 20): "",
	} {
		if got := nearest(word, []string{"network", "memory_mb", "rw"}); got != want {
			t.Errorf("nearest(%q) = %q; want %q", word, got, want)
		}
	}
}

// TestDistanceIsSymmetric also checks that it is zero for equal words only.
func TestDistanceIsSymmetric(t *testing.T) {
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d, back %d", a, b, d, distance(b, a))
		}
	})
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2J": `"a\x1b[2J"`, "a" + strings.Repeat("ü", 50): `"a` + strings.Repeat("ü", 39) + `"… (101 bytes)`,
		strings.Repeat("\x80", 100): `""… (100 bytes)`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s; want %s", in, got, want)
		}
	}
}

func TestOriginAsJSON(t *testing.T) {
	data, err := json.Marshal(Origin{Key: "mode", Value: "plan", Place: Place{Layer: User, File: "/f", Line: 1, Column: 2}})
	if want := `{"key":"mode","value":"plan","layer":"user","file":"/f","line":1,"column":2}`; err != nil || string(data) != want {
		t.Errorf("%s, %v; want %s", data, err, want)
	}
}
