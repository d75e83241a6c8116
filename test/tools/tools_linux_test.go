// Package tools_test calls Bawn's own tools as an agent does: over stdio, in sessions, with
// the real programs.
package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

func TestMain(m *testing.M) { os.Exit(testhome.Main("tools", m.Run)) }

var check = testhome.Check

// A rig is a project in a home of its own.
type rig struct {
	t       *testing.T
	home    string
	project string
	env     []string
}

// policy denies what would be asked otherwise, when nobody is there.
const policy = `[[rule]]
kind = "command"
pattern = "git push *"
verdict = "deny"
priority = 100
reason = "pushed by humans"

[[rule]]
kind = "filesystem"
pattern = "**/.env"
verdict = "deny"
priority = 100
reason = "secrets"
`

func newRig(t *testing.T, rules string) *rig {
	t.Helper()
	home := testhome.NewAccount(t, time.Minute).Home
	r := &rig{t: t, home: home, project: home + "/project"}
	check(t, os.MkdirAll(r.project+"/.git/hooks", 0o755))
	check(t, os.MkdirAll(home+"/.config/bawn", 0o700))
	check(t, os.Mkdir(home+"/run", 0o700))
	r.put("a.txt", "one\ntwo\n")
	r.put(".env", "TOKEN=hunter2\n")
	r.put("../outside.txt", "outside\n")
	r.put("../.config/bawn/policy.toml", rules)
	r.env = []string{"HOME=" + home, "PATH=" + testhome.Bin() + ":/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR=" + home + "/run", "LANG=C.UTF-8"}
	return r
}

func (r *rig) put(name, text string) {
	r.t.Helper()
	check(r.t, os.WriteFile(filepath.Join(r.project, name), []byte(text), 0o600))
}

func (r *rig) has(name string) string {
	data, err := os.ReadFile(filepath.Join(r.project, name))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(data)
}

func (r *rig) command(args ...string) *exec.Cmd {
	cmd := exec.Command(testhome.Bin()+"/bawn", args...)
	cmd.Env, cmd.Dir = r.env, r.project
	return cmd
}

// A client is an agent with the tools of one server.
type client struct {
	*mcp.ClientSession
	t      *testing.T
	server *exec.Cmd
}

// serve starts the tools as an agent's settings would.
func (r *rig) serve(args ...string) *client {
	r.t.Helper()
	cmd := r.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r.t.Cleanup(cancel)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		r.t.Fatalf("%q: %v: %s", args, err, &said)
	}
	r.t.Cleanup(func() { s.Close() })
	return &client{s, r.t, cmd}
}

type args map[string]any

func (c *client) call(tool string, a args) (string, bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		return "protocol: " + err.Error(), true
	}
	var b strings.Builder
	for _, part := range res.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String(), res.IsError
}

// wants calls a tool; failed says whether it is to be refused.
func (c *client) wants(failed bool, tool string, a args, want string) {
	c.t.Helper()
	if got, is := c.call(tool, a); is != failed || !strings.Contains(got, want) {
		c.t.Errorf("%s %v: got %.500q (error %v), want %q (error %v)", tool, a, got, is, want, failed)
	}
}

