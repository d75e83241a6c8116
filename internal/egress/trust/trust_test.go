package trust

import (
	"path"
	"slices"
	"testing"
)

func TestPlacementIsWhole(t *testing.T) {
	p := Place("/run/bawn/trust")
	seen := map[string]bool{}
	for _, v := range p.Env {
		if seen[v.Name] || v.Value == "" {
			t.Errorf("%s is set twice, or to nothing: %q", v.Name, v.Value)
		}
		seen[v.Name] = true
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "JAVA_TOOL_OPTIONS"} {
		if !seen[name] {
			t.Errorf("%s is not set", name)
		}
	}
	for _, file := range slices.Concat(p.Bundles, p.Java) {
		if !path.IsAbs(file) || path.Clean(file) != file {
			t.Errorf("%q is no clean absolute path", file)
		}
	}
}

func TestPlacementsDoNotShareMemory(t *testing.T) {
	a := Place("/a")
	a.Bundles[0], a.Java[0] = "changed", "changed"
	b := Place("/b")
	if b.Bundles[0] == "changed" || b.Java[0] == "changed" {
		t.Error("changing one placement changed the next")
	}
}
