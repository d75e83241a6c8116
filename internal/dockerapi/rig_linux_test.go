package dockerapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
	testengine "github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// built is where bawn is, which runs in holders; it is removed in the end.
var built struct {
	sync.Once
	dir string
	err error
}

// program builds bawn, once.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "broker-test-"); built.err != nil {
			return
		}
		built.err = testhome.Programs(built.dir, "cmd/bawn")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "bawn")
}

// around removes what tests share, in the end.
func around(m *testing.M) int {
	code := m.Run()
	err := testengine.Stop()
	if built.dir != "" {
		err = errors.Join(err, os.RemoveAll(built.dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

const busybox = testengine.Busybox

// A rig is a session with a broker in front of a real engine.
type rig struct {
	t         *testing.T
	engine    *testengine.Engine
	broker    *Broker
	workspace string
	socket    string
	client    *http.Client
	guest     sandbox.Guest // a sandbox of the native provider, or nil

	mu      sync.Mutex
	actions []bawn.Action
	refused []Refusal
	deny    string // resource of actions that the guard denies
}

// newRig starts a broker; change changes its options.
func newRig(t *testing.T, change func(*rig, *Options)) *rig {
	t.Helper()
	r := &rig{t: t, engine: testengine.Shared(t), workspace: t.TempDir()}
	r.engine.Image(t, busybox)
	m, err := maker.Self()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Engine: r.engine.Socket, Maker: m, Dir: t.TempDir(), Log: testLog{t}, Guard: r.guard,
		Session: bawn.Session{ID: strings.ToLower(rand32()), Agent: "test"},
		View:    View{Open: func() (*os.File, error) { return openPath("/") }, Below: []string{r.workspace}},
		Refused: func(n Refusal) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.refused = append(r.refused, n)
		},
	}
	o.Session.Isolation.Resources = bawn.Resources{MemoryMB: 1024, PIDs: 400}
	if change != nil {
		change(r, &o)
	}
	if r.broker, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.socket = filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.broker.Serve(l) }()
	r.client = &http.Client{Transport: unixTransport(r.socket)}
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		if err := r.broker.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if h, ok := o.Network.(*Holder); ok {
			if err := h.Close(); err != nil {
				t.Errorf("close the holder: %v", err)
			}
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if left := r.left(); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	return r
}

func unixTransport(socket string) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}
}

func (r *rig) dial() (net.Conn, error) { return net.Dial("unix", r.socket) }

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func openPath(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	return os.NewFile(uintptr(fd), name), err
}

func rand32() string { return strings.ReplaceAll(newID()[:26], "0", "a") }

// guard allows everything but what the test denies, and keeps it.
func (r *rig) guard(_ context.Context, a bawn.Action) bawn.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actions = append(r.actions, a)
	if a.Resource == r.deny || slices.Contains(a.Args, r.deny) || !a.Valid() {
		return bawn.Denied("the test says so", "test")
	}
	return bawn.Decision{Verdict: bawn.Allow}
}

// withGuest gives the session a sandbox of the native provider, and its
// containers a network.
func withGuest(r *rig, o *Options) {
	testenv.Need(r.t, "userns")
	p := native.New("")
	s := o.Session
	s.Isolation.Workspace = r.workspace
	s.Isolation.Mounts, s.Isolation.Env = append(s.Isolation.Mounts, bawn.Mount{Path: r.workspace, Access: bawn.ReadWrite}), []string{"PATH"}
	plan, err := p.Plan(sandbox.Request{Session: s, Argv: []string{"sh"}, Dir: r.workspace, Environ: os.Environ(), Files: []sandbox.File{{Source: program(r.t), Target: writerInside}}})
	if err != nil {
		r.t.Fatal(err)
	}
	guest, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { guest.Close() })
	r.guest = guest
	loopback, ok := guest.(sandbox.Loopback)
	if !ok {
		r.t.Fatal("the native guest has no loopback at which others listen")
	}
	o.View.Open = guest.(sandbox.Visible).View
	o.Network = &Holder{Engine: o.Engine, Session: o.Session.ID, Maker: o.Maker, Program: program(r.t), Dir: o.Dir, Guest: loopback}
}

