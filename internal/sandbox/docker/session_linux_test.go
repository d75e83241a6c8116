package docker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// provide returns a provider on the engine of this test binary.
func provide(t testing.TB, o Options) *Provider {
	t.Helper()
	e := docker.Shared(t)
	if o.Host == "" {
		o.Host = e.Host()
	}
	if o.Image == "" {
		o.Image = e.Image(t, docker.Busybox)
	}
	return New(o, Setting{Program: program, Runtime: runtimePlace(t), Cache: filepath.Join(filepath.Dir(program), "probe"), Environ: []string{"HOME=/home/ada"}})
}

func runtimePlace(t testing.TB) string {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// request is for a session in a workspace with everything that a default
// profile has.
func request(t testing.TB) sandbox.Request {
	t.Helper()
	ws := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return sandbox.Request{
		Session: bawn.Session{ID: "s" + strings.ToLower(strings.NewReplacer("/", "-", "#", "-").Replace(t.Name())), Isolation: bawn.Isolation{
			Workspace: ws, Mounts: []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}}, Protect: true, Env: []string{"HOME", "LANG", "PATH"},
			Resources: bawn.Resources{MemoryMB: 256, PIDs: 100, CPUs: 1, TmpMB: 16, OpenFiles: 256, FileSizeMB: 8, Timeout: time.Minute},
		}},
		Argv: []string{"sh"}, Dir: ws, Environ: []string{"HOME=/home/ada", "LANG=C.UTF-8", "PATH=/opt/host/bin", "TOKEN=secret"}, Home: "/home/ada",
	}
}

// started makes a session and ends it with the test.
func started(t testing.TB, p *Provider, req sandbox.Request) (*guest, *[]sandbox.Denial) {
	t.Helper()
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	var denials []sandbox.Denial
	g, err := p.Start(plan, func(d sandbox.Denial) { denials = append(denials, d) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g.(*guest), &denials
}

// run runs a shell's text and returns what it printed and how it ended.
func run(t testing.TB, g sandbox.Guest, text string) (string, syscall.WaitStatus) {
	t.Helper()
	return execute(t, g, "sh", "-c", text)
}

func execute(t testing.TB, g sandbox.Guest, argv ...string) (string, syscall.WaitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := g.Exec(sandbox.Command{Argv: argv, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var last sandbox.Change
	for c := range p.Changes() {
		last = c
	}
	return string(out), last.Status
}

// TestSession looks at what a guest is, and tries what it may not.
func TestSession(t *testing.T) {
	p := provide(t, Options{})
	req := request(t)
	req.Session.Isolation.Unprotected = []string{"mise.toml"}
	g, denials := started(t, p, req)
	for text, want := range map[string]string{
		"pwd":                                  "/workspace",
		"id -u":                                strconv.Itoa(os.Geteuid()),
		"echo $HOME $PATH [$TOKEN] $LANG":      "/home/ada /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin [] C.UTF-8",
		"touch $HOME/x /tmp/y && echo own":     "own",
		"echo text >made && cat made":          "text",
		"ulimit -n":                            "256",
		"touch /etc/z 2>/dev/null || echo no":  "no",
		"mkdir .vscode 2>/dev/null || echo no": "no",
		"exec 2>/dev/null; mkdir .hg; for p in .hg/hgrc .npmrc mise.toml; do cp /etc/passwd $p && echo $p; done": "mise.toml",
		"grep -cE \"^Cap.*0000000000000000\" /proc/self/status":                                                  "5",
		"grep NoNewPrivs /proc/self/status | cut -f2":                                                            "1",
		"chmod u+w /run/bawn/inside 2>/dev/null || echo no":                                                      "no",
	} {
		if out, status := run(t, g, text); strings.TrimSpace(out) != want {
			t.Errorf("%s: got %q (%d), want %q", text, out, status, want)
		}
	}
	if fi, err := os.Stat(filepath.Join(req.Dir, "made")); err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		t.Errorf("a file of the guest's in the workspace: %v, %v; want it to be the caller's", fi, err)
	}
	var rules []string
	for _, d := range *denials {
		rules = append(rules, d.Rule)
	}
	if !slices.Contains(rules, "protected:.vscode") {
		t.Errorf("denials are of %q; want one of %q", rules, "protected:.vscode")
	}
}

// anybody is the user that stands for an ordinary one.
const anybody = 65534

// TestOrdinaryUser has somebody without any capability make sessions; the
// engine gives the network by a second container.
func TestOrdinaryUser(t *testing.T) {
	e := docker.Shared(t)
	e.Allow(t, anybody)
	a := act{Options: Options{Host: e.Host(), Image: e.Image(t, docker.Busybox)}, Text: "id -u; touch made; mkdir .vscode 2>/dev/null; ls -A"}
	a.Request.Session.Isolation.Network, a.Request.Relay = bawn.NetworkAllowlist, true
	out, err := a.command(t, anybody).CombinedOutput()
	for _, want := range []string{"65534\n", "denied: protected:.vscode /workspace/.vscode\n", "\nmade\n", "sockets 8\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v, %q; want %q in it", err, out, want)
		}
	}
}

// TestNetwork has a guest connect to an address of nobody's, which arrives at
// the relay's socket.
func TestNetwork(t *testing.T) {
	p := provide(t, Options{})
	req := request(t)
	req.Session.Isolation.Network, req.Relay = bawn.NetworkAllowlist, true
	g, _ := started(t, p, req)
	l, err := net.FileListener(g.Network().Connect[0])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			fmt.Fprintln(c, "relay")
			c.Close()
		}
	}()
	if out, _ := run(t, g, "timeout 5 nc 192.0.2.7 443 </dev/null"); out != "relay\n" {
		t.Errorf("a connection of the guest's: got %q, want %q", out, "relay")
	}
	if _, err := g.Dial(g.Network().ProxyPort); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the relay's port is the guest's: %v", err)
	}
}

