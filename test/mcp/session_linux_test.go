package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// honest adds a plugin whose tool may be called unasked, and one that asks.
func (r *account) honest(t *testing.T) {
	t.Helper()
	r.plugin(t, "honest", fmt.Sprintf("run = { command = [%q, %q, \"honest\"] }\nfiles.read = [%q]\ntools.allow = [\"work\"]\n", r.bin+"/guest", serverWord, r.bin))
	r.plugin(t, "asker", fmt.Sprintf("run = { command = [%q, %q, \"asker\"] }\nfiles.read = [%q]\n", r.bin+"/guest", serverWord, r.bin))
	for _, name := range []string{"honest", "asker"} {
		if got := r.bawn(t, "plugin", "pin", name, "--yes"); got.code != 0 {
			t.Fatalf("pin %s: %+v", name, got)
		}
	}
}

// session is `bawn mcp` in a session.
func (r *account) session(t *testing.T, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	cmd := r.command(t.Context(), filepath.Join(r.bin, "bawn"), "run", "--quiet", "--ro", r.bin, "--", filepath.Join(r.bin, "bawn"), "mcp")
	var said bytes.Buffer
	cmd.Stderr = &said
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// events are those of the log about a resource.
func (r *account) events(t *testing.T, resource string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(r.bawn(t, "audit", "query", "--json").out) {
		var e struct{ Event map[string]any }
		if json.Unmarshal([]byte(line), &e) == nil && e.Event["resource"] == resource {
			list = append(list, e.Event)
		}
	}
	return list
}

// TestGuestsHaveTheirHumansPlugins calls, from inside of a session, a tool of a
// plugin that stands outside of it.
func TestGuestsHaveTheirHumansPlugins(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.honest(t)
	s := r.session(t, nil)
	d := &gatewayClient{ClientSession: s}
	d.works(t, "from inside of a session")
	list := r.events(t, "honest/work")
	if len(list) != 1 || list[0]["parent"] == nil || list[0]["resolved"] != "allow" {
		t.Errorf("the log has %v", list)
	}
}

// TestTheAgentDoesNotAnswer has a client that says yes to whatever it is asked.
// It is not asked; the human is, outside.
func TestTheAgentDoesNotAnswer(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.honest(t)
	r.relay(t)
	var asked atomic.Int32
	s := r.session(t, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
	}})
	d := &gatewayClient{ClientSession: s}
	answered := r.answering(t, "approve")
	if got, failed := d.call(t, patience, "asker__work", nil); failed || !strings.Contains(got, "done by asker") {
		t.Errorf("approved: %q", got)
	}
	answered()
	answered = r.answering(t, "deny")
	if got, failed := d.call(t, patience, "asker__work", map[string]any{"path": "other"}); !failed || !strings.Contains(got, "Denied by Bawn") {
		t.Errorf("denied: %q", got)
	}
	answered()
	if n := asked.Load(); n != 0 {
		t.Errorf("the client was asked %d times", n)
	}
}

// relay runs for the time of the test: one that is started on demand would stay
// for a while.
func (r *account) relay(t *testing.T) {
	t.Helper()
	cmd := r.command(t.Context(), filepath.Join(r.bin, "bawn"), "serve")
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	testenv.Until(t, "the relay", func() bool {
		got := r.bawn(t, "approvals")
		return got.code == 0 && !strings.Contains(got.err, "no relay runs")
	})
}

