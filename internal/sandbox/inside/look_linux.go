package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Question is what a host that can't see into a sandbox asks a command of its
// own there: the words Argument, LookArgument and the question as JSON. The
// answer is a Sight, as JSON, on standard output.
type Question struct {
	Paths   []string // what to look at, links not followed
	Connect string   // a UNIX socket to connect to; "" for none
	Create  string   // a file to make, which must not be there; "" for none
}

// A Sight answers a Question.
type Sight struct {
	Status  string // /proc/self/status (proc_pid_status(5))
	Stamps  []Stamp
	Connect syscall.Errno // 0 if somebody has answered, or there was no question
	Create  syscall.Errno // likewise
}

// A Stamp is by what a file can be told from others through any file system:
// when it was changed last, which nobody can set (inode(7), "ctime").
type Stamp struct {
	Errno  syscall.Errno // why there is none, or 0
	Change syscall.Timespec
	Dir    bool
}

// StampOf looks at a file, and does not follow a link.
func StampOf(path string) (Stamp, syscall.Stat_t) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return Stamp{Errno: errno(err)}, st
	}
	return StampFrom(&st), st
}

// StampFrom is the Stamp of a file with this status.
func StampFrom(st *syscall.Stat_t) Stamp {
	return Stamp{Change: st.Ctim, Dir: st.Mode&syscall.S_IFMT == syscall.S_IFDIR}
}

// look answers a question.
func look(words []string, to io.Writer) error {
	var q Question
	if len(words) != 1 {
		return fmt.Errorf("%d words after %q; want a question", len(words), LookArgument)
	}
	if err := json.Unmarshal([]byte(words[0]), &q); err != nil {
		return fmt.Errorf("%q is no question: %w", words[0], err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	s := Sight{Status: string(status), Connect: connects(q.Connect), Create: creates(q.Create)}
	for _, p := range q.Paths {
		stamp, _ := StampOf(p)
		s.Stamps = append(s.Stamps, stamp)
	}
	return json.NewEncoder(to).Encode(s)
}

// connects says why a socket can't be connected to, or 0.
func connects(path string) syscall.Errno {
	if path == "" {
		return 0
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	defer unix.Close(fd)
	return errno(unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
}

// creates says why a file can't be made, or 0.
func creates(path string) syscall.Errno {
	if path == "" {
		return 0
	}
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return errno(err)
}

// errno is the errno in an error: EIO where there is none, 0 for nil.
func errno(err error) syscall.Errno {
	var e syscall.Errno
	if err != nil && !errors.As(err, &e) {
		return syscall.EIO
	}
	return e
}
