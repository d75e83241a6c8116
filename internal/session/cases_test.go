package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

// TestLimitsOfOneSideStay: an HTTP or git entry takes away what a Hosts entry
// gives, so lists that are met one by one would open what one side has closed.
func TestLimitsOfOneSideStay(t *testing.T) {
	long := "/" + strings.Repeat("x", 900)
	name := strings.Repeat(strings.Repeat("n", 60)+".", 3) + "a.org"
	list := func(s ...string) []string { return s }
	for what, tt := range map[string]struct{ a, b, want bawn.Egress }{
		"the host is open on one side": {bawn.Egress{Hosts: list("h.org")}, bawn.Egress{HTTP: list("h.org GET /a")}, bawn.Egress{HTTP: list("h.org GET /a")}},
		"open on both, limited on one": {
			bawn.Egress{Hosts: list("h.org")}, bawn.Egress{Hosts: list("h.org"), HTTP: list("h.org GET /a")}, bawn.Egress{Hosts: list("h.org"), HTTP: list("h.org GET /a")}},
		"limited on both":                     {bawn.Egress{HTTP: list("h.org GET,PUT /**")}, bawn.Egress{HTTP: list("h.org GET /a", "h.org * /a")}, bawn.Egress{HTTP: list("h.org GET,PUT /a")}},
		"nothing in common":                   {bawn.Egress{HTTP: list("h.org GET /a")}, bawn.Egress{HTTP: list("h.org PUT /a")}, bawn.Egress{Closed: list("h.org")}},
		"nothing in common, but open":         {bawn.Egress{Hosts: list("h.org"), HTTP: list("h.org GET /a")}, bawn.Egress{Hosts: list("h.org"), HTTP: list("h.org PUT /a")}, bawn.Egress{Closed: list("h.org")}},
		"one does not name it":                {bawn.Egress{HTTP: list("h.org GET /a")}, bawn.Egress{}, bawn.Egress{Closed: list("h.org")}},
		"one opens what the other asks about": {bawn.Egress{Hosts: list("h.org")}, bawn.Egress{}, bawn.Egress{}},
		"closed on one side":                  {bawn.Egress{Hosts: list("h.org")}, bawn.Egress{Closed: list("h.org")}, bawn.Egress{Closed: list("h.org")}},
		"git on one side":                     {bawn.Egress{Hosts: list("h.org:22")}, bawn.Egress{Git: list("h.org:22 fetch t/*")}, bawn.Egress{Git: list("h.org:22 fetch t/*")}},
		"git on one side, requests on the other": {
			bawn.Egress{HTTP: list("h.org:443 * /**")}, bawn.Egress{Git: list("h.org:443 fetch")}, bawn.Egress{Closed: list("h.org:443")}},
		"one port is limited": {
			bawn.Egress{Hosts: list("h.org:*")}, bawn.Egress{Hosts: list("h.org:1-9"), HTTP: list("h.org:5 GET /a")},
			bawn.Egress{Hosts: list("h.org:5", "h.org:1-4,6-9"), HTTP: list("h.org:5 GET /a")}},
		"one name below is open": {
			bawn.Egress{Hosts: list("a.h.org")}, bawn.Egress{HTTP: list("*.h.org GET /**")}, bawn.Egress{Closed: list("*.h.org", "a.h.org"), HTTP: list("a.h.org GET /**")}},
		"one name below is asked about": {
			bawn.Egress{HTTP: list("*.h.org GET /**")}, bawn.Egress{Hosts: list("a.h.org")}, bawn.Egress{Closed: list("*.h.org", "a.h.org"), HTTP: list("a.h.org GET /**")}},
		"what can't be said below": {
			bawn.Egress{HTTP: list("*.h.org GET /**"), Hosts: list("a.h.org"), Closed: list("a.h.org")}, bawn.Egress{}, bawn.Egress{Closed: list("*.h.org")}},
		"one name below is limited": {
			bawn.Egress{Hosts: list("*.h.org")}, bawn.Egress{Hosts: list("*.h.org"), HTTP: list("a.h.org GET /a")},
			bawn.Egress{Hosts: list("*.h.org", "a.h.org"), Closed: list("a.h.org"), HTTP: list("a.h.org GET /a")}},
		"too long to be said": {bawn.Egress{HTTP: list("*.a.org GET " + long)}, bawn.Egress{Hosts: list(name)}, bawn.Egress{Closed: list("*.a.org")}},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, meetEgress(tt.a, tt.b)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReachAlone is the properties of the whole session for its entries alone,
// where two drawn sessions have more in common.
func TestReachAlone(t *testing.T) {
	draw := func(t *rapid.T) bawn.Session {
		iso := bawn.Isolation{Network: bawn.NetworkAllowlist, Egress: drawEgress(t)}
		iso.Egress.Proxy = ""
		return bawn.Session{Isolation: iso}
	}
	given := func(a, b bawn.Session) bawn.Session {
		return bawn.Session{Isolation: meetIsolation(a.Isolation, b.Isolation)}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t), draw(t), draw(t)
		ab, bc := given(a, b), given(b, c)
		wantNoMore(t, "above one", ab, a)
		wantNoMore(t, "above the other", ab, b)
		wantSame(t, "not commutative", ab, given(b, a))
		wantSame(t, "not associative", given(ab, c), given(a, bc))
		wantSame(t, "not idempotent", a, given(a, a))
		wantNoMore(t, "not monotone", given(a, bc), given(a, b))
	})
}

