package layout

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestOwnNames: names go to the kernel where all that a guest writes is the session's
// own and Landlock holds the rest, and in no other session.
func TestOwnNames(t *testing.T) {
	m := append(slices.Clone(laptop), "/home/ada/p/sub/", "/home/ada/out/", "/home/ada/.local/state/bawn/layer/", "/tmp/w/", "/tmp/w/q/", "/tmp/w/q/key", "/tmp/r/", "/tmp/r/key")
	inTmp := func(r *sandbox.Request, hidden string) {
		r.Dir, r.Session.Isolation.Workspace, r.Session.Isolation.Mounts = "/tmp/w/q", "/tmp/w/q", nil
		addMount(r, "/tmp/w/q", bawn.ReadWrite)
		addMount(r, hidden, bawn.Hidden)
	}
	for _, c := range []struct {
		name   string
		change func(*sandbox.Request, *Facts)
		want   bool
	}{
		{"a copy", func(*sandbox.Request, *Facts) {}, true},
		{"the workspace itself", func(r *sandbox.Request, _ *Facts) { r.Copy = "" }, false},
		{"a workspace to read", func(r *sandbox.Request, _ *Facts) {
			r.Copy, r.Session.Isolation.Mounts = "", []bawn.Mount{{Path: "/home/ada/p", Access: bawn.ReadOnly, Why: "workspace"}}
		}, false},
		{"a copy and a place beside it", func(r *sandbox.Request, _ *Facts) { addMount(r, "/home/ada/out", bawn.ReadWrite) }, false},
		{"a copy and a file to read", func(r *sandbox.Request, _ *Facts) { addMount(r, "/home/ada/out", bawn.ReadOnly) }, true},
		{"a copy and a hidden file", func(r *sandbox.Request, _ *Facts) { addMount(r, "/home/ada/p/sub", bawn.Hidden) }, true},
		{"a copy below /tmp", func(r *sandbox.Request, _ *Facts) { inTmp(r, "/home/ada/p/sub") }, true},
		{"a hidden file of a copy below /tmp", func(r *sandbox.Request, _ *Facts) { inTmp(r, "/tmp/w/q/key") }, false},
		{"a copy and a hidden pattern", func(r *sandbox.Request, _ *Facts) { addMount(r, "/home/ada/p/*.key", bawn.Hidden) }, false},
		{"a file of the host as standard input", func(r *sandbox.Request, _ *Facts) { r.NoFiles = false }, false},
		{"held programs", func(r *sandbox.Request, _ *Facts) { r.Programs = &sandbox.Programs{} }, false},
		{"Landlock without truncation", func(_ *sandbox.Request, f *Facts) { f.LandlockABI = 2 }, false},
		{"no Landlock", func(_ *sandbox.Request, f *Facts) { f.LandlockABI = 0 }, false},
	} {
		req, facts := plain("/home/ada/p"), m.facts(1000)
		req.Copy, req.NoFiles = "/home/ada/.local/state/bawn/layer", true
		c.change(&req, &facts)
		p, err := Layout(req, facts)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if p.OwnNames(req.NoFiles); p.OwnFiles != c.want {
			t.Errorf("%s: the kernel decides: %v", c.name, p.OwnFiles)
		}
		if slices.Contains(p.Landlock.Writable, "/dev/null") != c.want {
			t.Errorf("%s: Landlock leaves %q writable", c.name, p.Landlock.Writable)
		}
	}
	var lower Plan
	if lower.OwnNames(true); lower.OwnFiles {
		t.Error("a plan of no rung leaves names to the kernel")
	}
}
