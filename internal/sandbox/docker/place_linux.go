package docker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// placesName is the directory of all session's places, below Setting.Runtime.
const placesName = "docker"

// What a place holds besides the socket; nothing else is ever removed.
const (
	controlEntry   = "control"
	emptyDirEntry  = "empty"
	emptyFileEntry = "empty-file"
)

// A place is a session's own directory on the host, which nobody else can
// enter. The container sees what is in it, entry by entry.
type place struct {
	path   string
	listen int // the control socket; -1 once it is closed
}

// makePlace makes one, with its socket listening. The name says who removes it.
func makePlace(runtime string, m maker.Maker) (*place, error) {
	base := filepath.Join(runtime, placesName)
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for the session: %w", err)
	}
	if err := private(base); err != nil {
		return nil, err
	}
	p := &place{path: filepath.Join(base, fmt.Sprintf("%d-%d-%s", m.PID, m.Start, rand.Text()[:8])), listen: -1}
	if err := os.Mkdir(p.path, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for the session: %w", err)
	}
	if err := p.fill(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a place for the session: %w", err), p.remove())
	}
	return p, nil
}

// private refuses a directory that others may enter, or own.
func private(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() || fi.Mode().Perm()&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q is not a directory of yours alone; remove it, or chmod 700", dir)
	}
	return nil
}

// fill makes what the container is shown. The directory that holds all is
// closed; in here modes are for the container's user.
func (p *place) fill() error {
	if err := os.Mkdir(p.at(emptyDirEntry), 0); err != nil {
		return err
	}
	f, err := os.OpenFile(p.at(emptyFileEntry), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	control := p.at(controlEntry)
	if err := errors.Join(f.Close(), os.Mkdir(control, 0o755), os.Chmod(control, 0o755)); err != nil {
		return err
	}
	return p.bind(control)
}

// bind makes the socket, by a name that is short enough for any directory
// (unix(7) has 108 bytes for it).
func (p *place) bind(control string) error {
	dir, err := unix.Open(control, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if p.listen, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	err = unix.Bind(p.listen, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, controlName)})
	return errors.Join(err, os.Chmod(filepath.Join(control, controlName), 0o666), unix.Listen(p.listen, 4))
}

func (p *place) at(entry string) string { return filepath.Join(p.path, entry) }

// shut closes the socket: from now on nobody can connect.
func (p *place) shut() {
	if p.listen >= 0 {
		unix.Close(p.listen)
		p.listen = -1
	}
}

// remove removes only what fill has made.
func (p *place) remove() error {
	p.shut()
	return removePlace(p.path)
}

// removePlace removes a place by its entries' names: what is not known stays,
// and the directory with it.
func removePlace(path string) error {
	var errs []error
	for _, entry := range []string{controlEntry + "/" + controlName, controlEntry, emptyDirEntry, emptyFileEntry, ""} {
		if err := os.Remove(filepath.Join(path, entry)); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweepPlaces removes the places of makers that have ended.
func sweepPlaces(runtime string) error {
	base := filepath.Join(runtime, placesName)
	list, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range list {
		pid, rest, ok := strings.Cut(e.Name(), "-")
		start, _, ok2 := strings.Cut(rest, "-")
		m, err := maker.Parse(pid + ":" + start)
		if ok && ok2 && err == nil && e.IsDir() && m.Gone() {
			errs = append(errs, removePlace(filepath.Join(base, e.Name())))
		}
	}
	return errors.Join(errs...)
}
