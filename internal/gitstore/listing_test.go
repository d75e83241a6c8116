package gitstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// listingOf writes an index as git lists it.
func listingOf(x index) []byte {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(x)) {
		b.WriteString(lines(p, x[p]))
	}
	return []byte(b.String())
}

func drawIndex(t *rapid.T, name string, like index) index {
	x := index{}
	maps.Copy(x, like)
	n := rapid.IntRange(0, 6).Draw(t, name)
	for i := range n {
		p := rapid.SampledFrom([]string{"a", "a.b", "a/b", "a0", "b", "b/c/d", "zz", "ä"}).Draw(t, fmt.Sprint(name, i))
		id := strings.Repeat(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id"), 40)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			delete(x, p)
		case 1:
			x[p] = []entry{{mode: "100644", id: id, stage: '1'}, {mode: "100644", id: id, stage: '3'}}
		case 2:
			x[p] = []entry{{mode: "100755", id: id, stage: '0', skip: true}}
		default:
			x[p] = []entry{{mode: "100644", id: id, stage: '0'}}
		}
	}
	return x
}

// TestChangedPaths: what is found by comparing listings is what is found by comparing
// whole indexes.
func TestChangedPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawIndex(t, "base", nil)
		host, private := drawIndex(t, "host", base), drawIndex(t, "private", base)
		b, h, p, err := parseChanged(listingOf(base), listingOf(host), listingOf(private), 40)
		if err != nil {
			t.Fatal(err)
		}
		wantHost, wantPrivate, wantApart := merge3(base, host, private)
		gotHost, gotPrivate, gotApart := merge3(b, h, p)
		if !slices.Equal(wantApart, gotApart) {
			t.Fatalf("apart %q, want %q", gotApart, wantApart)
		}
		if base.same(host) != b.same(h) || base.same(private) != b.same(p) {
			t.Fatal("same")
		}
		zero := strings.Repeat("0", 40)
		if a, b := parts(difference(host, wantHost, zero)), parts(difference(h, gotHost, zero)); a != b {
			t.Fatalf("%q, want %q", b, a)
		}
		for _, c := range []struct{ from, small, want index }{{host, gotHost, wantHost}, {private, gotPrivate, wantPrivate}} {
			change := map[string]string{}
			for _, side := range []index{b, h, p, c.small} {
				for at := range side {
					change[at] = lines(at, c.small[at])
				}
			}
			if got := patchListing(listingOf(c.from), change); string(got) != string(listingOf(c.want)) {
				t.Fatalf("patched %q\nwant %q", got, listingOf(c.want))
			}
		}
	})
}

// parts sorts what difference writes.
func parts(text []byte) string {
	list := strings.Split(string(text), "\x00")
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestListingOfAGuest: what no git writes is refused, wherever it differs.
func TestListingOfAGuest(t *testing.T) {
	line := func(p string) string { return "H 100644 " + strings.Repeat("1", 40) + " 0\t" + p + "\x00" }
	base := line("a") + line("b") + line("c")
	for name, text := range map[string]string{
		"order": line("b") + line("a") + line("c"), "twice": base + line("c"), "again": line("a") + line("b") + line("a"), "no end": strings.TrimSuffix(base, "\x00"), "no path": base + "H\x00",
		"git": line("a") + line("b") + line("c/.git/config"), "climbs": line("../x") + base, "mode": strings.Replace(base, "100644", "120777", 1), "garbage": "\x00\x00",
	} {
		if _, _, _, err := parseChanged([]byte(base), []byte(base), []byte(text), 40); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	if _, _, p, err := parseChanged([]byte(base), []byte(base), []byte(base+line("d")), 40); err != nil || len(p) != 1 {
		t.Errorf("control: %v %v", p, err)
	}
}
