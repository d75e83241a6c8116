package supervise

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestSlowBind: a socket that the kernel binds only after the supervisor has
// stopped waiting is the session's own all the same; another one is not, nor
// is one whose name was to be believed.
func TestSlowBind(t *testing.T) {
	testenv.Need(t, "root") // to ask a socket what it is bound to
	for _, ownNetwork := range []bool{true, false} {
		dir := t.TempDir()
		late, never := unixSocket(t), unixSocket(t)
		s := &sockets{bound: map[fileID]bool{}, ownNetwork: ownNetwork}
		for _, fd := range []int{late, never} {
			s.remember(bindingOf(t, fd, dir))
		}
		defer s.close()
		bindAt(t, late, filepath.Join(dir, "late"))
		bindAt(t, unixSocket(t), filepath.Join(dir, "other"))
		for name, want := range map[string]bool{"late": ownNetwork, "other": false} {
			id, _, err := identify(unix.AT_FDCWD, filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.own(id, filepath.Join(dir, name)); got != want {
				t.Errorf("own network %v: %s is the session's own: %v, want %v", ownNetwork, name, got, want)
			}
		}
	}
}

// TestManyFailedBinds: binds that never come true are bounded.
func TestManyFailedBinds(t *testing.T) {
	testenv.Need(t, "root")
	s := &sockets{bound: map[fileID]bool{}, ownNetwork: true}
	defer s.close()
	fd := unixSocket(t)
	for range maxBinding + 5 {
		s.remember(bindingOf(t, fd, t.TempDir()))
	}
	if len(s.binding) != maxBinding {
		t.Errorf("%d are kept, want %d", len(s.binding), maxBinding)
	}
}

// bindingOf holds the socket as the supervisor does, with descriptors of its
// own.
func bindingOf(t *testing.T, fd int, dir string) binding {
	t.Helper()
	sock, err1 := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	at, err2 := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return newBinding(sock, place{dir: at, name: "none"})
}

func unixSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func bindAt(t *testing.T, fd int, p string) {
	t.Helper()
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: p}); err != nil {
		t.Fatal(err)
	}
}

// TestBelievedName: where the socket can't be asked what it is bound to, its name
// counts only once it is bound, and not for what was there before.
func TestBelievedName(t *testing.T) {
	dir := t.TempDir()
	host, own := unixSocket(t), unixSocket(t)
	bindAt(t, host, filepath.Join(dir, "host"))
	time.Sleep(20 * time.Millisecond) // the clock of files is a coarse one
	named := func(name string) binding {
		b := bindingOf(t, own, dir)
		b.at.name = name
		t.Cleanup(b.close)
		return b
	}
	pretended, mine := named("host"), named("own")
	if id, err := pretended.believed(); err != unix.ENOENT {
		t.Errorf("a socket that is not bound is believed to be %+v, %v", id, err)
	}
	bindAt(t, own, filepath.Join(dir, "own"))
	if id, err := pretended.believed(); err != unix.EACCES {
		t.Errorf("an older socket is believed to be the new one: %+v, %v", id, err)
	}
	want, _, err := identify(unix.AT_FDCWD, filepath.Join(dir, "own"))
	if id, berr := mine.believed(); err != nil || berr != nil || id != want {
		t.Errorf("got %+v, %v, want %+v, %v", id, berr, want, err)
	}
}
