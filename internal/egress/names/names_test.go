package names

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func address(t interface {
	Helper()
	Fatalf(string, ...any)
}, table *Table, name string, v6 bool) netip.Addr {
	t.Helper()
	a, err := table.Address(name, v6)
	if err != nil {
		t.Fatalf("Address(%q, %v): %v", name, v6, err)
	}
	return a
}

// TestOneNameOneAddress: whatever is asked in whatever order, a name keeps
// its two addresses, no two names share one, and each leads back.
func TestOneNameOneAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, first := New(), map[string]netip.Addr{}
		for _, name := range rapid.SliceOf(rapid.StringMatching(`[a-e]{1,3}\.example`)).Draw(t, "names") {
			for _, v6 := range []bool{false, true} {
				a := address(t, table, name, v6)
				key := fmt.Sprint(name, v6)
				if before, ok := first[key]; ok && before != a {
					t.Fatalf("%s was %s and is %s", key, before, a)
				}
				first[key] = a
				if got, ok := table.Name(a); !ok || got != name || !table.Owns(a) || a.Is4() == v6 {
					t.Fatalf("%s of %q leads back to %q, %v", a, name, got, ok)
				}
			}
		}
	})
}

func TestFull(t *testing.T) {
	table, seen := New(), map[netip.Addr]bool{}
	for i := range Max {
		name := fmt.Sprintf("h%d.example", i)
		for _, v6 := range []bool{false, true} {
			a := address(t, table, name, v6)
			if last := a.AsSlice()[len(a.AsSlice())-1]; seen[a] || !v6 && (last == 0 || last == 255) {
				t.Fatalf("%s, for %q, was given before or ends in 0 or 255", a, name)
			}
			if got, ok := table.Name(a); !ok || got != name {
				t.Fatalf("%s of %q leads back to %q, %v", a, name, got, ok)
			}
			seen[a] = true
		}
	}
	if a, err := table.Address("one.more.example", false); !errors.Is(err, ErrFull) || a.IsValid() {
		t.Errorf("a full table gives %s, %v; want ErrFull", a, err)
	}
	address(t, table, "h7.example", true) // those it has, it keeps
}

func TestStrangersHaveNoName(t *testing.T) {
	table, other := New(), New()
	known := address(t, table, "a.example", false)
	address(t, other, "b.example", true)
	strangers := []netip.Addr{
		{}, known.Next().Next(), netip.MustParseAddr("198.18.0.0"), netip.MustParseAddr("198.19.255.255"),
		netip.MustParseAddr("198.17.255.255"), netip.MustParseAddr("198.20.0.0"), netip.MustParseAddr("127.0.0.1"),
		netip.MustParseAddr("fd62:6177:6e00::"), netip.MustParseAddr("fd62:6177:6e00:1::1"), netip.MustParseAddr("::1"),
		address(t, other, "b.example", true), // the nonces of two tables differ
	}
	for _, a := range strangers {
		if name, ok := table.Name(a); ok {
			t.Errorf("%s has the name %q", a, name)
		}
	}
	if name, ok := table.Name(netip.AddrFrom16(known.As16())); !ok || name != "a.example" {
		t.Errorf("as IPv6, %s leads to %q, %v", known, name, ok)
	}
}

func TestOwns(t *testing.T) {
	for s, want := range map[string]bool{
		"198.18.0.0": true, "198.19.255.255": true, "::ffff:198.18.0.1": true, "fd62:6177:6e00::1": true, "fd62:6177:6e00::ffff:ffff:ffff:ffff": true,
		"198.17.255.255": false, "198.20.0.0": false, "fd62:6177:6e00:1::": false, "fd62:6177:6dff::1": false, "::": false,
	} {
		if got := New().Owns(netip.MustParseAddr(s)); got != want {
			t.Errorf("Owns(%s) = %v", s, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("a", 254)} {
		if a, err := New().Address(name, false); err == nil {
			t.Errorf("%q gets %s", name, a)
		}
	}
	var zero Table
	if a, err := zero.Address("a.example", false); err == nil {
		t.Errorf("the zero table gives %s", a)
	}
	if name, ok := zero.Name(netip.MustParseAddr("198.18.0.1")); ok {
		t.Errorf("the zero table knows %q", name)
	}
}

func TestConcurrently(t *testing.T) {
	table := New()
	if a, err := table.add("h0.example"); a != 0 || err != nil {
		t.Fatal(a, err)
	}
	if b, err := table.add("h0.example"); b != 0 || err != nil { // as who comes second
		t.Fatal(b, err)
	}
	for i := range 3000 {
		name := fmt.Sprintf("h%d.example", i)
		got := make([]netip.Addr, 4)
		var all sync.WaitGroup
		for g := range got {
			all.Go(func() {
				got[g], _ = table.Address(name, false)
				if back, ok := table.Name(got[g]); !ok || back != name {
					t.Errorf("%s of %q leads back to %q", got[g], name, back)
				}
			})
		}
		all.Wait()
		if got[0] != got[1] || got[0] != got[2] || got[0] != got[3] {
			t.Fatalf("%q has the addresses %v", name, got)
		}
	}
	if n := len(table.names); n != 3000 {
		t.Errorf("%d names, want 3000", n)
	}
}

func BenchmarkAddress(b *testing.B) {
	table := New()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Address("registry.example", false); err != nil {
			b.Fatal(err)
		}
	}
}
