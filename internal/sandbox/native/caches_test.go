package native

import (
	"slices"
	"testing"
)

// TestCachesHoldAnyName: what a package manager keeps may be called as it likes in
// a cache inside of a writable place, and nowhere else.
func TestCachesHoldAnyName(t *testing.T) {
	p := newProtector([]string{"/srv/p"}, nil, nil)
	p.caches = cacheMounts([]Mount{{Target: "/srv/p/go", Why: whySharedCache}, {Target: "/srv/p/own", Why: "writable"}, {Target: "/srv/p/.npm", Why: whyPrivateCache}})
	if !slices.Equal(p.caches, []string{"/srv/p/go", "/srv/p/.npm"}) {
		t.Errorf("caches are %q", p.caches)
	}
	p.guarded = []string{"/srv/p/go/guarded"}
	for path, want := range map[string]ruling{
		"/srv/p/go/mod/x/.agents": rulingAllow, "/srv/p/.npm/a/.vscode/tasks.json": rulingAllow,
		"/srv/p/go/../.vscode": rulingDeny, "/srv/p/gone/.vscode": rulingDeny, "/srv/p/own/.vscode": rulingDeny, "/srv/p/.vscode": rulingDeny, "/srv/p/go/guarded": rulingDeny,
	} {
		for _, op := range []operation{opOpen, opMkdir, opRenameTo, opSymlink} {
			if got, rule := p.rule(op, path, false); got != want {
				t.Errorf("%d %s: %v (%s), want %v", op, path, got, rule, want)
			}
		}
	}
}

// TestPlacesInMemory: in a place that ends with the session names mean nothing to
// the host, and those of a workspace below such a place mean what they mean.
func TestPlacesInMemory(t *testing.T) {
	p := newProtector([]string{"/srv/p", "/tmp/w"}, nil, nil)
	p.caches = cacheMounts([]Mount{{Target: "/tmp", Kind: KindTmpfs}, {Target: "/srv/p/snapshot", Kind: KindTmpfs}})
	for path, want := range map[string]ruling{
		"/srv/p/snapshot/x/.vscode": rulingAllow, "/srv/p/snapshot": rulingAllow,
		"/tmp/w/.vscode": rulingDeny, "/tmp/w/a/.envrc": rulingDeny, "/srv/p/.vscode": rulingDeny, "/srv/p/snapshots/.vscode": rulingDeny,
	} {
		if got, rule := p.rule(opOpen, path, false); got != want {
			t.Errorf("%s: %v (%s), want %v", path, got, rule, want)
		}
	}
}