// TestWorkInPrivatePlaces executes programs where builds put them.
func TestWorkInPrivatePlaces(t *testing.T) {
	g, _ := started(t, provide(t, Options{}), request(t))
	for _, dir := range []string{"/tmp", "/var/tmp", "$HOME", "$PWD", "$XDG_RUNTIME_DIR"} {
		text := fmt.Sprintf("mkdir -p %[1]s/d && printf '#!/bin/sh\necho ran\n' >%[1]s/d/p && chmod +x %[1]s/d/p && %[1]s/d/p", dir)
		if out, _ := run(t, g, text); out != "ran\n" {
			t.Errorf("%s: %q", dir, out)
		}
	}
}

// TestNotFoundNamesTheImage: who misses a program is told whose programs there
// are, and what else it may be.
func TestNotFoundNamesTheImage(t *testing.T) {
	g, _ := started(t, provide(t, Options{}), request(t))
	if out, _ := run(t, g, `echo '#!/nowhere/interpreter' >script; chmod 755 script`); out != "" {
		t.Fatal(out)
	}
	for argv, want := range map[string]string{
		"go":         "not found in the container",
		"./absent":   "relative paths start in /workspace",
		"echo hello": "a line of shell needs a shell",
		"./script":   "/workspace/script is there, but not the program that it needs",
	} {
		_, err := g.Exec(sandbox.Command{Argv: []string{argv}})
		var nf *sandbox.NotFoundError
		if !errors.As(err, &nf) || !nf.Absent || !strings.Contains(nf.Why+"; "+nf.Remedy, want) {
			t.Errorf("%q: %v, %+v; want %q", argv, err, nf, want)
		}
	}
}

// TestRuntimes: one that the engine does not know is refused with those that it
// does, gVisor's with the provider that starts it, and one that it knows starts.
func TestRuntimes(t *testing.T) {
	for runtime, want := range map[string]string{"nothing": `does not know it; use one of ["io.containerd`, "": "", "runc": ""} {
		p := provide(t, Options{Runtime: runtime})
		p.setting.Cache = ""
		_, err := p.Plan(request(t))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), runtime)) {
			t.Errorf("%q: %v; want %q", runtime, err, want)
		}
	}
	info := system.Info{DefaultRuntime: "safe", Runtimes: map[string]system.RuntimeWithStatus{
		"safe": {Runtime: system.Runtime{Path: "/opt/bin/runsc"}}, "shim": {Runtime: system.Runtime{Type: "io.containerd.runsc.v1"}}, "runc": {},
	}}
	for runtime, want := range map[string]string{"": `use provider "gvisor"`, "safe": `use provider "gvisor"`, "shim": `use provider "gvisor"`, "runsc": `use provider "gvisor"`, "runc": "", "crun": "does not know it"} {
		if err := checkRuntime(runtime, info); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v; want %q", runtime, err, want)
		}
	}
}

// TestIdentity: an engine is the same as long as nothing of it changes, and
// another one is not, without any program that it starts to say so.
func TestIdentity(t *testing.T) {
	said := func(version string) string {
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				t.Errorf("the engine is asked for %q", r.URL)
			}
			w.Header().Set("Server", version)
			w.Header().Set("Api-Version", "1.41")
		})}
		go s.Serve(l) // until the test has ended
		t.Cleanup(func() { s.Close() })
		e, err := connect("unix://" + socket)
		if err != nil {
			t.Fatal(err)
		}
		text, err := e.identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	testenv.Need(t, "docker")
	one := said("Docker/1")
	if again := said("Docker/1"); again != one {
		t.Errorf("the same engine is %q and %q", one, again)
	}
	if other := said("Docker/2"); other == one {
		t.Errorf("another engine is %q, too", other)
	}
	if !strings.Contains(one, "|") {
		t.Error("no program of an engine is found on this machine, which has one")
	}
}
