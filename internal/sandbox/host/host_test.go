package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

func request(argv ...string) sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "h0st", Isolation: bawn.Isolation{
			Workspace: "/w", Protect: true, Env: []string{"PATH", "LC_*"}, SetEnv: []string{"MODE=set"},
			Resources: bawn.Resources{MemoryMB: 512, PIDs: 64, OpenFiles: 40, FileSizeMB: 1, Timeout: time.Minute},
		}},
		Argv: argv, Dir: "/", Environ: []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "AWS_SECRET_ACCESS_KEY=hidden", "LCX=1"},
	}
}

func TestEnvironment(t *testing.T) {
	req := request("true")
	req.SetEnv = []string{"MODE=asked"}
	want := []string{"BAWN_SESSION=h0st", "LC_ALL=C", "MODE=asked", "PATH=/usr/bin:/bin", "PWD=/"}
	if got := plan(req, unenforced()).Environ(); !slices.Equal(got, want) {
		t.Errorf("environment %q; want %q", got, want)
	}
	req.Session.Isolation.Env = []string{"*"} // control: the list is what keeps it out
	if got := plan(req, unenforced()).Environ(); !slices.Contains(got, "AWS_SECRET_ACCESS_KEY=hidden") {
		t.Errorf("environment %q; want all of it", got)
	}
}

// TestNothingIsClaimed: an attribute that is not enforced is said,
// each by its name, and the host's places are shown as they are.
func TestNothingIsClaimed(t *testing.T) {
	p := New()
	n, err := p.Plan(request("true"))
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, c := range n.(*Plan).Unenforced {
		if c.Strength != bawn.Unenforced || c.Why == "" {
			t.Errorf("%+v: want it unenforced, and why", c)
		}
		missing = append(missing, c.Attribute)
	}
	for _, a := range []string{sandbox.FSWrite, sandbox.FSRead, sandbox.FSProtect, sandbox.FSPrivate, sandbox.Processes, sandbox.IPC, sandbox.Kernel, sandbox.Terminal, sandbox.NetNone} {
		if !slices.Contains(missing, a) {
			t.Errorf("%s is not listed as unenforced in %v", a, missing)
		}
	}
	if places := n.Places(); len(places) != 1 || places[0].Path != "/" || places[0].Access != bawn.ReadWrite {
		t.Errorf("places %v; want all of the host, read and written", places)
	}
	if !sandbox.AbilitiesOf(p).Unsandboxed {
		t.Error("the provider does not say that it isolates nothing")
	}
	if _, err := sandbox.Negotiate(request("true").Session.Isolation, p); err == nil || !strings.Contains(err.Error(), "fs.write") {
		t.Errorf("negotiation: %v; want every attribute refused", err)
	}
}
