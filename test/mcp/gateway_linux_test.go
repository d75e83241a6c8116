package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A gatewayClient is a client of a gateway in front of the account's plugins.
type gatewayClient struct {
	*mcp.ClientSession
	pid  int
	said *said // on the standard error
}

// What a program has said so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// gateway starts `bawn mcp` and connects to it.
func (r *account) gateway(t *testing.T, names ...string) *gatewayClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := r.command(ctx, append([]string{filepath.Join(r.bin, "bawn"), "mcp"}, names...)...)
	d := &gatewayClient{said: &said{}}
	cmd.Stderr = d.said
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}, nil)
	if err != nil {
		cancel()
		t.Fatalf("%v\n%s", err, d.said)
	}
	d.ClientSession, d.pid = s, cmd.Process.Pid
	t.Cleanup(func() {
		_ = s.Close() // some tests have closed it
		cancel()
		if t.Failed() {
			t.Logf("bawn mcp: %s", d.said)
		}
	})
	return d
}

// call calls a tool, and returns its text and whether it failed.
func (d *gatewayClient) call(t *testing.T, wait time.Duration, tool string, args map[string]any) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	got, err := d.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	var text strings.Builder
	for _, c := range got.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text.WriteString(c.Text)
		}
	}
	return text.String(), got.IsError
}

// works wants an answer of the honest server, soon.
func (d *gatewayClient) works(t *testing.T, when string) {
	t.Helper()
	if got, failed := d.call(t, patience, "honest__work", nil); failed || !strings.Contains(got, "done by honest") {
		t.Errorf("%s: the honest server does not work: %q", when, got)
	}
}

func (d *gatewayClient) tools(t *testing.T) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tool, err := range d.Tools(ctx, nil) {
		check(t, err)
		names = append(names, tool.Name)
	}
	return names
}

// peak is the most memory that a process has had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	check(t, err)
	return kb / 1024
}

// trust adds and pins servers whose tools need nobody's answer.
func (r *account) trust(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		r.stranger(t, kind, "--allow", "*")
		if got := r.bawn(t, "plugin", "pin", kind, "--yes"); got.code != 0 {
			t.Fatalf("%s: %+v", kind, got)
		}
	}
}

// TestHostileServers: what one server does, the others do not notice, and what
// comes of it is bounded. The honest one, called after each, is the control.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.trust(t, "honest", "huge", "hang", "crash", "flood", "fork")
	d := r.gateway(t)
	d.works(t, "at first")
	for _, c := range []struct {
		kind, want string
		wait       time.Duration
	}{
		{"huge", "", patience}, {"hang", "deadline exceeded", 2 * time.Second}, {"crash", "crash", patience},
		{"flood", "", patience},
	} {
		begun := time.Now()
		got, failed := d.call(t, c.wait, c.kind+"__work", nil)
		if !failed || !strings.Contains(got, c.want) || len(got) > 2<<20 {
			t.Errorf("%s: failed %t after %s with %d bytes: %.300q", c.kind, failed, time.Since(begun), len(got), got)
		}
		d.works(t, "after "+c.kind)
	}
	if got, failed := d.call(t, patience, "fork__work", nil); failed || !strings.Contains(got, "no more") {
		t.Errorf("fork: %q", got)
	}
	d.works(t, "after fork")
	if mb := peak(t, d.pid); mb > 256 {
		t.Errorf("the gateway took %d MiB", mb)
	}
}

// TestHostileLists: what is unfit is not offered, what never ends is cut, and
// what was not pinned or has changed since asks, which nobody answers here.
func TestHostileLists(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.trust(t, "honest", "rug", "names", "texts")
	r.stranger(t, "fresh", "--allow", "*")
	r.stranger(t, "endless", "--allow", "*")
	d := r.gateway(t)
	names := d.tools(t)
	for _, want := range []string{"honest__work", "rug__work", "texts__work", "fresh__work"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing: %q", want, names)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "names__") || strings.HasPrefix(name, "texts__") && name != "texts__work" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			t.Errorf("%q is offered", name)
		}
	}
	if len(names) > 400 {
		t.Errorf("%d tools", len(names))
	}
	d.works(t, "among them")
	for _, kind := range []string{"rug", "fresh"} {
		// Nobody is here to answer: it waits for one who does, elsewhere.
		if got, failed := d.call(t, 2*time.Second, kind+"__work", nil); !failed || strings.Contains(got, "done by") {
			t.Errorf("%s: nobody has agreed to it: %q", kind, got)
		}
	}
}

