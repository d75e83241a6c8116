//go:build linux || darwin

package shim

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
)

// forwarded are the signals that a command is told of. The window's size is
// another thing to say.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// catch takes the signals that are not ignored: nohup's stays one. A second
// call does nothing.
func (s *front) catch() {
	if s.signals != nil {
		return
	}
	s.signals = make(chan os.Signal, 16)
	var list []os.Signal
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	signal.Notify(s.signals, list...)
}

// signal passes one on. While nothing runs, it is for the shim itself.
func (s *front) signal(sig syscall.Signal, running bool) {
	switch {
	case sig == syscall.SIGWINCH:
		if rows, cols := size(); rows != 0 || cols != 0 {
			s.update(intent.Update{Rows: rows, Cols: cols})
		}
	case running:
		s.update(intent.Update{Signal: int(sig)})
	case sig == syscall.SIGTSTP:
		s.tty.restore()
		stopSelf()
		s.tty.plain()
	case sig != syscall.SIGCONT:
		s.tty.restore()
		die(sig)
	}
}

// stop stops the shim as its command has stopped, and continues the command
// when the shim is continued.
func (s *front) stop() {
	s.tty.restore()
	stopSelf()
	if rows, cols := size(); rows != 0 || cols != 0 {
		s.update(intent.Update{Rows: rows, Cols: cols})
	}
	s.tty.raw()
	s.update(intent.Update{Signal: int(syscall.SIGCONT)})
}

// finish ends as the command has ended: by the same signal, or with its code.
func (s *front) finish(e end) int {
	if e.signal != 0 {
		die(e.signal)
	}
	return e.code
}

// A tty is the terminal at standard input while a command uses it.
type tty struct{ saved *unix.Termios }

// here reports whether standard input is a terminal in whose foreground the
// shim is.
func (t *tty) here() bool {
	owner, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && owner == unix.Getpgrp()
}

// plain leaves lines, echoes and output to the command's own terminal, which may
// have them before it is known here that the command runs. Keys still make
// signals, so that an interrupt reaches a shim that waits for an answer.
func (t *tty) plain() {
	t.set(func(s *unix.Termios) {
		signals := s.Lflag & unix.ISIG
		raw(s)
		s.Lflag |= signals
	})
}

// raw also lets every key through: the command's own terminal makes signals of
// them.
func (t *tty) raw() { t.set(raw) }

// raw is what cfmakeraw(3) sets, but for the size of characters.
func raw(s *unix.Termios) {
	s.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	s.Oflag &^= unix.OPOST
	s.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	s.Cc[unix.VMIN], s.Cc[unix.VTIME] = 1, 0
}

func (t *tty) set(change func(*unix.Termios)) {
	if !t.here() {
		return
	}
	now, err := unix.IoctlGetTermios(0, getSettings)
	if err != nil {
		return
	}
	if t.saved == nil {
		saved := *now
		t.saved = &saved
	}
	change(now)
	_ = unix.IoctlSetTermios(0, setSettings, now) // a terminal that is gone needs no settings
}

func (t *tty) restore() {
	if t.saved != nil {
		_ = unix.IoctlSetTermios(0, setSettings, t.saved) // as above
		t.saved = nil
	}
}

// size is the window's, of the first descriptor that has one.
func size() (rows, cols uint16) {
	for fd := range 3 {
		if w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			return w.Row, w.Col
		}
	}
	return 0, 0
}
