package cli

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/verb"
)

func TestTrust(t *testing.T) {
	h := newConfigHome(t)
	file := h.put("ws/.bawn/config.toml", "mode = 'safe'\n[isolation]\nnetwork = 'full'\n")
	h.fails(newConfigCommand, "would widen", "bawn trust", "check") // control
	out := h.must(newTrustCommand, "--yes")
	if !strings.Contains(out, "trusted "+file) {
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

// TestTrustAsks: only who sees the question and types the answer trusts a
// file, and what is trusted are the bytes that were shown.
func TestTrustAsks(t *testing.T) {
	h := newConfigHome(t)
	h.put("ws/.bawn/config.toml", "isolation.network = 'full'\n")
	var ce *verb.Error
	if _, err := h.run(newTrustCommand); !errors.As(err, &ce) || ce.Code != verb.ExitDenied || !strings.Contains(ce.Hint, "--yes") {
		t.Errorf("without a terminal: %v", err)
	}
	for _, c := range []struct {
		typed   string
		swapped bool
		trusted bool
	}{{typed: "no\n"}, {typed: "\n"}, {typed: "yes\n", swapped: true}, {typed: "yes\n", trusted: true}} {
		said, err := h.atTerminal(c.typed, func() {
			if c.swapped {
				h.put("ws/.bawn/config.toml", "isolation.network = 'full'\nisolation.rw = ['/data']\n")
			}
		})
		if (err == nil) != (c.typed == "yes\n") || !strings.Contains(said, `isolation.network from "allowlist" to "full"`) {
			t.Errorf("%+v: %v, %q", c, err, said)
		}
		if _, err := h.run(newConfigCommand, "check"); (err == nil) != c.trusted {
			t.Errorf("%+v: the project's file passes: %t (%v)", c, err == nil, err)
		}
		h.put("ws/.bawn/config.toml", "isolation.network = 'full'\n")
	}
}

// atTerminal runs "bawn trust" at a terminal at which a human does something
// after the question and then types, and returns what the human saw.
func (h configHome) atTerminal(typed string, before func()) (string, error) {
	h.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		h.Fatal(err)
	}
	defer master.Close()
	seen := make(chan string, 1)
	go func() {
		var all []byte
		one, asked := make([]byte, 256), false
		for {
			n, err := master.Read(one)
			all = append(all, one[:n]...)
			if !asked && strings.Contains(string(all), "[yes/no]") {
				asked = true
				before()
				_, _ = master.WriteString(typed)
			}
			if err != nil {
				seen <- string(all)
				return
			}
		}
	}()
	e := h.env()
	e.Stdin, e.Stdout, e.Stderr = tty, tty, tty
	c := newTrustCommand(e)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(nil)
	err = c.Execute()
	if closing := tty.Close(); closing != nil {
		h.Error(closing)
	}
	return <-seen, err
}

func TestTrustForget(t *testing.T) {
	h := newConfigHome(t)
	file := h.put("ws/.bawn/config.toml", "isolation.network = 'full'\n")
	h.must(newTrustCommand, "--yes", file)
	h.must(newTrustCommand, "--forget")
	h.fails(newConfigCommand, "would widen", "", "check")
	h.fails(newTrustCommand, "is not trusted", "--list", "--forget")
	h.must(newTrustCommand, "--yes", ".bawn/config.toml")
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