func TestFullNetworkHasNoSecrets(t *testing.T) {
	full, list := parent(), parent()
	full.ID, full.Isolation.Network = "full", bawn.NetworkFull
	want := list.Isolation.Egress
	want.Secrets = nil
	for _, pair := range [][2]bawn.Session{{full, list}, {list, full}} {
		got, _, err := Meet(pair[0], pair[1])
		if diff := cmp.Diff(want, got.Isolation.Egress); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	none := list
	none.Isolation.Network = bawn.NetworkNone
	none.ID = "none"
	if got, told, err := Meet(none, list); err != nil || got.Isolation.Network != bawn.NetworkNone || len(told) != 1 {
		t.Errorf("%+v, %+v, %v", got.Isolation, told, err)
	}
}

func TestPlaces(t *testing.T) {
	mount := func(p string, a bawn.Access) bawn.Mount { return bawn.Mount{Path: p, Access: a} }
	common := func(p string, a bawn.Access) bawn.Mount {
		return bawn.Mount{Path: p, Access: a, Why: "what both sessions have of it"}
	}
	for what, tt := range map[string]struct{ a, b, want bawn.Isolation }{
		"private and read-only have nothing in common": {
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Private)}}, bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.ReadOnly)}},
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Hidden)}}},
		"nor private and what no mount covers": {
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Private)}}, bawn.Isolation{}, bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Hidden)}}},
		"what no mount covers stays as it is": { // a read-only mount would show what a provider hides
			bawn.Isolation{Mounts: []bawn.Mount{mount("/h/.ssh", bawn.ReadWrite)}}, bawn.Isolation{}, bawn.Isolation{}},
		"also below what is hidden": {
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Hidden), mount("/a/b", bawn.ReadWrite)}}, bawn.Isolation{}, bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.Hidden)}}},
		"both share caches": {
			bawn.Isolation{Caches: bawn.CacheShared, CacheDirs: []string{"/c", "/d"}}, bawn.Isolation{Caches: bawn.CacheShared, CacheDirs: []string{"/c"}},
			bawn.Isolation{Caches: bawn.CacheShared, CacheDirs: []string{"/c"}}},
		"one shares, one copies": {
			bawn.Isolation{Caches: bawn.CacheShared, CacheDirs: []string{"/c"}}, bawn.Isolation{Caches: bawn.CachePrivate, CacheDirs: []string{"/c"}},
			bawn.Isolation{Caches: bawn.CachePrivate, CacheDirs: []string{"/c"}}},
		"a cache in a writable place": {
			bawn.Isolation{Caches: bawn.CacheShared, CacheDirs: []string{"/c"}}, bawn.Isolation{Mounts: []bawn.Mount{mount("/", bawn.ReadWrite)}},
			bawn.Isolation{Mounts: []bawn.Mount{common("/c", bawn.ReadWrite)}}},
		"a copy over a private place": {
			bawn.Isolation{Caches: bawn.CachePrivate, CacheDirs: []string{"/c"}}, bawn.Isolation{Mounts: []bawn.Mount{mount("/c", bawn.Private)}},
			bawn.Isolation{Mounts: []bawn.Mount{mount("/c", bawn.Private)}}},
		"the last of two mounts": {
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.ReadWrite), mount("/a", bawn.ReadOnly)}}, bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.ReadWrite)}},
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.ReadOnly)}}},
		"names that only begin alike": {
			bawn.Isolation{Mounts: []bawn.Mount{mount("/a", bawn.ReadWrite)}}, bawn.Isolation{Mounts: []bawn.Mount{mount("/a-b", bawn.ReadWrite)}}, bawn.Isolation{}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, got := range []bawn.Isolation{meetPlaces(tt.a, tt.b), meetPlaces(tt.b, tt.a)} {
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	for what, tt := range map[string]struct{ a, b, want bawn.Isolation }{
		"the narrower pattern": {bawn.Isolation{Env: []string{"LC_*", "X"}}, bawn.Isolation{Env: []string{"LC_ALL", "LC_C*", "Y"}}, bawn.Isolation{Env: []string{"LC_ALL", "LC_C*"}}},
		"the same value":       {bawn.Isolation{SetEnv: []string{"A=0", "A=1"}}, bawn.Isolation{SetEnv: []string{"A=1", "B=1"}}, bawn.Isolation{SetEnv: []string{"A=1"}}},
		"another value":        {bawn.Isolation{SetEnv: []string{"A=1"}}, bawn.Isolation{SetEnv: []string{"A=2"}}, bawn.Isolation{}},
		"set here, passed there": { // the host's A must not come through the pattern
			bawn.Isolation{Env: []string{"A*"}, SetEnv: []string{"A1=x"}}, bawn.Isolation{Env: []string{"A*", "A1"}}, bawn.Isolation{Env: []string{"A*"}, SetEnv: []string{"A1="}}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, pair := range [][2]bawn.Isolation{{tt.a, tt.b}, {tt.b, tt.a}} {
				var got bawn.Isolation
				got.Env, got.SetEnv = meetEnv(pair[0], pair[1])
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestShares(t *testing.T) {
	for _, tt := range [][3]int64{{0, 0, 0}, {0, 512, 512}, {0, 200000, 0}, {2048, 4096, 2048}, {1024, 0, 0}} {
		if got, other := meetShares(tt[0], tt[1]), meetShares(tt[1], tt[0]); got != tt[2] || other != tt[2] {
			t.Errorf("%d and %d: %d, %d; want %d", tt[0], tt[1], got, other, tt[2])
		}
	}
}
