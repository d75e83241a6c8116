package layout

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestCopy: with a layer the workspace and what lies in it are a mount of their own, in
// which no name is protected; beside it all is as without. A layer in the workspace is
// refused.
func TestCopy(t *testing.T) {
	m := append(slices.Clone(laptop), "/home/ada/p/sub/", "/home/ada/p/.envrc", "/home/ada/out/", "/home/ada/.local/state/bawn/layer/", "/home/ada/p/layer/")
	req := plain("/home/ada/p")
	addMount(&req, "/home/ada/p/sub", bawn.ReadWrite)
	addMount(&req, "/home/ada/out", bawn.ReadWrite)
	at := func(p *Plan, target string) (kind string) {
		for _, m := range p.Mounts {
			if m.Target == target {
				kind = m.Kind
			}
		}
		return kind
	}
	live, err := Layout(req, m.facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	req.Copy = "/home/ada/.local/state/bawn/layer"
	copied, err := Layout(req, m.facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string][2]string{
		"/home/ada/p": {KindBind, KindCopy}, "/home/ada/p/sub": {KindBind, ""}, "/home/ada/p/.envrc": {KindBindRO, ""}, "/home/ada/out": {KindBind, KindBind},
	} {
		if got := [2]string{at(live, target), at(copied, target)}; got != want {
			t.Errorf("%s is mounted as %q; want %q", target, got, want)
		}
	}
	if want := []string{"/home/ada/out"}; !slices.Equal(copied.Protected, want) || !slices.Contains(live.Protected, "/home/ada/p") {
		t.Errorf("names are protected below %q, live below %q", copied.Protected, live.Protected)
	}
	if !slices.Contains(copied.Landlock.Writable, "/home/ada/p") {
		t.Error("Landlock closes the copy")
	}
	for _, layer := range []string{"/home/ada/p/layer", "/home/ada/p", "/home/ada/absent", "/home/ada/p/.envrc"} {
		req.Copy = layer
		if _, err := Layout(req, m.facts(1000)); err == nil || !strings.Contains(err.Error(), "layer") {
			t.Errorf("layer %q: %v", layer, err)
		}
	}
}
