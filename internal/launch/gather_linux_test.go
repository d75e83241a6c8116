package launch

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoFiles: a file, a directory and a pipe with a name are files of the host that a
// guest may open anew; a pipe, a socket and /dev/null are not.
func TestNoFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string, flags int) *os.File {
		f, err := os.OpenFile(name, flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	sock := os.NewFile(uintptr(pair[0]), "socket")
	defer sock.Close()
	defer unix.Close(pair[1])
	null := open(os.DevNull, os.O_RDWR)
	for name, c := range map[string]struct {
		f    *os.File
		want bool
	}{
		"a pipe": {w, true}, "a socket": {sock, true}, "/dev/null": {null, true},
		"a file": {open(filepath.Join(dir, "f"), os.O_CREATE|os.O_WRONLY), false}, "a directory": {open(dir, os.O_RDONLY), false},
		"a pipe with a name": {open(fifo, os.O_RDWR), false}, "another device": {open("/dev/zero", os.O_RDONLY), false},
	} {
		if got := noFiles(r, null, c.f); got != c.want {
			t.Errorf("%s: no file of the host: %v", name, got)
		}
	}
	if closed := os.NewFile(1<<20, "closed"); noFiles(closed) {
		t.Error("a closed descriptor is no file of the host")
	}
}
