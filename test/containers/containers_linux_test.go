package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/dockerapi"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

func TestMain(m *testing.M) {
	code := m.Run()
	err := engine.Stop()
	if programs != "" {
		err = errors.Join(err, os.RemoveAll(programs))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// programs is where bawn and bawnd are.
var programs string

func build(t *testing.T) string {
	t.Helper()
	if programs != "" {
		return programs
	}
	dir, err := os.MkdirTemp("", "containers-")
	if err != nil {
		t.Fatal(err)
	}
	programs = dir
	if err := testhome.Programs(dir, "cmd/bawn", "cmd/bawnd"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A world is a user's home with a project, beside an engine.
type world struct {
	t       *testing.T
	engine  *engine.Engine
	home    string
	project string
	environ []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	testenv.Need(t, "userns")
	w := &world{t: t, engine: engine.Shared(t), home: t.TempDir()}
	w.engine.Image(t, engine.Busybox)
	w.project = filepath.Join(w.home, "project")
	for _, dir := range []string{"project", "run", "state", ".config/bawn"} {
		if err := os.MkdirAll(filepath.Join(w.home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The machine's runc may be one that containers get out of (TestUnsafeEngine).
	w.configure("[isolation.docker_options]\naccept_escapes = true\n")
	w.environ = []string{
		"HOME=" + w.home, "XDG_RUNTIME_DIR=" + filepath.Join(w.home, "run"), "XDG_STATE_HOME=" + filepath.Join(w.home, "state"),
		"PATH=" + build(t) + ":" + os.Getenv("PATH"), "DOCKER_HOST=" + w.engine.Host(), "LANG=C.UTF-8",
	}
	return w
}

func (w *world) configure(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, ".config/bawn/config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	w.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(build(w.t), "bawn"), append([]string{"run"}, args...)...)
	cmd.Dir, cmd.Env = w.project, w.environ
	return cmd
}

// run runs a script as a guest, and returns all it wrote.
func (w *world) run(script string, flags ...string) string {
	w.t.Helper()
	cmd := w.command(append(flags, "--docker", "--", "sh", "-c", "exec 2>&1; BB="+engine.Busybox+"\n"+script)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// of lists what the engine has of sessions.
func (w *world) of(kind string) []string {
	w.t.Helper()
	data, err := w.engine.Call(w.t.Context(), http.MethodGet, "/containers/json?all=1&filters="+url.QueryEscape(`{"label":["dev.bawn.role=`+kind+`"]}`), nil)
	var list []struct {
		ID string `json:"Id"`
	}
	if err := errors.Join(err, json.Unmarshal(data, &list)); err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

// A guest's containers are found by their ports, keep to the session's network,
// and are gone with it.
func TestSession(t *testing.T) {
	w := newWorld(t)
	page := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "the host's page") })}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go page.Serve(l)
	defer page.Close()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(w.project, "page"), []byte("of the project"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := w.run(`
docker run -d --name web -p 8080:80 -v "$PWD":/www:ro $BB httpd -f -p 80 -h /www >/dev/null
for i in $(seq 100); do curl -sf http://127.0.0.1:8080/page && break; sleep 0.2; done; echo
echo opened: $(docker run --rm $BB wget -q -O- http://127.0.0.1:`+port+`/)
echo closed: $(docker run --rm $BB nc -w 2 127.0.0.2 `+port+` </dev/null && echo reached)
docker run --rm $BB nc -w 2 192.0.2.1 80 </dev/null
docker run --rm -v /:/host $BB true; echo code $?
docker exec web id -u
docker ps --format '{{.Names}} {{.Ports}}'`, "--host-port", port, "--ask-timeout", "0s")
	for _, want := range []string{"of the project", "opened: the host's page", "closed:\n", "denied: connect 192.0.2.1:80", "bawn refused this", "code 125", "\n0\n", "web 127.0.0.1:8080->80/tcp"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	w.ended()
	log := w.log()
	for _, want := range []string{`"resource":"docker:create","args":["` + engine.Busybox + `","httpd"`, `"resource":"docker:exec","args":["web","id","-u"]`, `"rule":"builtin:docker-mount"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
}

// What a container writes is the workspace's when it has ended, and what the host would
// execute is held back, with what would allow it.
func TestWritableMounts(t *testing.T) {
	for _, provider := range []string{"native", "bwrap"} {
		t.Run(provider, func(t *testing.T) { writableMounts(t, provider) })
	}
}

func writableMounts(t *testing.T, provider string) {
	if provider == "bwrap" {
		testenv.Need(t, "bwrap")
	}
	w := newWorld(t)
	if out, err := exec.Command("git", "init", "-q", w.project).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(w.project, "page"), []byte("of the project"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `docker run --rm -v "$PWD":/w -w /w $BB sh -c 'cat page > copied; echo evil > .envrc; echo evil > .git/hooks/pre-commit; ln -s /root/.ssh build; cp /bin/busybox suid; chmod 4755 suid'
echo the guest has $(cat copied); ls -A`
	out := w.run(script, "--net", "none", "--provider", provider)
	if !strings.Contains(out, "the guest has of the project") || !strings.Contains(out, ".envrc") {
		t.Errorf("got %s", out)
	}
	if text, err := os.ReadFile(filepath.Join(w.project, "copied")); err != nil || string(text) != "of the project" {
		t.Errorf("the human has %q, %v", text, err)
	}
	for _, name := range []string{".envrc", ".git/hooks/pre-commit", "build"} {
		if _, err := os.Lstat(filepath.Join(w.project, name)); err == nil {
			t.Errorf("the project has %s", name)
		}
	}
	if st, err := os.Stat(filepath.Join(w.project, "suid")); err != nil || st.Mode()&os.ModeSetuid != 0 {
		t.Errorf("suid is %v, %v", st, err)
	}
	if log := w.log(); !strings.Contains(log, "is not in the workspace") {
		t.Error("the log does not say what was held back")
	}
	w.run(script, "--net", "none", "--provider", provider, "--unprotect", ".envrc") // the control
	if _, err := os.Lstat(filepath.Join(w.project, ".envrc")); err != nil {
		t.Errorf("with --unprotect: %v", err)
	}
	w.ended()
}

// log is the text of the audit log.
func (w *world) log() string {
	w.t.Helper()
	var all []byte
	err := filepath.WalkDir(filepath.Join(w.home, "state"), func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(p)
		all = append(all, text...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(all)
}

// What somebody's rule denies is denied, and a session without the flag has no
// API.
func TestRules(t *testing.T) {
	w := newWorld(t)
	rule := "[[rule]]\nkind = \"tool\"\npattern = \"docker:exec\"\nverdict = \"deny\"\nreason = \"look at logs instead\"\n"
	if err := os.WriteFile(filepath.Join(w.home, ".config/bawn/policy.toml"), []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.run("docker run -d --name a $BB sleep 100 >/dev/null && echo made; docker exec a id; true", "--net", "none")
	if !strings.Contains(out, "made") || !strings.Contains(out, "look at logs instead") || strings.Contains(out, "uid=") {
		t.Errorf("got %q", out)
	}
	cmd := w.command("--net", "none", "--", "sh", "-c", "ls /run/bawn; echo host=$DOCKER_HOST; test -S "+w.engine.Socket+" && docker -H "+w.engine.Host()+" ps")
	if out, _ := cmd.CombinedOutput(); strings.Contains(string(out), "docker.sock") || strings.Contains(string(out), "CONTAINER") {
		t.Errorf("without --docker: %s", out)
	}
}

// What a session leaves that was killed ends at once, by the process that
// watches over it, and where that was killed as well, with the next session.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.kill(t, false)
	w.ended()
	w.kill(t, true)
	time.Sleep(2 * time.Second)
	if len(w.of("child")) != 1 {
		t.Fatal("control: nothing is left that a watcher could have ended")
	}
	w.run("docker run -d $BB sleep 1000; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; done", "--net", "none")
	w.ended()
	testenv.Until(t, "the end of the watchers", func() bool { return len(w.watchers()) == 0 })
}

// ended waits until the engine has nothing more of sessions.
func (w *world) ended() {
	w.t.Helper()
	var left []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("left: %q", left)
		}
	}()
	testenv.Until(w.t, "the end of all containers", func() bool {
		left = slices.Concat(w.of("child"), w.of("holder"))
		return len(left) == 0
	})
}

// watchers are the processes that watch over containers of this engine.
func (w *world) watchers() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range found {
		text, _ := os.ReadFile(p)
		if words := strings.Split(string(text), "\x00"); len(words) > 2 && words[1] == dockerapi.WatchArgument && words[2] == w.engine.Socket {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill kills a session that has a container, with its watcher or without.
func (w *world) kill(t *testing.T, watcher bool) {
	t.Helper()
	cmd := w.command("--docker", "--net", "none", "--", "sh", "-c", "docker run -d "+engine.Busybox+" sleep 1000; echo made; sleep 1000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "a container with its holder and its watcher", func() bool {
		return len(w.of("child")) == 1 && len(w.of("holder")) == 1 && len(w.watchers()) > 0
	})
	if watcher {
		for _, pid := range w.watchers() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// The API by itself, for a program that something else contains.
func TestProxy(t *testing.T) {
	w := newWorld(t)
	socket := filepath.Join(w.home, "d.sock")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(build(t), "bawn"), "dockerd-proxy", "--socket", socket)
	cmd.Dir, cmd.Env = w.project, w.environ
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the socket", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	docker := func(args ...string) string {
		c := exec.CommandContext(ctx, "docker", append([]string{"-H", "unix://" + socket}, args...)...)
		c.Env = append(w.environ, "DOCKER_HOST=")
		out, _ := c.CombinedOutput()
		return string(out)
	}
	if err := os.WriteFile(filepath.Join(w.project, "page"), []byte("of the project"), 0o644); err != nil {
		t.Fatal(err)
	}
	docker("run", "-d", "--name", "web", "-p", "80", "-v", w.project+":/www:ro", engine.Busybox, "httpd", "-f", "-p", "80", "-h", "/www")
	at := strings.TrimSpace(docker("port", "web", "80"))
	testenv.Until(t, "the server in the container", func() bool {
		resp, err := http.Get("http://" + at + "/page")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	if out := docker("run", "--rm", "--privileged", engine.Busybox, "true"); !strings.Contains(out, "bawn refused this") {
		t.Errorf("got %q", out)
	}
	tmp, err := os.MkdirTemp("/tmp", "bawn-proxy-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "other"), []byte("canary of another user"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{tmp, "/tmp", "/etc"} { // the control: the project, above
		if out := docker("run", "--rm", "-v", place+":/other:ro", engine.Busybox, "cat", "/other/other"); strings.Contains(out, "canary") || !strings.Contains(out, "bawn refused this") {
			t.Errorf("%s: got %q", place, out)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &said)
	}
	w.ended()
}

// The containers of a guest that is a container itself are in its network.
func TestContainerOfAContainer(t *testing.T) {
	w := newWorld(t)
	client := exec.Command("go", "build", "-o", filepath.Join(w.project, "client"), "./testdata/client")
	client.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.configure(fmt.Sprintf("[isolation.docker_options]\naccept_escapes = true\nimage = %q\n", w.engine.Image(t, engine.Busybox)))
	if err := os.WriteFile(filepath.Join(w.project, "page"), []byte("of the project"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := w.run(`
./client POST '/containers/create?name=web' '{"Image":"'$BB'","Cmd":["httpd","-f","-p","80","-h","/www"],"HostConfig":{"Binds":["/workspace:/www:ro"],"PortBindings":{"80/tcp":[{"HostPort":"8080"}]}}}'
./client POST /containers/web/start
for i in $(seq 100); do wget -q -O- http://127.0.0.1:8080/page && break; sleep 0.2; done; echo
echo direct $(wget -q -O- http://127.0.0.1:80/page)
./client POST '/containers/create?name=writer' '{"Image":"'$BB'","Cmd":["sh","-c","echo written > /w/made; echo evil > /w/.envrc"],"HostConfig":{"Binds":["/workspace:/w"]}}'
./client POST /containers/writer/start
./client POST /containers/writer/wait
cat made .envrc
./client POST /containers/create '{"Image":"'$BB'","HostConfig":{"Binds":["/etc:/x:ro"]}}'`, "--provider", "docker", "--net", "none")
	for _, want := range []string{"201 Created", "204 No Content", "\nof the project\n", "direct of the project", "\nwritten\n", "call /workspace/.envrc", "403 Forbidden", "outside of the workspace"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	w.ended()
}
