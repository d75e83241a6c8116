package supervise

import (
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// TestPrivateGitIsNoWorkspace: what is mounted over a place of the workspace out of
// Bawn's own directories is neither a place that links may lead to nor one whose links
// a program of the host follows.
func TestPrivateGitIsNoWorkspace(t *testing.T) {
	const state = "/home/ada/.local/state/bawn"
	for source, why := range map[string]string{state + "/git/1": "", "/srv/a": layout.WhyPrivateGit, "/srv/b/inside": layout.WhyPrivateCache} {
		r := newLinkRule(&layout.Plan{
			Home: "/home/ada", Own: []string{state}, Protected: []string{"/home/ada/p", "/home/ada/p/.git"},
			Mounts: []layout.Mount{{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindBind, Source: "/home/ada/p", Target: "/home/ada/p"}, {Kind: layout.KindBind, Source: source, Target: "/home/ada/p/.git", Why: why}},
		}, 1000)
		for _, p := range []string{source, source + "/hooks", "/home/ada", "/etc/passwd", state} {
			if root, ok := r.inRoot(p); ok {
				t.Errorf("%q is taken for a part of %q", p, root.host)
			}
		}
		if got := r.onHost("/home/ada/p/.git/x"); got != "" {
			t.Errorf("the private directory is on the host at %q", got)
		}
		if _, ok := r.inRoot(r.onHost("/home/ada/p/x")); !ok {
			t.Error("the workspace is none")
		}
	}
}

// TestWorkspaceNamedAsInASeal: the rule holds for a workspace, whatever its name.
func TestWorkspaceNamedAsInASeal(t *testing.T) {
	const ws = "/home/ada/inside"
	r := newLinkRule(&layout.Plan{
		Home: "/home/ada", Protected: []string{ws},
		Mounts: []layout.Mount{{Kind: layout.KindRoot, Source: "/", Target: "/"}, {Kind: layout.KindBind, Source: ws, Target: ws}},
	}, 1000)
	if got := r.onHost(ws + "/x"); got != ws+"/x" {
		t.Errorf("the workspace is on the host at %q", got)
	}
	if _, ok := r.inRoot(ws + "/x"); !ok {
		t.Error("the workspace is not a place whose links are looked at")
	}
}
