package relay

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// script connects to a socket and prints what it is told.
const script = `import socket
s = socket.socket(socket.AF_UNIX); s.connect("%s"); print(s.recv(999).decode(), end="")`

// TestGuestIsNoHuman has guests connect to the socket of the API. The one is
// even shown it, which no session does: then its supervisor connects for it, and
// a host is no frontend either. The control is a process beside, of no host.
func TestGuestIsNoHuman(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "python3")
	for name, p := range map[string]sandbox.Provider{"native": native.New(""), "landlock": native.NewLandlock("")} {
		t.Run(name, func(t *testing.T) {
			dir := outside(t)
			r, l := serveAPI(t, dir)
			got := inGuest(t, p, dir, l.Addr().String(), name == "native")
			if strings.Contains(got, "welcome") {
				t.Errorf("a guest is told %q", got)
			}
			t.Logf("the guest gets %q", got)
			if name != "native" {
				return
			}
			refusals := 0
			for e, err := range audit.Query(r.AuditDir, audit.Filter{}) {
				must(t, err)
				if e.Event.Rule == "builtin:peer-refused" && e.Event.Resolved == bawn.Deny {
					refusals++
				}
			}
			if refusals != 1 || !strings.Contains(got, "refused") {
				t.Errorf("%d refusals are in the log; want 1", refusals)
			}
			r.Runtime = filepath.Join(dir, "elsewhere") // where no session is: we are no host
			conn, err := net.Dial("unix", l.Addr().String())
			must(t, err)
			defer conn.Close()
			if said, _ := io.ReadAll(conn); string(said) != "welcome\n" {
				t.Errorf("the control is told %q", said)
			}
		})
	}
}

// outside is a directory that no sandbox covers by one of its own.
func outside(t *testing.T) string {
	t.Helper()
	base := "/var/lib"
	if os.Geteuid() != 0 {
		var err error
		base, err = os.UserHomeDir()
		must(t, err)
	}
	dir, err := os.MkdirTemp(base, "bawn-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serveAPI serves the socket of the API; this process is a host to it.
func serveAPI(t *testing.T, dir string) (*Relay, net.Listener) {
	t.Helper()
	r := &Relay{Options: optionsIn(dir), Log: slog.New(slog.DiscardHandler)}
	var err error
	r.Audit, err = audit.Open(r.AuditDir, audit.Options{})
	must(t, err)
	l, err := r.Listen(places.APISocket)
	must(t, err)
	place, err := attach.Register(r.Runtime, attach.Entry{ID: "test", PID: os.Getpid(), Started: time.Now()})
	must(t, err)
	t.Cleanup(func() { l.Close(); place.Remove(); r.Audit.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := r.AdmitHuman(conn); err != nil {
				fmt.Fprintln(conn, "refused:", err)
			} else {
				fmt.Fprintln(conn, "welcome")
			}
			conn.Close()
		}
	}()
	return r, l
}

// inGuest runs the script in a sandbox, which may be shown the socket.
func inGuest(t *testing.T, p sandbox.Provider, dir, socket string, show bool) string {
	t.Helper()
	ws := filepath.Join(dir, "ws")
	must(t, os.Mkdir(ws, 0o700))
	req := sandbox.Request{
		Session: bawn.Session{ID: "test", Isolation: bawn.Isolation{Workspace: ws, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts: []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}}, Resources: bawn.Resources{TmpMB: 64}}},
		Argv: []string{"sh"}, Dir: ws, Environ: os.Environ(),
	}
	if show {
		const at = "/run/bawn/relay.sock"
		req.Files, req.Sockets = []sandbox.File{{Source: socket, Target: at}}, []string{at}
		socket = at
	}
	plan, err := p.Plan(req)
	must(t, err)
	g, err := p.Start(plan, func(d sandbox.Denial) { t.Logf("denied: %+v", d) })
	must(t, err)
	defer g.Close()
	r, w, err := os.Pipe()
	must(t, err)
	null, err := os.Open(os.DevNull)
	must(t, err)
	proc, err := g.Exec(sandbox.Command{Argv: []string{"python3", "-c", fmt.Sprintf(script, socket)}, Stdio: [3]*os.File{null, w, w}})
	must(t, err)
	w.Close()
	out, _ := io.ReadAll(r)
	for range proc.Changes() { //nolint:revive // until it has ended
	}
	return string(out)
}
