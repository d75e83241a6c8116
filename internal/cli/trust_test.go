package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestTrust(t *testing.T) {
	h := newConfigHome(t)
	file := h.put("ws/.bawn/config.toml", "mode = 'safe'\n[isolation]\nnetwork = 'full'\n")
	h.fails(newConfigCommand, "would widen", "bawn trust", "check") // control
	out := h.must(newTrustCommand)
	if !strings.Contains(out, "trusted "+file) || !strings.Contains(out, `line 3: isolation.network from "allowlist" to "full"`) {
		t.Errorf("%s", out)
	}
	h.must(newConfigCommand, "check")
	if out := h.must(newTrustCommand, "--list"); !strings.Contains(out, file) || !strings.Contains(out, "line 3: isolation.network") {
		t.Errorf("%s", out)
	}
	var list struct {
		Trusted []struct{ Path, SHA256 string }
	}
	if err := json.Unmarshal([]byte(h.must(newTrustCommand, "--list", "--json")), &list); err != nil || len(list.Trusted) != 1 || list.Trusted[0].Path != file {
		t.Errorf("%+v, %v", list, err)
	}
	h.put("ws/.bawn/config.toml", "mode = 'safe'\n[isolation]\nnetwork = 'full'\n#")
	h.fails(newConfigCommand, "would widen", "bawn trust", "check")
}

func TestTrustForget(t *testing.T) {
	h := newConfigHome(t)
	file := h.put("ws/.bawn/config.toml", "isolation.network = 'full'\n")
	h.must(newTrustCommand, file)
	h.must(newTrustCommand, "--forget")
	h.fails(newConfigCommand, "would widen", "", "check")
	h.fails(newTrustCommand, "is not trusted", "--list", "--forget")
	h.must(newTrustCommand, ".bawn/config.toml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	h.must(newTrustCommand, "--forget", file) // also when it is gone
	if out := h.must(newTrustCommand, "--list", "--json"); !strings.Contains(out, `"trusted": []`) {
		t.Errorf("%s", out)
	}
}

func TestTrustRefuses(t *testing.T) {
	h := newConfigHome(t)
	h.fails(newTrustCommand, "does not exist", "")
	h.fails(newTrustCommand, "is not a project's file", "", "x.toml")
	h.fails(newTrustCommand, "no such file", "", "absent/.bawn/config.toml")
	h.fails(newTrustCommand, "--list takes neither", "alone", "--list", "--forget")
	h.fails(newTrustCommand, "--json goes with --list", "", "--json")
	h.put("ws/.bawn/config.toml", "isolation.network = 'none'\n")
	if out := h.must(newTrustCommand); !strings.Contains(out, "widens nothing") {
		t.Errorf("%s", out)
	}
	h.put("ws/.bawn/config.toml", "isolation.network = 'full'\nisolation.provider = 'native'\n")
	h.fails(newTrustCommand, "whether trusted or not", "")
	h.put(".local/state/bawn/trust.json", "{")
	h.put("ws/.bawn/config.toml", "isolation.network = 'full'\n")
	h.fails(newTrustCommand, "remove it and trust again", "", "--list")
	h.fails(newTrustCommand, "remove it and trust again", "", "--forget")
}
