package native

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// answering is a socket of the host that says name to every client.
func answering(t *testing.T, p, name string) {
	t.Helper()
	l, err := net.Listen("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name)) })}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
}

// asks has curl ask each socket, and prints who answered.
func asks(sockets ...string) string {
	var b strings.Builder
	for _, s := range sockets {
		b.WriteString("curl -s --max-time 5 --unix-socket '" + s + "' http://x/ || printf no; echo\n")
	}
	return b.String()
}

// TestShownSocket: of the host's sockets the guest reaches the one that is
// shown to it for that, and no other: neither one beside it, nor one that is
// shown as a mere file, nor one that it could see anyway.
func TestShownSocket(t *testing.T) {
	testenv.Need(t, "userns", "curl")
	ws, host := workspace(t), workspace(t)
	for name, p := range map[string]string{"agent": host + "/agent.sock", "beside": host + "/beside.sock", "file": host + "/file.sock", "workspace": ws + "/w.sock"} {
		answering(t, p, name)
	}
	req := request(ws)
	req.Files = []sandbox.File{{Source: host + "/agent.sock", Target: "/run/bawn/agent.sock"}, {Source: host + "/file.sock", Target: "/run/bawn/file.sock"}}
	req.Sockets = []string{"/run/bawn/agent.sock"}
	got, denials := underPlan(t, req, asks("/run/bawn/agent.sock", "/run/bawn/file.sock", host+"/agent.sock", host+"/beside.sock", ws+"/w.sock")+
		"ln -s /run/bawn/agent.sock /tmp/l\n"+asks("/tmp/l"))
	if want := []string{"agent", "no", "no", "no", "no", "agent"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(denials) != 4 {
		t.Errorf("told of %+v, want four refusals", denials)
	}
	for _, p := range []string{host + "/agent.sock", host + "/beside.sock", host + "/file.sock", ws + "/w.sock"} {
		c, err := net.Dial("unix", p) // the control: nothing but the sandbox is in the way
		if err != nil {
			t.Errorf("outside: %v", err)
			continue
		}
		c.Close()
	}
}

func underPlan(t *testing.T, req sandbox.Request, text string) ([]string, []sandbox.Denial) {
	t.Helper()
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, _, denials := execute(t, p, plan, text)
	return strings.Fields(out), denials
}

// TestShownSocketStays: from inside it can be neither removed nor replaced nor
// moved away, nor can something else come to stand at its path.
func TestShownSocketStays(t *testing.T) {
	testenv.Need(t, "userns", "curl", "python3")
	const at = "/run/bawn/agent.sock"
	const evil = `python3 -c 'import socket
s=socket.socket(socket.AF_UNIX); s.bind("/run/evil.sock"); s.listen()
c,_=s.accept(); c.recv(999); c.sendall(b"HTTP/1.0 200 OK\r\n\r\nevil")' & for i in $(seq 500); do test -S /run/evil.sock && break; sleep 0.04; done;`
	for _, attack := range []string{
		"rm -f " + at, evil + "mv -f /run/evil.sock " + at, evil + "ln -f /run/evil.sock " + at, "mv " + at + " /run/x", "mv /run/bawn /run/x", "rm -rf /run/bawn",
		evil + "mkdir /run/d && ln /run/evil.sock /run/d/agent.sock && mv --exchange /run/d /run/bawn", ": > " + at, "chmod 0 " + at, "ln " + at + " /run/x", "umount " + at, evil + "mount --bind /run/evil.sock " + at,
		`python3 -c 'import os; os.rename("/run/bawn","/run/x")'`, `python3 -c 'import os; os.unlink("` + at + `")'`,
		`python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("` + at + `")'`,
	} {
		ws, host := workspace(t), workspace(t)
		answering(t, host+"/s", "agent")
		before, err := os.Stat(host + "/s")
		if err != nil {
			t.Fatal(err)
		}
		req := request(ws)
		req.Files, req.Sockets = []sandbox.File{{Source: host + "/s", Target: at}}, []string{at}
		got, _ := underPlan(t, req, "exec 2>/dev/null\n("+attack+") >/dev/null && echo done\n"+asks(at)+"test -e /run/x && echo moved\nkill %1\n")
		if strings.Join(got, " ") != "agent" {
			t.Errorf("%s: got %q", attack, got)
		}
		after, err := os.Stat(host + "/s")
		if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
			t.Errorf("%s: the host's socket: %v, %v", attack, after, err)
		}
	}
}

// TestShownSocketIsPinned: what is put in the socket's place between plan and
// start is not shown in its stead.
func TestShownSocketIsPinned(t *testing.T) {
	testenv.Need(t, "userns")
	ws, host := workspace(t), workspace(t)
	answering(t, host+"/s", "agent")
	answering(t, host+"/other", "other")
	req := request(ws)
	req.Files, req.Sockets = []sandbox.File{{Source: host + "/s", Target: "/run/bawn/s"}}, []string{"/run/bawn/s"}
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(host+"/other", host+"/s"); err != nil {
		t.Fatal(err)
	}
	if g, err := p.Start(plan, func(sandbox.Denial) {}); err == nil {
		g.Close()
		t.Error("a session starts with another socket than the one of its plan")
	}
}

func TestSocketsAreRefused(t *testing.T) {
	ws := workspace(t)
	if err := os.WriteFile(filepath.Join(ws, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answering(t, ws+"/s", "x")
	for target, files := range map[string][]sandbox.File{
		"/run/bawn/s":    nil,
		"/run/bawn/x":    {{Source: ws + "/s", Target: "/run/bawn/s"}},
		ws + "/s":        {{Source: ws + "/s", Target: "/run/bawn/s"}},
		"/run/bawn/f":    {{Source: ws + "/file", Target: "/run/bawn/f"}},
		"/run/bawn/d":    {{Source: ws, Target: "/run/bawn/d"}},
		"/run/bawn/../x": {{Source: ws + "/s", Target: "/run/x"}},
	} {
		req := request(ws)
		req.Files, req.Sockets = files, []string{target}
		var fe *layout.FileError
		if p, err := New("").Plan(req); !errors.As(err, &fe) {
			t.Errorf("%s: got %+v, %v", target, p, err)
		}
	}
}
