package native

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// waits reports whether git's status of a work tree does not come to an end in time.
func waits(t *testing.T, ws string, limit time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, "git", "-C", ws, "status")
	if out, err := c.CombinedOutput(); err != nil && ctx.Err() == nil {
		t.Fatalf("git status: %v: %s", err, out)
	}
	return errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// TestFifosUnderGitsNames: no FIFO of a guest's makes git on the host wait. Each
// script does so where nothing stops it.
func TestFifosUnderGitsNames(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "python3", "git")
	for name, text := range map[string]string{
		"made":          "mkfifo .gitignore",
		"made below":    "mkfifo src/.gitignore",
		"renamed":       "mkfifo f; mv f .gitignore",
		"linked":        "mkfifo f; ln f .gitignore",
		"exchanged":     `mkfifo f; echo >.gitignore; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100,b"f",-100,b".gitignore",2)'`,
		"exchanged too": `mkfifo f; echo >.gitignore; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100,b".gitignore",-100,b"f",2)'`,
		"copied":        "mkfifo /tmp/f-$$; cp -a /tmp/f-$$ .gitignore; rm /tmp/f-$$",
	} {
		t.Run(name, func(t *testing.T) {
			for _, inside := range []bool{false, true} {
				ws := workspace(t)
				if err := os.Mkdir(filepath.Join(ws, "src"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(ws, "src/file"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("git", "init", "-q", ws).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				limit := time.Second
				if inside {
					limit = 20 * time.Second
					script(t, ws, text)
				} else {
					bare(t, ws, ws, text)
				}
				if got := waits(t, ws, limit); got == inside {
					t.Errorf("inside %v: git waits: %v", inside, got)
				}
			}
		})
	}
	ws := workspace(t)
	out, code, denials := script(t, ws, `set -e; mkfifo f; mv f g; ln g h; echo x >.gitignore; mv .gitignore .mailmap
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'`)
	if code != 0 || len(denials) > 0 {
		t.Errorf("%s(%d) %v", out, code, denials)
	}
	for _, n := range append(supervise.GitReads, ".GitIgnore") {
		if out, code, denials := script(t, workspace(t), "mkfifo "+n); code == 0 || len(denials) != 1 || denials[0].Rule != supervise.RulePipe {
			t.Errorf("%s: %s(%d) %v", n, out, code, denials)
		}
	}
}
