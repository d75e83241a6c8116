package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const tiocLinux = 0x541c // TIOCLINUX, ioctl_console(2)

// terminalChecks type into a terminal's input queue.
func terminalChecks() []Check {
	want := []errno{unix.EPERM, unix.EACCES, unix.EIO, killed}
	noTTY := append([]errno{unix.ENXIO, unix.ENOENT}, want...)
	return named("proc", []Check{
		{Name: "E124", Why: "type into the user's terminal", Want: noTTY, Terminal: true, NoControl: "needs a user's terminal; A460 brings one of its own",
			Do: func(Fixtures) error { return typeInto("/dev/tty", unix.TIOCSTI) }},
		{Name: "A460", Why: "type into a terminal of our own", Want: append([]errno{unix.ENOENT}, want...), Unavailable: []errno{unix.EIO},
			Do: func(Fixtures) error { return ownTerminal(unix.TIOCSTI) }},
		{Name: "A461", Why: "the same with upper bits set in the request", Want: append([]errno{unix.ENOENT}, want...), Unavailable: []errno{unix.EIO},
			Do: func(Fixtures) error { return ownTerminal(unix.TIOCSTI | 1<<32) }},
		{Name: "A462", Why: "paste into the console", Want: append([]errno{unix.ENOENT}, want...), NoControl: "only a virtual console knows it",
			Do: func(Fixtures) error { return ownTerminal(tiocLinux) }},
	})
}

func typeInto(p string, request uintptr) error {
	fd, err := unix.Open(p, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	key := byte('x')
	if request == tiocLinux {
		key = 3 // TIOCL_PASTESEL
	}
	return ioctl(fd, request, &key)
}

// ownTerminal makes a terminal, becomes its session's leader, which we are
// already, and types.
func ownTerminal(request uintptr) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	lock := int32(0)
	if err := ioctl(master, unix.TIOCSPTLCK, &lock); err != nil {
		return err
	}
	slave, e := raw(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, uintptr(unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC))
	if e != 0 {
		return e
	}
	if err := rawErr(unix.SYS_IOCTL, slave, unix.TIOCSCTTY, 0); err != nil && syscall.Getpgrp() == os.Getpid() {
		return broken(err)
	}
	return typeInto(fdPath(int(slave)), request)
}