// TestTools: the tools start a session of their own, what they do is decided and
// recorded, and the sandbox lies below. The controls are the same tools on what
// is allowed.
func TestTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy)
	c := r.serve("mcp", "--tools", "--", "--net", "none")
	c.wants(false, "exec", args{"command": "grep Seccomp: /proc/self/status; echo hi > made; cat made"}, "Seccomp:\t2\nhi\n[bawn: exit code 0")
	c.wants(false, "exec", args{"command": "cat /proc/[0-9]*/comm"}, "bawnd\n") // the control of the split session
	c.wants(false, "read", args{"path": "a.txt"}, "     2\ttwo\n")
	c.wants(false, "write", args{"path": "new/b.txt", "content": "x\n"}, "made new/b.txt")
	c.wants(false, "edit", args{"path": "a.txt", "old": "one", "new": "ONE"}, "replaced 1")
	c.wants(false, "glob", args{"pattern": "**/*.txt"}, "new/b.txt")
	c.wants(false, "grep", args{"pattern": "ONE"}, "a.txt:1:ONE")
	if r.has("made") != "hi\n" || r.has("new/b.txt") != "x\n" || r.has("a.txt") != "ONE\ntwo\n" {
		t.Errorf("the project has %q %q %q", r.has("made"), r.has("new/b.txt"), r.has("a.txt"))
	}
	c.wants(true, "exec", args{"command": "git push --force origin main"}, "pushed by humans")
	c.wants(true, "read", args{"path": ".env"}, "secrets")
	c.wants(true, "read", args{"path": "../outside.txt"}, "leads out of the workspace")
	c.wants(true, "write", args{"path": ".git/hooks/pre-commit", "content": "x"}, "bawn: denied: ")
	if got, _ := c.call("grep", args{"pattern": "TOKEN"}); strings.Contains(got, "hunter2") || !strings.Contains(got, "1 files that match") {
		t.Errorf("grep tells %q", got)
	}
	if r.has(".git/hooks/pre-commit") == "x" || r.has("../outside.txt") != "outside\n" {
		t.Error("something outside was written")
	}
	c.Close()
	log, err := r.command("audit", "query", "--json").Output()
	check(t, err)
	for _, want := range []string{"git push --force origin main", "/.git/hooks/pre-commit", "/a.txt", `"bawn-tools"`} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("the log has no %q", want)
		}
	}
}

// TestAskedAndAnswered: a call waits for its human, who answers elsewhere.
func TestAskedAndAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	c := r.serve("mcp", "--tools", "--", "--net", "none", "--mode", "strict")
	for _, tt := range []struct {
		verb   string
		failed bool
		want   string
	}{{"deny", true, "bawn: denied: "}, {"approve", false, "hunter2"}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.wants(tt.failed, "read", args{"path": ".env"}, tt.want)
		}()
		r.answer(tt.verb)
		<-done
	}
}

// answer answers the one question that there is.
func (r *rig) answer(verb string) {
	r.t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		out, _ := r.command("approvals", "--json").Output() // there may be no relay yet
		var q struct{ ID string }
		if json.Unmarshal(bytes.SplitN(out, []byte("\n"), 2)[0], &q) != nil || q.ID == "" {
			continue
		}
		if said, err := r.command(verb, q.ID).CombinedOutput(); err != nil {
			r.t.Errorf("%s: %v: %s", verb, err, said)
		}
		return
	}
	r.t.Error("nobody is asked")
}

// TestToolsOfASplitSession: exec runs in the zone of commands, and is decided at
// its session socket.
func TestToolsOfASplitSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy)
	c := r.serve("mcp", "--tools", "--", "--net", "none", "--split")
	if got, failed := c.call("exec", args{"command": "cat /proc/[0-9]*/comm; echo hi > made"}); failed || strings.Contains(got, "bawnd") || !strings.Contains(got, "bash\n") {
		t.Errorf("beside the command run %q", got)
	}
	c.wants(false, "read", args{"path": "made"}, "     1\thi\n")
	c.wants(false, "exec", args{"command": "git push --force origin main"}, "pushed by humans")
	c.wants(true, "read", args{"path": ".env"}, "secrets")
}

// TestToolsInASession: a guest starts them as its agent would, and they serve in
// its own sandbox, and end with it.
func TestToolsInASession(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy)
	c := r.serve("run", "-q", "--net", "none", "--", testhome.Bin()+"/bawn", "mcp", "--tools")
	c.wants(false, "exec", args{"command": "echo hi"}, "hi\n")
	c.wants(true, "read", args{"path": ".env"}, "secrets")
	out, err := r.command("run", "-q", "--net", "none", "--", testhome.Bin()+"/bawn", "mcp", "--tools", "--", "--net", "full").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not for a session that runs") {
		t.Errorf("flags in a session: %v %s", err, out)
	}
	nap := fmt.Sprintf("8765%d", os.Getpid()) // of nobody else
	go c.call("exec", args{"command": "sleep " + nap})
	testenv.Until(t, "the command", func() bool { return sleeps(nap) })
	check(t, c.server.Process.Kill())
	testenv.Until(t, "the end of the command", func() bool { return !sleeps(nap) })
}

// sleeps reports whether a process sleeps so long.
func sleeps(nap string) bool {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range list {
		text, _ := os.ReadFile(name) // it may have ended
		if string(text) == "sleep\x00"+nap+"\x00" {
			return true
		}
	}
	return false
}
