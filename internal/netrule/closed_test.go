package netrule

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// TestClosed: where something is closed, only entries count that are no wider.
func TestClosed(t *testing.T) {
	e := bawn.Egress{
		Hosts: []string{"*.example.org", "b.example.org", "10.0.0.0/8:443", "10.1.2.3:443"}, HTTP: []string{"*.example.org GET /**", "c.example.org GET /c"},
		Git: []string{"*.example.org fetch", "c.example.org fetch c"}, Closed: []string{"a.example.org", "b.example.org", "c.example.org:443", "10.1.0.0/16:443", "*.d.example.org"},
	}
	r, err := Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	e.Closed = nil
	open, err := Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		closed    bool
		host      string
		http, git int
	}{
		{"x.example.org", false, "*.example.org", 1, 1}, {"a.example.org", true, "", 0, 0}, {"b.example.org", true, "b.example.org", 0, 0},
		{"c.example.org", true, "", 1, 1}, {"x.d.example.org", true, "", 0, 0}, {"d.example.org", false, "*.example.org", 1, 1},
		{"10.2.0.1", false, "10.0.0.0/8:443", 0, 0}, {"10.1.0.1", true, "", 0, 0}, {"10.1.2.3", true, "10.1.2.3:443", 0, 0},
	} {
		host, _ := r.Host(tt.name, 443)
		http, git := slices.Collect(r.HTTP(tt.name, 443)), slices.Collect(r.Git(tt.name, 443))
		if r.Closed(tt.name, 443) != tt.closed || host.String() != tt.host || len(http) != tt.http || len(git) != tt.git {
			t.Errorf("%q: %t, %q, %v, %v; want %+v", tt.name, r.Closed(tt.name, 443), host, http, git, tt)
		}
		if a, err := netip.ParseAddr(tt.name); err == nil {
			if host, _ := r.HostAddr(a, 443); host.String() != tt.host {
				t.Errorf("the address %q is opened by %q, want %q", tt.name, host, tt.host)
			}
		}
		if _, ok := open.Host(tt.name, 443); !ok || open.Closed(tt.name, 443) {
			t.Errorf("control: %q is not open where nothing is closed", tt.name)
		}
	}
	if host, _ := r.Host("c.example.org", 80); host.String() != "*.example.org" {
		t.Errorf("another port is opened by %q", host)
	}
	if _, err := Compile(bawn.Egress{Closed: []string{"*"}}); err == nil {
		t.Error("what can't be read closes nothing, and is accepted")
	}
	var none *Rules
	_, host := none.Host("example.org", 443)
	_, addr := none.HostAddr(netip.MustParseAddr("10.0.0.1"), 443)
	if _, hosts := (&Rules{}).HostAddr(netip.MustParseAddr("10.0.0.1"), 443); host || addr || hosts || none.Closed("example.org", 443) {
		t.Error("no rules say something")
	}
}

// TestPortsAreSets compares Meet and Without with looking at every port.
func TestPortsAreSets(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Ports {
		var p Ports
		for _, n := range rapid.SliceOfN(rapid.Uint16Range(1, 12), 0, 8).Draw(t, "ports") {
			p.spans = append(p.spans, span{n, n})
		}
		if p.spans != nil {
			p.spans = merged(p.spans)
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		meet, without := a.Meet(b), a.Without(b)
		for n := range uint16(14) {
			if meet.Has(n) != (a.Has(n) && b.Has(n)) || without.Has(n) != (a.Has(n) && !b.Has(n)) {
				t.Fatalf("%v and %v: %v, %v", a, b, meet, without)
			}
		}
		for _, p := range []Ports{meet, without} {
			if again, err := ParsePorts(p.String()); p.Empty() != (err != nil) || !p.Empty() && !slices.Equal(again.spans, p.spans) {
				t.Fatalf("%v is read as %v, %v", p, again, err)
			}
		}
	})
	all, top := Ports{[]span{{1, 65535}}}, Ports{[]span{{65535, 65535}}}
	if got := all.Without(top).String(); got != "1-65534" {
		t.Errorf("all but the last are %s", got)
	}
	var many Ports
	for n := range uint16(70) {
		many.spans = append(many.spans, span{2*n + 1, 2*n + 1})
	}
	lists := many.Lists()
	for _, p := range lists {
		if _, err := ParsePorts(p.String()); err != nil {
			t.Error(err)
		}
	}
	if len(lists) != 3 || (Ports{}).Lists() != nil {
		t.Errorf("%d lists, want 3", len(lists))
	}
}

