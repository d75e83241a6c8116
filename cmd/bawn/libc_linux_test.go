package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestWithLibc runs a bawn that is linked with a C library, as "go build" makes
// it where there is a C compiler: its threads are not as Go alone makes them,
// and the guest's first process is forked from one. All of it is compiled anew for
// that, so that root alone does where testenv.Short says so.
func TestWithLibc(t *testing.T) {
	testenv.Need(t, "go", "cc", "userns", "landlock", "seccomp", "notify", "bwrap")
	testenv.ByRoot(t)
	bawn := buildWithLibc(t)
	t.Run("codes", func(t *testing.T) { libcCodes(t, bawn) })
	t.Run("says so", func(t *testing.T) { libcSaysSo(t, bawn) })
	t.Run("nothing outlives bawn", func(t *testing.T) { libcNothingOutlives(t, bawn) })
}

func libcCodes(t *testing.T, bawn string) {
	for script, want := range map[string]struct {
		code int
		out  string
	}{
		"true":                     {0, ""},
		"exit 7":                   {7, ""},
		"echo hello | cat":         {0, "hello\n"},
		"echo no >/etc/bawn-test":  {2, ""},
		"kill -TERM $$":            {128 + 15, ""},
		"(sleep 60 &) ; echo gone": {0, "gone\n"},
	} {
		cmd := exec.Command(bawn, "run", "-q", "--", "sh", "-c", script)
		cmd.Dir = t.TempDir()
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != want.code || string(out) != want.out {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", script, got, out, want.code, want.out)
		}
	}
}

// libcSaysSo: the providers that need a static program name the remedy.
func libcSaysSo(t *testing.T, bawn string) {
	cmd := exec.Command(bawn, "run", "-q", "--net", "none", "--provider", "bwrap", "--", "true")
	cmd.Dir = t.TempDir()
	if said, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(said), "CGO_ENABLED=0") {
		t.Errorf("%v: %s", err, said)
	}
}

// libcNothingOutlives kills such a bawn; a guest that ignores
// signals holds the pipe as long as it lives.
func libcNothingOutlives(t *testing.T, bawn string) {
	cmd := exec.Command(bawn, "run", "-q", "--", "sh", "-c", "trap '' TERM HUP INT; (sleep 1000 &); echo ready; sleep 1000")
	cmd.Dir = t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
		t.Errorf("got %q, %v", line, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("a process of the guest still holds the pipe: %v", err)
	}
}

func buildWithLibc(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bawn")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := exec.Command("go", "version", "-m", path).Output()
	if err != nil || !strings.Contains(string(info), "CGO_ENABLED=1") {
		t.Fatalf("not built with a C library: %s%v", info, err)
	}
	return path
}
