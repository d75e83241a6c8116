package launch

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/session"
)

// TestBelow: a child is told what it must not exceed, and where its guest is.
func TestBelow(t *testing.T) {
	k := &children{parent: session.Parent{Session: bawn.Session{ID: "s"}, Depth: 1}}
	w := &childRequest{spec: session.Spec{Argv: session.Words{"ls"}, Dir: "/w/sub"}, dir: "/w/sub", from: "/w", environ: []string{"A=1", "B=\xff"}}
	s := k.below(w)
	if s.Parent == &k.parent || s.Parent.Depth != 2 || s.Parent.Dir != "/w" || !slices.Equal(s.Parent.Environ, w.environ) || s.Dir != "/w/sub" {
		t.Errorf("%+v below %+v", s, s.Parent)
	}
	k.split = []string{"ZONE=execution"}
	if s := k.below(w); !slices.Equal(s.Parent.Environ, k.split) {
		t.Errorf("the command's zone has %q; want %q", s.Parent.Environ, k.split)
	}
}

// TestCheckOfARequest: no flag that is a person's comes from a guest.
func TestCheckOfARequest(t *testing.T) {
	k := &children{env: &Env{}, parent: session.Parent{Session: bawn.Session{Isolation: bawn.Isolation{Workspace: "/w"}}}}
	wished := func(args ...string) error {
		_, err := k.check(&intent.Run{Dir: "/w", Args: args})
		return err
	}
	if err := wished("--memory", "512m", "--", "ls"); err != nil {
		t.Fatal(err)
	}
	for _, name := range refusedFlags {
		if err := wished("--"+name+"="+map[bool]string{true: "true", false: "x"}[slices.Contains([]string{"plan", "detach", "attachable", "split", "copy"}, name)], "--", "ls"); err == nil {
			t.Errorf("--%s is taken from a guest", name)
		}
	}
	for _, name := range []string{"hosted", "child", "asks", "no-hooks"} {
		if err := wished("--"+name, "--", "ls"); err == nil {
			t.Errorf("--%s is a flag", name)
		}
	}
}
