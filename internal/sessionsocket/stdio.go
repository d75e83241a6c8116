//go:build linux || darwin

package sessionsocket

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A class says how a descriptor of the guest may be used.
type class uint8

const (
	refused  class = iota // it may not come along
	closed                // the guest has closed it
	passed                // it can carry nothing but bytes: the command gets it
	null                  // /dev/null: the command gets one of its own
	terminal              // the command gets a terminal of its own zone
	pumped                // the command gets a pipe of its own, which the session socket fills or empties
)

// A stdio is one of the guest's three descriptors, sorted.
type stdio struct {
	file  *os.File // nil where class is closed
	class class
	kind  uint32    // of the file: S_IFREG and so on
	slave bool      // of a pseudo-terminal
	place [2]uint64 // device and inode
}

// sort says what each descriptor is. It asks the kernel, never the guest.
func sort(files [3]*os.File) (out [3]stdio, err error) {
	for i, f := range files {
		if f == nil {
			out[i].class = closed
			continue
		}
		out[i].file = f
		err := control(f, func(fd int) error {
			if err := out[i].classify(fd); err != nil {
				return err
			}
			if i > 0 && out[i].kind == unix.S_IFREG && ofKernel(fd) {
				return errKernel
			}
			return nil
		})
		if err != nil {
			out[i].class = refused
		}
		if err != nil {
			return out, fmt.Errorf("descriptor %d: %w", i, err)
		}
	}
	return out, nil
}

// control calls f with the descriptor, which stays as it is: os.File.Fd would
// make the guest's own side of it block.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

var (
	errPlace = errors.New("it only names a place and can't be read or written (O_PATH)")
	// Some such files look at the rights of the process that writes, which would be ours
	// (oom_score_adj, proc_pid_oom_score_adj(5)).
	errKernel = errors.New("it is a file of the kernel's, such as those in /proc, and output is not written there")
	errKind   = errors.New("it is no file, pipe, terminal or socket")
)

func (s *stdio) classify(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if onlyNames(flags) {
		return errPlace
	}
	s.place = [2]uint64{uint64(st.Dev), uint64(st.Ino)}
	s.kind = uint32(st.Mode) & unix.S_IFMT
	switch s.kind {
	case unix.S_IFIFO:
		s.class = pumped
		if anonymous(fd) {
			s.class = passed
		}
	case unix.S_IFCHR:
		s.class = s.device(fd, &st)
	case unix.S_IFREG, unix.S_IFSOCK:
		s.class = pumped
	default:
		return errKind
	}
	return nil
}

// device sorts a character device: /dev/null is number 3 of the memory
// devices, whatever it is called.
func (s *stdio) device(fd int, st *unix.Stat_t) class {
	if isNull(uint64(st.Rdev)) {
		return null
	}
	s.slave = slave(uint64(st.Rdev))
	if _, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
		return terminal
	}
	return pumped
}

// open returns a stream for the session socket's own use of the descriptor. Terminals
// and named pipes are opened anew, so that no read waits for bytes that
// somebody else has taken.
func (s *stdio) open(write bool) (*stream, error) {
	flags, again := unix.O_RDONLY, s.slave || s.kind == unix.S_IFIFO && !write
	if write {
		flags = unix.O_WRONLY
	}
	if !again {
		st, err := newStream(s.file, s.kind == unix.S_IFSOCK, false)
		if err == nil {
			st.careful = s.kind == unix.S_IFIFO || s.kind == unix.S_IFCHR
		}
		return st, err
	}
	f, err := reopen(s.file, flags)
	if err != nil {
		return nil, fmt.Errorf("use it: %w", err)
	}
	return newStream(f, false, true)
}

// shared is the standard input of one statement of a shell that reads its
// statements from there too: pumped bytes could be the next statement. A file
// is read from where the shell stands, and handed back.
func (s stdio) shared() stdio {
	if s.class == pumped && s.kind != unix.S_IFREG {
		s.class = null
	}
	return s
}
