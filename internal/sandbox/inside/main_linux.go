package inside

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
)

// Main is the first process of a sandbox. Its control socket is its standard input,
// unless args, the words behind Argument, are the path of a UNIX socket to connect to, or
// begin with StreamArgument. It returns the exit code once the host has closed the socket
// and what was started has been killed. It must be alone in its process.
func Main(args []string, control *os.File) int {
	socket, null, limits, err := begin(args, control)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bawn: the sandbox can't be made:", err)
		return 1
	}
	return executor.Serve(socket, null, limits)
}

// begin does what the host says until the executor can follow. What the
// executor needs to be open is open then: later, opening for writing may be a
// call that is held, and this process one whose memory nobody may read.
func begin(args []string, control *os.File) (socket, null *os.File, limits []executor.Rlimit, err error) {
	closeInherited()
	if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, nil, nil, err
	}
	if socket, err = connect(args, control); err != nil {
		return nil, nil, nil, err
	}
	conn, err := ipc.New(socket, intent.Limits)
	if err != nil {
		return nil, nil, nil, err
	}
	setup, err := receive(conn)
	if err == nil {
		err = setup.apply(conn)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, conn.Send(&report{Failed: stepError(err)}))
	}
	return socket, null, setup.limits(), nil
}

// closeInherited closes what an engine may have left open. Descriptors of the
// kernel's own making stay: this program's runtime has some. It got the lowest
// free numbers, so that none of its own lies behind a gap.
func closeInherited() {
	fd := 3
	for gap := 0; gap < 16; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			gap++
			continue
		}
		if to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && !strings.HasPrefix(to, "anon_inode:[event") {
			_ = unix.Close(fd)
		}
	}
	_ = unix.CloseRange(uint(fd), math.MaxUint32, 0) // what stays is closed on exec, and out of reach
}

// connect returns the control socket.
func connect(args []string, control *os.File) (*os.File, error) {
	if len(args) > 0 && args[0] == StreamArgument {
		return stream.Serve(control, args[1:])
	}
	if len(args) == 0 {
		return control, nil
	}
	if len(args) > 1 {
		return nil, fmt.Errorf("%d words after %q; want the path of a socket, or none", len(args), Argument)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: args[0]}); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %q: %w", args[0], err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), args[0]), nil
}

// receive joins the groups that come, and returns the setup, which comes last.
func receive(conn *ipc.Conn) (*Setup, error) {
	for {
		var o order
		files, err := conn.Receive(&o)
		if err != nil {
			return nil, step("hear what is to be done", err)
		}
		if len(files) != o.Join {
			err = fmt.Errorf("%d files came; want %d", len(files), o.Join)
		}
		for _, f := range files {
			if err == nil {
				_, err = f.WriteString("0") // the writing process
			}
			f.Close()
		}
		if err != nil {
			return nil, step("join a control group", err)
		}
		if o.Setup != nil {
			return o.Setup, nil
		}
	}
}

// step gives err the name of what failed.
func step(name string, err error) error {
	if err == nil {
		return nil
	}
	e := &StepError{Step: name, Why: err.Error()}
	errors.As(err, &e.Errno)
	return e
}

// stepError is err as the host is told it.
func stepError(err error) *StepError {
	var e *StepError
	if !errors.As(err, &e) {
		e = &StepError{Step: "set it up", Why: err.Error()}
	}
	return e
}

// apply carries the setup out, in an order in which nothing needs what was given
// up before, and hands out what the host needs.
func (s *Setup) apply(conn *ipc.Conn) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.network(conn); err != nil {
		return err
	}
	if s.Terminals {
		if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
			return step("mount the terminals", err)
		}
	}
	if err := s.Copy.mount(); err != nil {
		return err
	}
	var out handed
	files, err := s.open(&out)
	if err != nil {
		return err
	}
	listener, err := s.restrict()
	if err != nil {
		return err
	}
	if listener != nil {
		out.Listener = true
		files = slices.Insert(files, 1, listener)
	}
	if err := conn.Send(&report{Handed: &out}, files...); err != nil {
		return step("hand out what the host needs", err)
	}
	for _, f := range files {
		f.Close()
	}
	return nil
}
