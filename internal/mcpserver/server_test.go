package mcpserver

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A judge remembers what it was asked. It denies what deny says.
type judge struct {
	mu    sync.Mutex
	calls []Call
	deny  func(bawn.Action) bool
}

func (j *judge) decide(_ context.Context, c Call) (Verdict, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, c)
	v := Verdict{Allowed: true}
	for _, a := range c.Actions {
		if !a.Valid() || a.Dir == "" {
			return Verdict{}, errors.New("an action that says nothing")
		}
		if j.deny != nil && j.deny(a) {
			return Verdict{Rule: "test:no", Reason: "the test says no", Remedy: "ask the test"}, nil
		}
		if a.Kind == bawn.Command {
			v.Canonical = a.Resource
		}
	}
	return v, nil
}

// last is the resource of the last action that was put.
func (j *judge) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.calls) == 0 {
		return ""
	}
	return j.calls[len(j.calls)-1].Actions[0].Resource
}

// A rig is a client of the SDK with the server over pipes, as over stdio.
type rig struct {
	*judge
	t       *testing.T
	ws      string // the workspace
	out     string // a file outside of it
	session *mcp.ClientSession
	hangUp  func()
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{judge: &judge{}, t: t, ws: dir + "/ws", out: dir + "/secret.txt"}
	r.put("a.txt", "one\ntwo\nthree\n")
	r.put("src/main.go", "package main\n\nfunc main() {}\n")
	r.put("src/deep/x_test.go", "package deep // main\n")
	r.put(".env", "TOKEN=hunter2\n")
	r.put("bin.dat", "a\x00b")
	if err := os.WriteFile(r.out, []byte("outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Workspace: r.ws, Environ: []string{"PATH=/usr/bin:/bin", "HOME=" + dir}, Judge: r.decide, Shell: "/bin/sh", Version: "test"}
	if change != nil {
		change(&o)
	}
	r.connect(o)
	return r
}

func (r *rig) connect(o Options) {
	r.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, o, inR, outW) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.session, r.hangUp = session, func() { inW.Close() }
	r.t.Cleanup(func() {
		session.Close()
		if err := testenv.Receive(r.t, "the server's end after its client's", served); err != nil {
			r.t.Errorf("the server ended with %v", err)
		}
		cancel()
	})
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.ws, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) has(name string) string {
	data, err := os.ReadFile(filepath.Join(r.ws, name))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(data)
}

type args map[string]any

// call calls a tool and returns its text, and whether it is an error.
func (r *rig) call(tool string, a args) (string, bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		return "protocol: " + err.Error(), true
	}
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	if b.Len() > MaxResult+4096 {
		r.t.Errorf("%s answers %d bytes", tool, b.Len())
	}
	return b.String(), res.IsError
}

func (r *rig) good(tool string, a args, want string) string {
	r.t.Helper()
	got, failed := r.call(tool, a)
	if failed || !strings.Contains(got, want) {
		r.t.Errorf("%s %.200v: got %.600q (error %v), want %q", tool, a, got, failed, want)
	}
	return got
}

func (r *rig) bad(tool string, a args, want string) string {
	r.t.Helper()
	got, failed := r.call(tool, a)
	if !failed || !strings.Contains(got, want) {
		r.t.Errorf("%s %.200v: got %.600q (error %v), want an error with %q", tool, a, got, failed, want)
	}
	return got
}

func TestTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	list, err := r.session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.InputSchema == nil || tool.Description == "" {
			t.Errorf("%s has no schema or no description", tool.Name)
		}
	}
	if got := strings.Join(names, " "); got != "edit exec glob grep read request_permission write" {
		t.Errorf("got %s", got)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.good("read", args{"path": "a.txt"}, "     1\tone\n     2\ttwo\n     3\tthree\n")
	if got := r.last(); got != r.ws+"/a.txt" {
		t.Errorf("judged %q", got)
	}
	r.good("read", args{"path": r.ws + "/a.txt", "offset": 2, "limit": 1}, "     2\ttwo\n[bawn: the file has 3 lines; go on with offset 3]")
	r.good("read", args{"path": "a.txt", "offset": 9}, "has 3 lines only")
	r.put("empty", "")
	r.good("read", args{"path": "empty"}, "is empty")
	r.bad("read", args{"path": "bin.dat"}, "no text")
	r.bad("read", args{"path": "src"}, "directory")
	r.bad("read", args{"path": "absent"}, "does not exist")
	r.bad("read", args{"path": ""}, "no path")
	r.bad("read", args{"path": "a.txt", "offset": -1}, "at least 0")
	r.bad("read", args{"path": "a.txt", "more": 1}, "")
	r.put("long", strings.Repeat(strings.Repeat("x", 5000)+"\n", 1000))
	if got := r.good("read", args{"path": "long"}, "go on with offset"); !strings.Contains(got, "3000 bytes more") {
		t.Errorf("a long line is shown whole")
	}
	r.put("escape", "a\x1b[2Jb\u202ec\td\r\n")
	r.good("read", args{"path": "escape"}, `a\x1b[2Jb\u202ec`+"\td\n")
	r.put("huge", strings.Repeat("x", MaxContent+1))
	r.bad("read", args{"path": "huge"}, "want at most")
}

func TestWriteAndEdit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.good("write", args{"path": "new/deep/f.txt", "content": "hi\n"}, "made new/deep/f.txt")
	r.good("write", args{"path": "a.txt", "content": "other\n"}, "replaced a.txt")
	if r.has("new/deep/f.txt") != "hi\n" || r.has("a.txt") != "other\n" {
		t.Errorf("got %q %q", r.has("new/deep/f.txt"), r.has("a.txt"))
	}
	if err := os.Chmod(r.ws+"/a.txt", 0o755); err != nil {
		t.Fatal(err)
	}
	r.good("edit", args{"path": "a.txt", "old": "other", "new": "x x"}, "replaced 1")
	if info, _ := os.Stat(r.ws + "/a.txt"); info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
	r.bad("edit", args{"path": "a.txt", "old": "x", "new": "y"}, "2 times, at lines [1]")
	r.good("edit", args{"path": "a.txt", "old": "x", "new": "y", "all": true}, "replaced 2")
	r.bad("edit", args{"path": "a.txt", "old": "absent", "new": "y"}, "not in")
	r.bad("edit", args{"path": "a.txt", "old": "", "new": "y"}, "not empty")
	r.bad("edit", args{"path": "absent", "old": "x", "new": "y"}, "does not exist")
	r.bad("write", args{"path": ".", "content": "x"}, "workspace itself")
	r.bad("write", args{"path": "src", "content": "x"}, "no file")
	r.bad("write", args{"path": "a.txt/b", "content": "x"}, "")
	if r.has("a.txt") != "y y\n" {
		t.Errorf("got %q", r.has("a.txt"))
	}
	left, _ := filepath.Glob(r.ws + "/.bawn-*")
	if len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("node_modules/x/main.go", "main")
	r.put("[id].tsx", "x")
	got := r.good("glob", args{"pattern": "**/*.go"}, "src/main.go")
	if !strings.Contains(got, "src/deep/x_test.go") || strings.Contains(got, "node_modules") {
		t.Errorf("got %q", got)
	}
	r.good("glob", args{"pattern": "*.{txt,tsx}"}, "a.txt")
	r.good("glob", args{"pattern": "[id].*"}, "[id].tsx")
	r.good("glob", args{"pattern": "*_test.go", "path": "src"}, "src/deep/x_test.go")
	r.good("glob", args{"pattern": "*.absent"}, "no file matches")
	r.bad("glob", args{"pattern": "{a"}, "can't be read")
	r.bad("glob", args{"pattern": "*", "path": "absent"}, "does not exist")
	r.good("grep", args{"pattern": "func (main)"}, "src/main.go:3:func main() {}")
	r.good("grep", args{"pattern": "MAIN", "ignore_case": true, "glob": "*_test.go"}, "src/deep/x_test.go:1:")
	r.good("grep", args{"pattern": "tw", "path": "a.txt"}, "a.txt:2:two")
	r.good("grep", args{"pattern": "absent"}, "nothing matches")
	r.bad("grep", args{"pattern": "("}, "missing closing")
	r.bad("grep", args{"pattern": "x", "path": "absent"}, "does not exist")
	r.put("many", strings.Repeat("needle "+strings.Repeat("y", 200)+"\n", 5000))
	if got := r.good("grep", args{"pattern": "needle"}, "narrow the search"); len(got) > MaxResult+200 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.good("exec", args{"command": "pwd; echo err >&2; exit 3"}, r.ws+"\nerr\n[bawn: exit code 3")
	if r.last() != "pwd; echo err >&2; exit 3" {
		t.Errorf("judged %q", r.last())
	}
	r.good("exec", args{"command": "pwd", "dir": "src"}, r.ws+"/src\n")
	r.good("exec", args{"command": "kill -9 $$"}, "signal 9")
	r.good("exec", args{"command": `printf 'a\033[2Jb'`}, `a\x1b[2Jb`)
	r.bad("exec", args{"command": " "}, "no command")
	r.bad("exec", args{"command": "a\x00b"}, "NUL")
	r.bad("exec", args{"command": strings.Repeat("x", maxCommand+1)}, "write a script")
	r.bad("exec", args{"command": "pwd", "dir": ".."}, "leads out")
	r.good("exec", args{"command": "cat", "timeout_seconds": 5}, "exit code 0") // nothing is typed
}

