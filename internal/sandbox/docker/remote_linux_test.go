package docker

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// A lines is what was reported.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// far is an engine elsewhere, and where workspaces are that it does not see.
type far struct {
	*docker.Elsewhere
	around string
	cache  string
	said   *lines
}

func elsewhere(t *testing.T) *far {
	t.Helper()
	around := t.TempDir()
	return &far{Elsewhere: docker.StartElsewhere(t, around), around: around, cache: filepath.Join(t.TempDir(), "cache"), said: &lines{}}
}

func (f *far) provider(t *testing.T, o Options) *Provider {
	t.Helper()
	if o.Host == "" {
		o.Host, o.Certs = f.Address, f.Certs
	}
	o.Image, o.Remote = f.Image(t, docker.Busybox), true
	return New(o, Setting{Program: program, Runtime: placeFor(t), Cache: f.cache, Environ: []string{"HOME=/home/ada"}, Report: f.said})
}

// request is for a session in a workspace with files.
func (f *far) request(t *testing.T, files map[string]string) sandbox.Request {
	t.Helper()
	req := request(t)
	ws, err := os.MkdirTemp(f.around, "ws")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	req.Dir = ws
	req.Session.Isolation.Workspace, req.Session.Isolation.Mounts[0].Path = ws, ws
	return req
}

