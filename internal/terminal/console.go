//go:build linux || darwin

package terminal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A console is the user's terminal, opened once more where possible. The shell and
// other programs that have inherited stdin share its open file description. Making
// that non-blocking would break them. Without non-blocking reads, a read may wait
// for a key that another program has taken.
type console struct {
	fd int
}

// openConsole opens the terminal behind f for reading and writing. Where it
// can be opened neither by its name nor as the controlling terminal (tty(4)),
// f itself must do.
func openConsole(f *os.File) (*console, error) {
	orig := descriptor(f)
	for _, name := range consoleNames(orig) {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if term.IsTerminal(fd) && (name == controlling || sameDevice(fd, orig)) {
			return &console{fd: fd}, nil
		}
		unix.Close(fd)
	}
	flags, err := unix.FcntlInt(uintptr(orig), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_ACCMODE != unix.O_RDWR {
		err = errors.New("it is not open for reading and writing")
	}
	if err != nil {
		return nil, fmt.Errorf("terminal behind %q can't be used: %w", f.Name(), err)
	}
	fd, err := duplicate(f)
	if err != nil {
		return nil, fmt.Errorf("terminal behind %q can't be used: %w", f.Name(), err)
	}
	return &console{fd: fd}, nil
}

// controlling names the terminal that a process is controlled by.
const controlling = "/dev/tty"

// consoleNames returns the names under which the terminal of fd can be opened.
func consoleNames(fd int) []string {
	var names []string
	// Only the controlling terminal tells its foreground process group.
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
		names = append(names, controlling)
	}
	return append(names, reopenNames(fd)...)
}

// is reports whether f is c's terminal.
func (c *console) is(f *os.File) bool {
	other := descriptor(f)
	if sameDevice(c.fd, other) {
		return true
	}
	// A descriptor of /dev/tty has a device number of its own; there is one
	// controlling terminal, which both are or not.
	_, err1 := unix.IoctlGetInt(c.fd, unix.TIOCGPGRP)
	_, err2 := unix.IoctlGetInt(other, unix.TIOCGPGRP)
	return err1 == nil && err2 == nil
}

// foreground reports whether the terminal is ours to read and to set. A
// terminal that doesn't control us has no job control over us either.
func (c *console) foreground() bool {
	group, err := unix.IoctlGetInt(c.fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

func (c *console) close() {
	if c != nil {
		unix.Close(c.fd)
	}
}

// addsReturns reports whether the terminal writes "\r\n" for "\n".
func addsReturns(fd int) bool {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && t.Oflag&unix.OPOST != 0 && t.Oflag&unix.ONLCR != 0
}

// sameDevice reports whether two descriptors are of one character device.
// /dev/ptmx is another terminal each time it is opened.
func sameDevice(a, b int) bool {
	var s, u unix.Stat_t
	if unix.Fstat(a, &s) != nil || unix.Fstat(b, &u) != nil {
		return false
	}
	return s.Rdev == u.Rdev && uint64(s.Rdev) != ptmxDevice
}

// descriptor returns f's number. Unlike f.Fd it leaves the mode (blocking or
// not) of what others share with us alone.
func descriptor(f *os.File) int {
	n := -1
	conn, err := f.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { n = int(fd) })
	}
	return n
}
