package layout

import (
	"slices"
	"testing"
)

// TestCachesHoldAnyName: what a package manager keeps may be called as it likes in
// a cache inside of a writable place, and nowhere else.
func TestCachesHoldAnyName(t *testing.T) {
	p := NewProtector([]string{"/srv/p"}, nil, nil)
	p.Caches = CacheMounts([]Mount{{Target: "/srv/p/go", Why: WhySharedCache}, {Target: "/srv/p/own", Why: "writable"}, {Target: "/srv/p/.npm", Why: WhyPrivateCache}})
	if !slices.Equal(p.Caches, []string{"/srv/p/go", "/srv/p/.npm"}) {
		t.Errorf("caches are %q", p.Caches)
	}
	p.Guarded = []string{"/srv/p/go/guarded"}
	for path, want := range map[string]Ruling{
		"/srv/p/go/mod/x/.agents": RulingAllow, "/srv/p/.npm/a/.vscode/tasks.json": RulingAllow,
		"/srv/p/go/../.vscode": RulingDeny, "/srv/p/gone/.vscode": RulingDeny, "/srv/p/own/.vscode": RulingDeny, "/srv/p/.vscode": RulingDeny, "/srv/p/go/guarded": RulingDeny,
	} {
		for _, op := range []Operation{OpOpen, OpMkdir, OpRenameTo, OpSymlink} {
			if got, rule := p.Rule(op, path, false); got != want {
				t.Errorf("%d %s: %v (%s), want %v", op, path, got, rule, want)
			}
		}
	}
}

// TestPlacesInMemory: in a place that ends with the session names mean nothing to
// the host, and those of a workspace below such a place mean what they mean.
func TestPlacesInMemory(t *testing.T) {
	p := NewProtector([]string{"/srv/p", "/tmp/w"}, nil, nil)
	p.Caches = CacheMounts([]Mount{{Target: "/tmp", Kind: KindTmpfs}, {Target: "/srv/p/snapshot", Kind: KindTmpfs}})
	for path, want := range map[string]Ruling{
		"/srv/p/snapshot/x/.vscode": RulingAllow, "/srv/p/snapshot": RulingAllow,
		"/tmp/w/.vscode": RulingDeny, "/tmp/w/a/.envrc": RulingDeny, "/srv/p/.vscode": RulingDeny, "/srv/p/snapshots/.vscode": RulingDeny,
	} {
		if got, rule := p.Rule(OpOpen, path, false); got != want {
			t.Errorf("%s: %v (%s), want %v", path, got, rule, want)
		}
	}
}

// TestBeside: a worktree of git's beside the workspace is told from other places.
func TestBeside(t *testing.T) {
	p := NewProtector([]string{"/srv/p", "/"}, nil, nil)
	for at, want := range map[string]bool{"/srv/beside": true, "/srv/p/inside": false, "/srv/other/deep": false, "/srv": false, "/etc": false} {
		if got := p.Beside(at); got != want {
			t.Errorf("%s: %t", at, got)
		}
	}
}
