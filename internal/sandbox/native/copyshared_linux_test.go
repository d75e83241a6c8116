package native

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestSharedCopy: two sandboxes write to one copy of a workspace, each sees at once what the
// other one writes, and the workspace stays. A third one, for which no mount is left, does
// not start: it would mount a second overlay over the same layer.
func TestSharedCopy(t *testing.T) {
	ws := workspace(t)
	host(t, ws, `echo base >base`)
	req, upper := onCopy(t, ws)
	req.SharedCopy = &sandbox.SharedCopy{}
	p := New("")
	start := func() (sandbox.Guest, error) {
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		return p.Start(plan, func(sandbox.Denial) {})
	}
	run := func(g sandbox.Guest, script string) string {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		_, err = g.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", script}, Stdio: [3]*os.File{null, w, w}})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(r)
		return string(out)
	}
	first, err := start()
	if err != nil {
		t.Fatal(err)
	}
	second, err := start()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	run(first, `echo one >base; echo x >.envrc; ls new 2>/dev/null`)
	if got := run(second, `cat base .envrc; echo two >base; echo y >new`); got != "one\nx\n" {
		t.Errorf("the second sees %q", got)
	}
	if got := run(first, `cat base new`); got != "two\ny\n" {
		t.Errorf("the first sees %q", got)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if got := run(second, `echo three >>base; cat base`); got != "two\nthree\n" {
		t.Errorf("after the first has ended the second sees %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(ws, "base")); err != nil || string(b) != "base\n" {
		t.Errorf("the workspace has %q, %v", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(upper, "base")); err != nil || string(b) != "two\nthree\n" {
		t.Errorf("control: the layer has %q, %v", b, err)
	}
	if g, err := start(); !errors.Is(err, sandbox.ErrTaken) {
		t.Errorf("a third one: %v", err)
		if err == nil {
			g.Close()
		}
	}
}
