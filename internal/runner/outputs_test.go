//go:build linux || darwin

package runner

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// redirected opens a file with text in it, as a shell does for >> or >.
func redirected(t *testing.T, flags int) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(name, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOutputsToFiles: a guest's output reaches its files in order, through pipes at which
// nothing can be cut.
func TestOutputsToFiles(t *testing.T) {
	to, input := redirected(t, os.O_WRONLY|os.O_APPEND), redirected(t, os.O_RDONLY)
	o := outputs{}
	stdio, err := o.join([3]*os.File{input, to, to})
	if err != nil {
		t.Fatal(err)
	}
	if stdio[0] != input || stdio[1] == to || stdio[1] != stdio[2] {
		t.Errorf("input, output and error are %v, of %v, %v", stdio, input, to)
	}
	if err := stdio[1].Truncate(0); err == nil {
		t.Error("what stands for a file can be cut")
	}
	for i, word := range []string{"a", "b", "c", "d"} {
		if _, err := io.WriteString(stdio[1+i%2], word); err != nil {
			t.Fatal(err)
		}
	}
	o.started()
	o.close()
	if got := content(t, to); got != "before\nabcd" {
		t.Errorf("the file holds %q", got)
	}
}

// TestOutputsApart: two files are two pipes, and what is no file is passed on as it is.
func TestOutputsApart(t *testing.T) {
	out, errs := redirected(t, os.O_WRONLY|os.O_TRUNC), redirected(t, os.O_WRONLY)
	o := outputs{limit: 4}
	stdio, err := o.join([3]*os.File{nil, out, errs})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(stdio[1], strings.Repeat("x", 9)) // beyond the limit nobody takes it
	_, _ = io.WriteString(stdio[2], "err")
	o.started()
	o.close()
	if got := content(t, out) + content(t, errs); got != "xxxxerrore\n" {
		t.Errorf("the files hold %q", got)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	plain := [3]*os.File{nil, w, redirected(t, os.O_RDONLY)}
	none := outputs{}
	if got, err := none.join(plain); err != nil || got != plain || len(none.ours) > 0 {
		t.Errorf("a pipe and a file that can't be written became %v, %v", got, err)
	}
	none.close()
}