// answering has the human answer the next question; wait returns once it is.
func (r *account) answering(t *testing.T, verb string) (wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for end := time.Now().Add(patience); time.Now().Before(end); {
			var list []struct{ ID string }
			got := r.bawn(t, "approvals", "--json")
			for line := range strings.Lines(got.out) {
				var q struct{ ID string }
				if json.Unmarshal([]byte(line), &q) == nil && q.ID != "" {
					list = append(list, q)
				}
			}
			if len(list) > 0 {
				if got := r.bawn(t, verb, list[0].ID); got.code != 0 {
					t.Errorf("%s: %+v", verb, got)
				}
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error("nobody asks")
	}()
	return func() { <-done }
}

// TestPluginsHaveNoPlugins attacks as a plugin that may do nothing, and would
// have another one do it. The control is the same from an ordinary session.
func TestPluginsHaveNoPlugins(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.honest(t)
	argv := r.plugin(t, "sly", r.manifest("files.read = [\"BIN\"]"))
	argv = argv[:slices.Index(argv, "--")+1]
	bawn := filepath.Join(r.bin, "bawn")
	ordinary := []string{bawn, "run", "--quiet", "--ro", r.bin, "--"}
	for name, tt := range map[string]struct {
		argv []string
		code int
	}{
		"control":                  {append(slices.Clone(ordinary), bawn, "mcp"), 0},
		"control, a session below": {append(slices.Clone(ordinary), bawn, "run", "--quiet", "--ro", r.bin, "--", bawn, "mcp"), 0},
		"a plugin":                 {append(slices.Clone(argv), bawn, "mcp"), 126},
		"a session below a plugin": {append(slices.Clone(argv), bawn, "run", "--quiet", "--ro", r.bin, "--", bawn, "mcp"), 126},
	} {
		if got := r.run(t, tt.argv...); got.code != tt.code {
			t.Errorf("%s: %+v, want %d", name, got, tt.code)
		}
	}
}

// TestServersEndWithTheirGateway kills the gateway, which can't end anything.
func TestServersEndWithTheirGateway(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	name := fmt.Sprintf("obstinate%d", os.Getpid()) // other tests may run beside
	r.plugin(t, name, fmt.Sprintf("run = { command = [\"/bin/sh\", \"-c\", \"%s %s honest obstinate; exec sleep 1234%d\"] }\nfiles.read = [%q]\ntools.allow = [\"work\"]\n", r.bin+"/guest", serverWord, os.Getpid(), r.bin))
	if got := r.bawn(t, "plugin", "pin", name, "--yes"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	d := r.gateway(t)
	if got, failed := d.call(t, patience, name+"__work", nil); failed {
		t.Fatal(got)
	}
	check(t, syscall.Kill(d.pid, syscall.SIGKILL))
	testenv.Until(t, "the end of its servers", func() bool {
		return children(fmt.Sprintf("sleep\x001234%d", os.Getpid()), r.bin+"/guest\x00"+serverWord+"\x00honest\x00obstinate\x00", "mcp-"+name) == ""
	})
}

// children are processes whose command lines hold one of the words.
func children(words ...string) (found string) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range list {
		text, _ := os.ReadFile(name) // it may have ended
		for _, w := range words {
			if strings.Contains(string(text), w) {
				found += name + " "
			}
		}
	}
	return found
}

// TestGatewayOverHTTP serves who shows the token of the file.
func TestGatewayOverHTTP(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.honest(t)
	cmd := r.command(t.Context(), filepath.Join(r.bin, "bawn"), "mcp", "--http", "127.0.0.1:0")
	said, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	at := ""
	for lines := bufio.NewScanner(said); at == "" && lines.Scan(); {
		_, rest, _ := strings.Cut(lines.Text(), "serving at ")
		at, _, _ = strings.Cut(rest, ";")
	}
	token, err := os.ReadFile(filepath.Join(r.home, ".local/state/bawn/mcp-token"))
	check(t, err)
	for _, tt := range []struct {
		token string
		ok    bool
	}{{string(token), true}, {"", false}, {string(token[1:]), false}} {
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at, HTTPClient: &http.Client{Transport: shows(tt.token)}, MaxRetries: -1}, nil)
		if tt.ok != (err == nil) {
			t.Errorf("the token %.4q…: %v", tt.token, err)
		}
		if err == nil {
			(&gatewayClient{ClientSession: s}).works(t, "over HTTP")
			_ = s.Close()
		}
	}
}

// shows is a token that RoundTrip adds to each request.
type shows string

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(s))
	return http.DefaultTransport.RoundTrip(r)
}