// TestRemote makes sessions with an engine that has neither this machine's files
// nor its processes nor its network.
func TestRemote(t *testing.T) {
	testenv.Whole(t)
	f := elsewhere(t)
	for name, test := range map[string]func(*testing.T, *far){
		"session": remoteSession, "no network": remoteNoNetwork, "by name": remoteByName, "return": remoteReturn, "meanwhile": remoteMeanwhile, "read-only": remoteReadOnly,
		"refused": remoteRefused, "by a socket": remoteSocket, "killed": remoteKilled, "limit": remoteLimit, "another's certificate": remoteImpostor, "an ordinary user": remoteUserTest,
	} {
		t.Run(name, func(t *testing.T) {
			before := f.things(t)
			t.Cleanup(func() { // after the sessions' ends
				if left := f.leftOf(t, before); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
			test(t, f)
		})
	}
}

// things are the containers and volumes that the engine has.
func (f *far) things(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(f.Inventory(t), func(s string) bool {
		return !strings.HasPrefix(s, "container ") && !strings.HasPrefix(s, "volume ") && !strings.HasPrefix(s, "network ")
	})
}

// leftOf waits until there is no more than before.
func (f *far) leftOf(t *testing.T, before []string) (left []string) {
	t.Helper()
	for range 50 {
		left = slices.DeleteFunc(f.things(t), func(s string) bool { return slices.Contains(before, s) })
		if len(left) == 0 {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return left
}

// inside runs lines of shell and wants their outputs.
func wantOutputs(t *testing.T, g sandbox.Guest, want map[string]string) {
	t.Helper()
	for text, want := range want {
		if out, status := run(t, g, text); strings.TrimSpace(out) != want {
			t.Errorf("%s: got %q (%d), want %q", text, out, status, want)
		}
	}
}

func remoteSession(t *testing.T, f *far) {
	req := f.request(t, map[string]string{"a": "text", "dir/b": "more"})
	g, _ := started(t, f.provider(t, Options{}), req)
	wantOutputs(t, g, map[string]string{
		"pwd":                                 "/workspace",
		"id -u":                               "1000",
		"cat a dir/b":                         "textmore",
		"stat -c %u:%g a . dir":               "1000:1000\n1000:1000\n1000:1000",
		"echo $HOME [$TOKEN] $LANG":           "/home/ada [] C.UTF-8",
		"touch $HOME/x /tmp/y && echo own":    "own",
		"touch /etc/z 2>/dev/null || echo no": "no",
		"touch /run/bawn/z 2>/dev/null || echo no":              "no",
		"grep -cE \"^Cap.*0000000000000000\" /proc/self/status": "5",
		"grep NoNewPrivs /proc/self/status | cut -f2":           "1",
		"ls -A " + f.around + " 2>/dev/null | wc -l":            "0", // of this machine's files nothing is there
		"ls /bawn 2>/dev/null || echo no":                       "no",
		"ulimit -n":                                             "256",
	})
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// remoteNoNetwork tries to reach what the engine's machine has. The control is the
// engine, which is there.
func remoteNoNetwork(t *testing.T, f *far) {
	c, err := f.Dial(2376)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	c.Close()
	g, _ := started(t, f.provider(t, Options{}), f.request(t, nil))
	wantOutputs(t, g, map[string]string{
		"ls /sys/class/net": "lo",
		"nc -w 2 127.0.0.1 2376 </dev/null 2>/dev/null && echo yes || echo no":         "no",
		"nc -w 2 172.17.0.1 2376 </dev/null 2>/dev/null && echo yes || echo no":        "no",
		"nc -w 2 169.254.169.254 80 </dev/null 2>/dev/null && echo yes || echo no":     "no",
		"wget -T 2 -q -O - http://127.0.0.1:61128/ 2>/dev/null && echo yes || echo no": "no",
		"env | grep -ci proxy": "0",
	})
}

// remoteByName has this test be the relay, which answers whoever comes.
func remoteByName(t *testing.T, f *far) {
	req := f.request(t, nil)
	req.Session.Isolation.Network, req.Relay, req.HostPorts = bawn.NetworkAllowlist, true, []uint16{5432}
	g, _ := started(t, f.provider(t, Options{}), req)
	files := g.Network()
	if files == nil || len(files.Proxy) == 0 || len(files.Proxy) != len(files.DNS) {
		t.Fatalf("sockets for the relay: %+v", files)
	}
	relay := func(f *os.File, answer func(first string) string) {
		l, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				go func() {
					defer c.Close()
					first, _ := bufio.NewReader(c).ReadString('\n')
					fmt.Fprint(c, answer(strings.TrimSpace(first)))
				}()
			}
		}()
	}
	relay(files.Proxy[0], func(first string) string {
		return "HTTP/1.0 200 OK\r\nContent-Length: " + fmt.Sprint(len(first)) + "\r\n\r\n" + first
	})
	relay(files.Connect[0], func(first string) string { return "relay: " + first + "\n" })
	wantOutputs(t, g, map[string]string{
		"wget -q -O - http://allowed.example/x":                                                     "GET http://allowed.example/x HTTP/1.1",
		"echo hello | nc -w 3 127.0.0.1 5432":                                                       "relay: hello",
		"ls /sys/class/net":                                                                         "lo",
		"nc -w 2 127.0.0.1 2376 </dev/null 2>/dev/null && echo yes || echo no":                      "no",
		"nc -w 2 127.0.0.1 61001 </dev/null 2>/dev/null && echo yes || echo no":                     "no",
		"nc -w 2 198.18.0.1 80 </dev/null 2>/dev/null && echo yes || echo no":                       "no",
		"nc -w 2 169.254.169.254 80 </dev/null 2>/dev/null && echo yes || echo no":                  "no",
		"env -u http_proxy -u HTTP_PROXY wget -T 2 -q -O - http://10.0.0.1/ 2>/dev/null || echo no": "no",
		"echo $HTTPS_PROXY": "http://127.0.0.1:61128",
	})
	if _, err := g.Dial(61128); err == nil {
		t.Error("the relay's port of the guest is dialled from outside")
	}
	plan := g.plan
	if plan.Host.NetworkMode != "none" || len(plan.Host.CapAdd) > 0 {
		t.Errorf("network %q, capabilities %q", plan.Host.NetworkMode, plan.Host.CapAdd)
	}
}

// remoteReturn has a guest do its worst to its copy.
func remoteReturn(t *testing.T, f *far) {
	before := map[string]string{"a": "1", "b": "2", "gone": "3", ".git/config": "host's", ".git/HEAD": "ref: refs/heads/main", ".git/hooks/pre-commit.sample": "s", "secret/key": "hidden", "kept/x": "host's", ".vscode/tasks.json": "host's", "bare.git/HEAD": "x", "bare.git/config": "host's", "bare.git/objects/x": "x", "bare.git/refs/x": "x", "bare.git/hooks/a.sample": "x"}
	req := f.request(t, before)
	iso := &req.Session.Isolation
	iso.Mounts = append(iso.Mounts, bawn.Mount{Path: filepath.Join(req.Dir, "secret"), Access: bawn.Hidden, Why: "--deny"}, bawn.Mount{Path: filepath.Join(req.Dir, "kept"), Access: bawn.ReadOnly, Why: "--ro"})
	g, _ := started(t, f.provider(t, Options{}), req)
	wantOutputs(t, g, map[string]string{"ls secret 2>/dev/null || echo no": "no"})
	text := `set -e
	echo two >b; echo new >new; rm gone; mkdir -p d/e; echo deep >d/e/f; chmod 755 b; chmod 6755 b 2>/dev/null && exit 1; ln -s ../b d/ok; ln new hard
	echo evil >.git/config; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; mkdir -p .git/refs/heads; echo sha >.git/refs/heads/main
	echo evil >.envrc; rm -r .vscode; mkdir .vscode; echo evil >.vscode/tasks.json; mkdir -p .claude; echo evil >.claude/settings.json; echo evil >kept/x
	mkdir secret; echo evil >secret/key; ln -s /etc/passwd out; ln -s ../../../etc up; ln -s .git/hooks sly; mkfifo pipe; mkdir -p .bawn; echo evil >.bawn/config.toml
	mkdir sub; echo evil >sub/.mcp.json
	mkdir -p src/objects src/refs src/hooks plain/hooks; echo ref >src/HEAD; echo evil >src/config; echo evil >src/hooks/pre-commit; echo fine >plain/config; echo fine >plain/hooks/x
	echo evil >bare.git/config; echo evil >bare.git/hooks/update; echo other >bare.git/HEAD; ln -s . self; ln -s self/secret/key alias; echo done`
	if out, status := run(t, g, text); strings.TrimSpace(out) != "done" {
		t.Fatalf("%q (%d)", out, status)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	want := map[string]string{
		"a": "1", "b": "two\n", "new": "new\n", "hard": "new\n", "d/e/f": "deep\n", "d/ok": "->../b", ".git/config": "host's", ".git/HEAD": "ref: refs/heads/main", ".git/hooks/pre-commit.sample": "s",
		"secret/key": "hidden", "kept/x": "host's", ".vscode/tasks.json": "host's",
		"plain/config": "fine\n", "plain/hooks/x": "fine\n", "self": "->.",
		"bare.git/HEAD": "x", "bare.git/config": "host's", "bare.git/objects/x": "x", "bare.git/refs/x": "x", "bare.git/hooks/a.sample": "x",
	}
	if diff := cmp.Diff(want, filesOf(t, req.Dir)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	if fi, err := os.Stat(filepath.Join(req.Dir, "b")); err != nil || fi.Mode() != 0o755 {
		t.Errorf("b: %v, %v; want no set-id bits", fi, err)
	}
	for _, line := range []string{"not copied back: .envrc: it is protected", "not copied back: .git/config: it is protected", "not copied back: out: it is a link out", "not copied back: pipe: it is a device or a pipe", "not copied back: bare.git/hooks/update: it is protected", "not copied back: alias: it leads to what is not", "copied the workspace back"} {
		if !strings.Contains(f.said.String(), line) {
			t.Errorf("%q was not told; but:\n%s", line, f.said)
		}
	}
}

// filesOf are files and links of a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if to, err := os.Readlink(p); err == nil {
			got[rel] = "->" + to
			return nil
		}
		text, err := os.ReadFile(p)
		got[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// remoteMeanwhile: what the host's side has changed stays.
func remoteMeanwhile(t *testing.T, f *far) {
	req := f.request(t, map[string]string{"both": "1", "mine": "1"})
	g, _ := started(t, f.provider(t, Options{}), req)
	run(t, g, "echo guest >both; echo guest >mine; echo guest >new")
	for _, name := range []string{"both", "new"} {
		if err := os.WriteFile(filepath.Join(req.Dir, name), []byte("host"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"both": "host", "mine": "guest\n", "new": "host"}, filesOf(t, req.Dir)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(f.said.String(), "both: it was changed on this machine meanwhile") {
		t.Errorf("told:\n%s", f.said)
	}
}

// remoteReadOnly: nothing comes back of a workspace that may not be written.
func remoteReadOnly(t *testing.T, f *far) {
	req := f.request(t, map[string]string{"a": "1"})
	req.Session.Isolation.Mounts[0].Access = bawn.ReadOnly
	g, _ := started(t, f.provider(t, Options{}), req)
	wantOutputs(t, g, map[string]string{"cat a": "1", "echo 2 2>/dev/null >a || echo no": "no"})
}

// remoteRefused: without the setting, without TLS, with another authority's
// certificate, and what an engine elsewhere can't have.
func remoteRefused(t *testing.T, f *far) {
	req := f.request(t, nil)
	other := t.TempDir()
	for name, want := range map[string]struct {
		change func(*Options, *sandbox.Request)
		want   string
	}{
		"control":           {func(*Options, *sandbox.Request) {}, ""},
		"not asked for":     {func(o *Options, _ *sandbox.Request) { o.Remote = false }, "set remote = true under [isolation.docker_options] of your own configuration"},
		"without TLS":       {func(o *Options, _ *sandbox.Request) { o.Certs = "" }, "without TLS whoever is on the way is root there"},
		"no such authority": {func(o *Options, _ *sandbox.Request) { o.Certs = other }, "ca.pem"},
		"over SSH":          {func(o *Options, _ *sandbox.Request) { o.Host = "ssh://h" }, `"ssh -L" makes one`},
		"the full network":  {func(_ *Options, r *sandbox.Request) { r.Session.Isolation.Network = bawn.NetworkFull }, "it would be the network of the engine's machine"},
		"a device":          {func(_ *Options, r *sandbox.Request) { r.Session.Isolation.Devices = []string{"kvm"} }, "the devices would be another machine's"},
		"a socket":          {func(_ *Options, r *sandbox.Request) { r.Sockets = []string{"/run/bawn/door"} }, "can't be shown to the guest"},
		"a place beside": {func(_ *Options, r *sandbox.Request) {
			r.Session.Isolation.Mounts = append(slices.Clone(r.Session.Isolation.Mounts), bawn.Mount{Path: other, Access: bawn.ReadWrite, Why: "--rw"})
		}, "the workspace alone is copied"},
	} {
		o, r := Options{Host: f.Address, Certs: f.Certs, Remote: true, Image: f.Image(t, docker.Busybox)}, req
		want.change(&o, &r)
		_, err := New(o, Setting{Program: program, Runtime: placeFor(t), Cache: f.cache}).Plan(r)
		if (err == nil) != (want.want == "") || err != nil && !strings.Contains(err.Error(), want.want) {
			t.Errorf("%s: %v; want %q", name, err, want.want)
		}
	}
}

// remoteSocket reaches the same engine by a socket that leads there.
func remoteSocket(t *testing.T, f *far) {
	req := f.request(t, map[string]string{"a": "1"})
	o := Options{Host: f.Host()}
	g, _ := started(t, f.provider(t, o), req)
	run(t, g, "echo 2 >a")
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if got := filesOf(t, req.Dir)["a"]; got != "2\n" {
		t.Errorf("a is %q", got)
	}
	for _, c := range f.provider(t, o).Capabilities() {
		if c.Strength != bawn.Enforced && c.Why == "" || c.Strength == bawn.Enforced && c.How == "" {
			t.Errorf("%+v", c)
		}
	}
}

// remoteImpostor: an engine that can't prove to be the one that is meant is sent
// nothing. The control is the same with its own authority.
func remoteImpostor(t *testing.T, f *far) {
	for ca, ok := range map[string]bool{"ca.pem": true, "cert.pem": false} {
		certs := t.TempDir()
		for from, to := range map[string]string{ca: "ca.pem", "cert.pem": "cert.pem", "key.pem": "key.pem"} {
			text, err := os.ReadFile(filepath.Join(f.Certs, from))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(certs, to), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := Options{Host: f.Address, Certs: certs, Remote: true, Image: f.Image(t, docker.Busybox)}
		_, err := New(o, Setting{Program: program, Runtime: placeFor(t), Cache: f.cache}).Plan(f.request(t, nil))
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v; want it to work: %v", ca, err, ok)
		}
	}
}

// remoteUserTest has somebody without any capability reach others by name, and get
// the workspace back.
func remoteUserTest(t *testing.T, f *far) {
	f.Allow(t, anybody)
	a := act{Options: Options{Host: f.Host(), Remote: true, Image: f.Image(t, docker.Busybox)}, Text: "id -u; ls /sys/class/net; touch made"}
	a.Request.Session.Isolation.Network, a.Request.Relay = bawn.NetworkAllowlist, true
	out, err := a.command(t, anybody).CombinedOutput()
	for _, want := range []string{"65534\n", "\nlo\n", "sockets 8\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got %v, %q; want %q in it", err, out, want)
		}
	}
}

// remoteLimit: a workspace that is too large is not copied, in part or whole, and
// nothing comes back of one that has grown so.
func remoteLimit(t *testing.T, f *far) {
	big := strings.Repeat("x", 1<<20)
	req := f.request(t, map[string]string{"a": big, "b": big})
	p := f.provider(t, Options{RemoteMaxMB: 1})
	if err := attempt(p, req); err == nil || !strings.Contains(err.Error(), "the workspace has more than 1 MiB") {
		t.Errorf("got %v", err)
	}
	req = f.request(t, map[string]string{"a": "1"})
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	run(t, g, "echo 2 >a; dd if=/dev/zero of=big bs=1M count=2 2>/dev/null")
	if err := g.Close(); err == nil || !strings.Contains(err.Error(), "not copied back") {
		t.Errorf("closed: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, filesOf(t, req.Dir)); diff != "" {
		t.Error(diff)
	}
	f.removeAll(t)
}

// removeAll removes what is kept for somebody to fetch.
func (f *far) removeAll(t *testing.T) {
	t.Helper()
	e, err := connect(f.Host(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	things := f.things(t)
	for _, thing := range things {
		if id, ok := strings.CutPrefix(thing, "container "); ok {
			if err := e.remove(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
	}
	for _, thing := range things {
		if name, ok := strings.CutPrefix(thing, "volume "); ok {
			if err := e.removeVolume(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}
	if len(things) != 3 {
		t.Errorf("kept for somebody to fetch: %q; want a container and two volumes", things)
	}
}

// remoteKilled ends makers by kill -9, at any moment. The next session removes
// what they have left.
func remoteKilled(t *testing.T, f *far) {
	p := f.provider(t, Options{})
	req := f.request(t, map[string]string{"a": "1"})
	a := act{Options: p.options, Setting: p.setting, Request: req, Text: "echo 2 >a; sleep 1000", Hold: true}
	a.Setting.Report = nil
	for _, after := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		kill(t, a, after)
	}
	if got := filesOf(t, req.Dir)["a"]; got != "1" {
		t.Errorf("a is %q; want what it was", got)
	}
	for range 3 { // a slow engine goes on making what nobody waits for; the start after that removes it
		g, _ := started(t, p, f.request(t, nil))
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if len(f.things(t)) == 0 {
			break
		}
	}
}

// TestRemoteEngineDies in the middle of a session: it ends, and the workspace is
// what it was.
func TestRemoteEngineDies(t *testing.T) {
	f := elsewhere(t)
	req := f.request(t, map[string]string{"a": "1"})
	p := f.provider(t, Options{})
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	run(t, g, "echo 2 >a")
	f.Signal(t, syscall.SIGKILL)
	select {
	case <-g.Done():
	case <-time.After(15 * time.Second):
		t.Error("the session goes on")
	}
	began := time.Now()
	if err := g.Close(); err == nil || !strings.Contains(err.Error(), "the workspace was not copied back") {
		t.Errorf("closed: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, filesOf(t, req.Dir)); diff != "" {
		t.Error(diff)
	}
}
