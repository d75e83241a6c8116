package native

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// script runs a shell script in a fresh sandbox and returns its output.
func script(t *testing.T, ws, text string) (string, int, []sandbox.Denial) {
	t.Helper()
	p := New("")
	plan, err := p.Plan(request(ws))
	if err != nil {
		t.Fatal(err)
	}
	return execute(t, p, plan, text)
}

// request asks for the default isolation of a workspace.
func request(ws string) sandbox.Request {
	return sandbox.Request{
		Session: bawn.Session{ID: "test", Isolation: bawn.Isolation{Workspace: ws, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts: []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}}, Resources: bawn.Resources{TmpMB: 64}}},
		Argv: []string{"sh"}, Dir: ws, Environ: os.Environ(),
	}
}

// execute runs a script under a plan.
func execute(t *testing.T, p sandbox.Provider, plan sandbox.Plan, text string) (string, int, []sandbox.Denial) {
	t.Helper()
	var denials []sandbox.Denial
	g, err := p.Start(plan, func(d sandbox.Denial) { denials = append(denials, d) })
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r, w, _ := os.Pipe()
	null, _ := os.Open(os.DevNull)
	proc, err := g.Exec(sandbox.Command{Argv: []string{"bash", "-c", text}, Stdio: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(r)
	code := -1
	for ch := range proc.Changes() {
		code = ch.Status.ExitStatus()
	}
	return string(out), code, denials
}

func workspace(t *testing.T) string {
	t.Helper()
	base := "/var/lib"
	if os.Geteuid() != 0 {
		base, _ = os.UserHomeDir()
	}
	dir, err := os.MkdirTemp(base, "bawn-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	real, _ := filepath.EvalSymlinks(dir)
	return real
}

func TestSmoke(t *testing.T) {
	ws := workspace(t)
	out, code, denials := script(t, ws, `id -u; cat /proc/self/uid_map; echo hi > f && cat f; echo no > /etc/x; mkdir .claude; ls -la; cat /proc/self/status | grep -E 'Cap|NoNew|Secc'; ls /dev /tmp /run; ls /proc | head -3; mount | wc -l`)
	t.Log(out, code, denials)
	if !strings.Contains(out, "hi\n") || code != 0 {
		t.Fail()
	}
}

func BenchmarkPlan(b *testing.B) {
	ws := b.TempDir()
	p := New("")
	for b.Loop() {
		if _, err := p.Plan(request(ws)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New("")
	}
}

func BenchmarkStartAndClose(b *testing.B) {
	ws, p := b.TempDir(), New("")
	plan, err := p.Plan(request(ws))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g, err := p.Start(plan, func(sandbox.Denial) {})
		if err != nil {
			b.Fatal(err)
		}
		g.Close()
	}
}

func BenchmarkExec(b *testing.B) {
	ws, p := b.TempDir(), New("")
	plan, err := p.Plan(request(ws))
	if err != nil {
		b.Fatal(err)
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	for b.Loop() {
		proc, err := g.Exec(sandbox.Command{Argv: []string{"/bin/true"}, Stdio: [3]*os.File{null, null, null}})
		if err != nil {
			b.Fatal(err)
		}
		for range proc.Changes() {
		}
	}
}

func BenchmarkUnsandboxed(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
