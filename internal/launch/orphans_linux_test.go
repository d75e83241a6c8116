package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

const waitsForever = "BAWN_TEST_WAITS"

// TestMain is also what waits as bwrap's second process does.
func TestMain(m *testing.M) {
	if os.Getenv(waitsForever) == "" {
		os.Exit(m.Run())
	}
	fmt.Println("waits")
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGUSR1)
	<-end // it is killed before
}

// TestEndOrphans: what bwrap has left ends, where it holds the session's socket; another
// program that holds it, and a bwrap that does not, go on.
func TestEndOrphans(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "aaaaaaaaaaaaaaaaaaaaaaaaaa")
	l, err := sessionsocket.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	orphan, other, bare := waits(t, dir, "bwrap", f), waits(t, dir, "other", f), waits(t, dir, "bwrap", nil)
	f.Close()
	l.SetUnlinkOnClose(false)
	l.Close()
	if sessionsocket.Refuses(socket) {
		t.Fatal("nobody holds the socket: nothing is shown")
	}
	endOrphans(socket)
	if err := orphan.Wait(); err == nil || orphan.ProcessState.Success() {
		t.Errorf("what bwrap has left ended with %v; want it killed", err)
	}
	for _, p := range []*exec.Cmd{other, bare} {
		if err := p.Process.Signal(unix.Signal(0)); err != nil {
			t.Errorf("%s is gone: %v", p.Path, err)
		}
	}
}

// waits starts a program of that name that waits for good, with a descriptor.
func waits(t *testing.T, dir, name string, f *os.File) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, name)
	if err := os.Symlink(self, at); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	cmd := exec.Command(at)
	cmd.Env = append(os.Environ(), waitsForever+"=1")
	if f != nil {
		cmd.ExtraFiles = []*os.File{f}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, len("waits\n"))); err != nil {
		t.Fatal(err)
	}
	return cmd
}
