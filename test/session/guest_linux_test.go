package session_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestGuestSeesNoSession: a guest can neither read the registry nor attach, also
// where its isolation was opened for the directory around it.
func TestGuestSeesNoSession(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh", "-c", "echo prom''pt; read x")
	testenv.Until(t, "the prompt", func() bool { return h.bawn(0, "logs", id).out == "prompt\n" })
	place := filepath.Join(h.registry, "sessions", id)
	try := "cat " + place + "/session.json " + place + "/output.log; find " + h.registry + "; ls -d " + place +
		"; XDG_RUNTIME_DIR=" + h.dir + "/run XDG_STATE_HOME=" + h.dir + "/state timeout 1 " + h.bin + "/bawn attach --read-only " + id + "; exit 0"
	r := h.run("sh", "-c", try) // the control
	if strings.Count(r.out, "prompt") != 2 || !strings.Contains(r.out, "attach.sock") || !strings.Contains(r.out, `"id":"`+id) {
		t.Fatalf("outside is %q, %q", r.out, r.err)
	}
	for _, flags := range [][]string{{}, {"--rw", filepath.Join(h.dir, "run")}, {"--rw", h.dir + "/run", "--rw", h.dir + "/state"}} {
		args := append(append([]string{"bawn", "run", "-q", "--net", "none"}, flags...), "--", "sh", "-c", try)
		if r := h.run(args...); strings.Contains(r.out, id) || strings.Contains(r.out, "prompt") {
			t.Errorf("%q: a guest sees %q", flags, r.out)
		}
	}
	// Landlock hides no names.
	r = h.run("bawn", "run", "-q", "--net", "none", "--provider", "landlock", "--", "sh", "-c", try)
	if strings.Contains(r.out, "prompt") || strings.Contains(r.out, `"id"`) {
		t.Errorf("landlock: a guest sees %q", r.out)
	}
}

// TestConfinedCantAttach: who is more confined than the host may be a guest, and
// is refused, also where it could reach the socket.
func TestConfinedCantAttach(t *testing.T) {
	h := newHome(t)
	id := h.detach("sh")
	for _, confined := range [][]string{{"unshare", "--user", "--map-root-user"}, {"unshare", "--user", "--map-root-user", "--pid", "--fork"}} {
		argv := append(confined, filepath.Join(h.bin, "bawn"), "attach", "--read-only", id)
		p := h.openTerminal(argv...)
		p.ends(126)
		p.sees("only processes outside of every sandbox")
		if s := p.screen(); strings.Contains(s, "$ ") {
			t.Errorf("%q sees %q", confined, s)
		}
	}
	p := h.openTerminal("bawn", "attach", "--read-only", id) // the control
	p.sees("$ ")
	if s := h.sessions(); len(s) != 1 || s[0].State != attach.Running {
		t.Errorf("the session is %+v", s)
	}
}