// TestPathArguments: an argument that is a path is judged as what it leads to,
// and where it is not said to be one the sandbox is still there. The control is
// a file that the plugin may read.
func TestPathArguments(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for name, text := range map[string]string{"src/project/docs/a": "a-of-docs", ".ssh/id_rsa": "PRIVATE", "notes": "PRIVATE"} {
		r.put(t, name, text)
	}
	manifest := fmt.Sprintf("run = {command = [%q, %q, \"file\"]}\nfiles.read = [%q, \"docs\"]\ntools.allow = [\"*\"]\n", r.bin+"/guest", serverWord, r.bin)
	r.put(t, ".config/bawn/plugins/told.toml", manifest+"arguments = {\"work.path\" = \"path\"}\n")
	r.put(t, ".config/bawn/plugins/untold.toml", manifest)
	for _, name := range []string{"told", "untold"} {
		if got := r.bawn(t, "plugin", "pin", name, "--yes"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	d := r.gateway(t)
	for _, name := range []string{"told", "untold"} {
		for _, path := range []string{"docs/a", "docs/../docs/a", "docs/../../../.ssh/id_rsa", "../../notes", r.home + "/.ssh/id_rsa", "/proc/self/root" + r.home + "/notes"} {
			wait := patience
			if strings.HasSuffix(path, "notes") {
				wait = 2 * time.Second // outside of the workspace it may be asked about, and nobody answers
			}
			got, failed := d.call(t, wait, name+"__work", map[string]any{"path": path})
			if may := strings.HasSuffix(path, "docs/a"); may != strings.Contains(got, "a-of-docs") || strings.Contains(got, "PRIVATE") {
				t.Errorf("%s: %s: failed %t: %q", name, path, failed, got)
			}
		}
	}
	if got, failed := d.call(t, patience, "told__work", map[string]any{"path": "../../.ssh/id_rsa"}); !failed || !strings.Contains(got, "Bawn") {
		t.Errorf("the policy is not heard: %q", got)
	}
}

// TestCrowd: fifty servers at once, each in its sandbox, all of them gone when
// the client is.
func TestCrowd(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	const crowd = 50
	for i := range crowd {
		name := fmt.Sprintf("s%d", i)
		r.put(t, ".config/bawn/plugins/"+name+".toml", fmt.Sprintf("run = {command = [%q, %q, \"honest\", %q]}\nfiles.read = [%q]\ntools.allow = [\"*\"]\n", r.bin+"/guest", serverWord, r.home, r.bin))
	}
	if got := r.bawn(t, "plugin", "pin", "s0", "--yes"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	pins, err := os.ReadFile(filepath.Join(r.home, ".local/state/bawn/pins/s0.json"))
	check(t, err)
	for i := range crowd {
		name := fmt.Sprintf("s%d", i)
		r.put(t, ".local/state/bawn/pins/"+name+".json", strings.Replace(string(pins), `"s0"`, strconv.Quote(name), 1))
	}
	d := r.gateway(t)
	var work sync.WaitGroup
	for i := range crowd {
		work.Go(func() {
			if got, failed := d.call(t, patience, fmt.Sprintf("s%d__work", i), nil); failed || !strings.Contains(got, "done by honest") {
				t.Errorf("s%d: %q", i, got)
			}
		})
	}
	work.Wait()
	if n := running(r.home); n < crowd {
		t.Errorf("control: %d servers run", n)
	}
	check(t, d.Close())
	testenv.Until(t, "the servers' end", func() bool { return running(r.home) == 0 })
}

// running counts the servers that have the word among their arguments.
func running(word string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		text, _ := os.ReadFile(file) // it may have ended
		if args := strings.Split(string(text), "\x00"); len(args) > 3 && args[1] == serverWord && args[3] == word {
			n++
		}
	}
	return n
}