// left lists what the engine still has of the session.
func (r *rig) left() []string {
	r.t.Helper()
	query := "filters=" + url.QueryEscape(`{"label":["`+maker.LabelSession+`=`+r.broker.o.Session.ID+`"]}`)
	var containers []struct{ Names []string }
	var volumes struct{ Volumes []struct{ Name string } }
	var images []struct{ RepoTags []string }
	_, built := r.direct("GET", "/images/json?all=1&"+query, nil)
	_, list := r.direct("GET", "/containers/json?all=1&"+query, nil)
	_, more := r.direct("GET", "/volumes?"+query, nil)
	if err := errors.Join(json.Unmarshal(list, &containers), json.Unmarshal(more, &volumes), json.Unmarshal(built, &images)); err != nil {
		r.t.Fatalf("%v: %s %s", err, list, more)
	}
	var left []string
	for _, c := range containers {
		left = append(left, "container "+strings.Join(c.Names, " "))
	}
	for _, v := range volumes.Volumes {
		left = append(left, "volume "+v.Name)
	}
	for _, i := range images {
		left = append(left, "image "+strings.Join(i.RepoTags, " "))
	}
	return left
}

// call sends a request to the broker, and returns status and body.
func (r *rig) call(method, path string, body any) (int, []byte) {
	r.t.Helper()
	return r.send(r.client, "http://docker/v1.41"+path, method, body)
}

// direct sends a request to the engine itself.
func (r *rig) direct(method, path string, body any) (int, []byte) {
	r.t.Helper()
	c := &http.Client{Transport: unixTransport(r.engine.Socket)}
	defer c.CloseIdleConnections()
	return r.send(c, "http://docker/v1.41"+path, method, body)
}

func (r *rig) send(c *http.Client, url, method string, body any) (int, []byte) {
	r.t.Helper()
	var data []byte
	kind := "application/json"
	switch b := body.(type) {
	case nil:
		kind = ""
	case string:
		data = []byte(b)
	case []byte:
		data, kind = b, "application/x-tar"
	default:
		var err error
		if data, err = json.Marshal(b); err != nil {
			r.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp.StatusCode, out
}

// must sends a request that has to succeed, and reads the answer into out.
func (r *rig) must(method, path string, body, out any) {
	r.t.Helper()
	status, data := r.call(method, path, body)
	if status >= 300 && status != http.StatusNotModified {
		r.t.Fatalf("%s %s: %d %s", method, path, status, data)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			r.t.Fatalf("%s %s: %v\n%s", method, path, err, data)
		}
	}
}

type dict = map[string]any

// run makes and starts a container, and returns its ID.
func (r *rig) run(name string, body dict) string {
	r.t.Helper()
	if body["Image"] == nil {
		body["Image"] = busybox
	}
	var made struct {
		ID string `json:"Id"`
	}
	r.must("POST", "/containers/create?name="+name, body, &made)
	r.must("POST", "/containers/"+made.ID+"/start", nil, nil)
	return made.ID
}

// logs waits for a line of a container's output.
func (r *rig) logs(id, line string) {
	r.t.Helper()
	var all []byte
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the log of the container: %q", all)
		}
	}()
	testenv.Until(r.t, strconv.Quote(line), func() bool {
		_, all = r.call("GET", "/containers/"+id+"/logs?stdout=1&stderr=1", nil)
		return bytes.Contains(all, []byte(line))
	})
}

// docker runs the real client against the broker.
func (r *rig) docker(args ...string) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.t.TempDir(), "DOCKER_HOST=unix://" + r.socket}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// asked lists the resources of the actions that were decided.
func (r *rig) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, a := range r.actions {
		list = append(list, a.Resource+" "+strings.Join(a.Args, " "))
	}
	return slices.Clone(list)
}