// TestHugeOutput: memory and result stay bounded, the begin and the end stay.
func TestHugeOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	got := r.good("exec", args{"command": "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last"}, "first\n")
	if !strings.Contains(got, "bytes are left out here") || !strings.Contains(got, "last\n") || len(got) > MaxResult {
		t.Errorf("got %d bytes, the end is %.100q", len(got), got[max(0, len(got)-100):])
	}
	r.good("exec", args{"command": "head -c 3000000 /dev/zero"}, "bytes are left out here")
}

// TestHangingCommands: what hangs is ended with all of its group. The control is
// the same command with more time.
func TestHangingCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	mark := func(seconds int) string {
		os.Remove(r.ws + "/late")
		began := time.Now()
		got, _ := r.call("exec", args{"command": "(sleep 3; echo x > late) & wait", "timeout_seconds": seconds})
		time.Sleep(time.Until(began.Add(3500 * time.Millisecond)))
		return got
	}
	if got := mark(60); !strings.Contains(got, "exit code 0") || r.has("late") != "x\n" {
		t.Fatalf("control: %q %q", got, r.has("late"))
	}
	if got := mark(1); !strings.Contains(got, "its limit") || r.has("late") == "x\n" {
		t.Errorf("got %q, and the child wrote %q", got, r.has("late"))
	}
	began := time.Now()
	r.good("exec", args{"command": "sleep 100 & echo done"}, "done\n")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("what is left in the background holds the call for %v", took)
	}
}

func TestCancelledCallEndsItsCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := r.session.CallTool(ctx, &mcp.CallToolParams{Name: "exec", Arguments: args{"command": "sleep 3; echo x > late"}})
	if err == nil {
		t.Fatal("it was not cancelled")
	}
	time.Sleep(3500 * time.Millisecond)
	if r.has("late") == "x\n" {
		t.Error("the command went on")
	}
}

// TestClientThatLeavesEndsItsCommands: the control is TestExec.
func TestClientThatLeavesEndsItsCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	go r.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "exec", Arguments: args{"command": "echo x > begun; sleep 3; echo x > late"}})
	testenv.Until(t, "the command", func() bool { return r.has("begun") == "x\n" })
	r.hangUp()
	time.Sleep(3500 * time.Millisecond)
	if r.has("late") == "x\n" {
		t.Error("the command went on")
	}
}

// TestSpoolIsBounded: what a command writes is not kept.
func TestSpoolIsBounded(t *testing.T) {
	t.Parallel()
	s := &spool{}
	part := []byte(strings.Repeat("x", 32<<10))
	for range 1000 {
		if n, err := s.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
		if kept := len(s.head) + len(s.tail); kept > 6*MaxResult {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
}