// TestEntriesMeet compares the meet of entries with both of them.
func TestEntriesMeet(t *testing.T) {
	read := func(s string) HTTP {
		h, err := ParseHTTP("h.org " + s)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, tt := range [][3]string{
		{"* /**", "GET /v1/*", "GET /v1/*"}, {"GET,PUT /v1/x", "PUT,POST /v1/*", "PUT /v1/x"}, {"GET /a", "PUT /a", ""}, {"GET /a", "GET /b", ""},
		{"* /a*", "* /*b", ""}, {"* /**", "* /**", "* /**"},
	} {
		for _, pair := range [][2]string{{tt[0], tt[1]}, {tt[1], tt[0]}} {
			got, ok := read(pair[0]).Meet(read(pair[1]))
			if ok != (tt[2] != "") || ok && got.String() != "h.org "+tt[2] {
				t.Errorf("%q and %q: %q, %t; want %q", pair[0], pair[1], got, ok, tt[2])
			}
		}
	}
	for _, tt := range [][3]string{
		{"fetch", "fetch t/*", "fetch t/*"}, {"push t/* refs/heads/*", "push t/a refs/**", "push t/a refs/heads/*"}, {"push t/a refs/heads/*", "fetch", "fetch t/a"},
		{"push t/a refs/heads/a", "push t/a refs/heads/b", "fetch t/a"}, {"fetch a", "fetch b", ""},
	} {
		for _, pair := range [][2]string{{tt[0], tt[1]}, {tt[1], tt[0]}} {
			a, err1 := ParseGit("h.org " + pair[0])
			b, err2 := ParseGit("h.org " + pair[1])
			got, ok := a.Meet(b)
			if err1 != nil || err2 != nil || ok != (tt[2] != "") || ok && (got.String() != "h.org "+tt[2] || !a.Covers(got) || !b.Covers(got)) {
				t.Errorf("%q and %q: %q, %t, %v, %v; want %q", pair[0], pair[1], got, ok, err1, err2, tt[2])
			}
		}
	}
	other := mustHost(t, "o.org:1")
	git, err := ParseGit("h.org fetch")
	if err != nil || read("* /**").On(other).String() != "o.org:1 * /**" || git.On(other).String() != "o.org:1 fetch" || mustHost(t, "o.org").On(other.Ports()).String() != "o.org:1" {
		t.Error("another host is not taken", err)
	}
}

// TestNamesNest: of two names one covers the other, or nothing is in both.
func TestNamesNest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err1 := ParseHost(drawHost.Draw(t, "a"))
		b, err2 := ParseHost(drawHost.Draw(t, "b"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, name := range drawnNames {
			if a.matchName(name) && b.matchName(name) && !a.CoversName(b) && !b.CoversName(a) {
				t.Fatalf("%q is in %q and %q", name, a, b)
			}
		}
	})
}

// TestNamed: at whatever port, of whatever sort.
func TestNamed(t *testing.T) {
	r, err := Compile(bawn.Egress{Hosts: []string{"a.org:1"}, HTTP: []string{"b.org:2 * /**"}, Git: []string{"c.org push t/a refs/heads/*"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a.org": true, "b.org": true, "c.org": true, "d.org": false, "x.a.org": false} {
		if got := r.Named(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
	var none *Rules
	if none.Named("a.org") || (&Rules{}).Named("a.org") {
		t.Error("no rules name a host")
	}
	for g := range r.Git("c.org", 22) {
		if names := g.Host().SSHNames(); g.Repo() != "t/a" || g.Refs() != "refs/heads/*" || !slices.Equal(names, []string{"c.org", "c.org:*"}) {
			t.Errorf("%q %q %q", g.Repo(), g.Refs(), names)
		}
	}
}

// TestAnyMethod: only "*" opens a path for every method, and only its own path.
func TestAnyMethod(t *testing.T) {
	for entry, want := range map[string]bool{"a.test * /x/**": true, "a.test GET,POST /x/**": false, "a.test * /y": false} {
		h, err := ParseHTTP(entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.AnyMethod("/x/y"); got != want {
			t.Errorf("%s: %t", entry, got)
		}
	}
}
