package containers

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/dockerapi"
)

// No guest gets an engine that containers get out of, unless its user says so:
// that is said at the start, and recorded. doctor knows it, too.
func TestUnsafeEngine(t *testing.T) {
	w := newWorld(t)
	found := dockerapi.Trial(t.Context(), w.engine.Socket, "")
	if found.Untried != "" {
		t.Fatal(found)
	}
	doctor := func() (ok, refused bool, text string) {
		var seen struct {
			Checks []struct {
				Name, Detail, Remedy string
				OK, Refused          bool
			}
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(build(t), "bawn"), "doctor", "--json")
		cmd.Dir, cmd.Env = w.project, w.environ
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &seen); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, c := range seen.Checks {
			if c.Name == "containers of guests" {
				return c.OK, c.Refused, c.Detail + "; " + c.Remedy
			}
		}
		t.Fatalf("doctor says nothing of the engine: %s", out)
		return false, false, ""
	}
	w.configure("")
	if ok, refused, text := doctor(); ok == found.Escapes || refused != found.Escapes || found.Escapes && !strings.Contains(text, "upgrade runc") {
		t.Errorf("the trial says %+v, doctor ok %v, refused %v: %s", found, ok, refused, text)
	}
	out, err := w.command("--docker", "--", "true").CombinedOutput()
	refused := err != nil && strings.Contains(string(out), "CVE-2025-31133") && strings.Contains(string(out), "upgrade runc") && strings.Contains(string(out), "accept_escapes = true")
	if refused != found.Escapes {
		t.Errorf("the trial says %+v; bawn run: %v: %s", found, err, out)
	}
	if !found.Escapes {
		return // there is nothing to accept
	}
	if err := os.WriteFile(filepath.Join(w.project, "bawn.toml"), []byte("[isolation.docker_options]\naccept_escapes = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := w.command("--docker", "--", "true").CombinedOutput(); err == nil {
		t.Errorf("a project accepts it: %s", out)
	}
	if err := os.Remove(filepath.Join(w.project, "bawn.toml")); err != nil {
		t.Fatal(err)
	}
	w.configure("[isolation.docker_options]\naccept_escapes = true\n")
	if _, refused, text := doctor(); refused || !strings.Contains(text, "accept_escapes permits it") {
		t.Errorf("accepted: doctor: %s", text)
	}
	if out, err := w.command("--docker", "--", "true").CombinedOutput(); err != nil || !strings.Contains(string(out), "warning: containers get out of") {
		t.Errorf("accepted: %v: %s", err, out)
	}
	log := exec.CommandContext(t.Context(), filepath.Join(build(t), "bawn"), "audit", "export")
	log.Dir, log.Env = w.project, w.environ
	if out, err := log.CombinedOutput(); err != nil || !strings.Contains(string(out), "docker:engine") {
		t.Errorf("the log does not have it: %v: %s", err, out)
	}
}
