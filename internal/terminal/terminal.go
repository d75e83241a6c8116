//go:build linux || darwin

// Package terminal stands between the user's terminal and a guest. The guest gets a
// pseudo-terminal of its own (pty(7)) and never a descriptor of the user's, into which it
// could push keys (TIOCSTI, TIOCLINUX). A relay carries keys and output between the two,
// so that programs behave as usual.
//
// # States
//
// A Terminal is in one [Mode]:
//
//	NoTerminal        no terminal among stdin, stdout and stderr: nothing to do
//	Background  output is relayed; keys and the terminal's settings are left alone
//	Foreground  the terminal is raw; keys, output and window size are relayed
//	Suspended   the terminal is as it was found; Bawn is about to stop
//	Closed      the terminal is as it was found; the relay is gone
//
// Start enters Foreground when stdin and stdout are both the terminal and Bawn is in its
// foreground process group. Otherwise, in a pipeline or behind "&", it enters Background:
// the keys belong to another program until the guest asks for them (but see TakeKeys).
// The guest asks by being stopped: the session's init keeps it in a background process
// group of its own terminal, and when it stops with SIGTTIN or SIGTTOU
//
//	Foreground() → nil            give the guest its terminal (tcsetpgrp) and continue it
//	Foreground() → ErrBackground  Bawn is itself in the background: stop with the
//	                              same signal, as a program without Bawn would have
//
// When SIGTSTP has stopped the guest: Suspend, stop Bawn's own process group (SIGSTOP),
// and after SIGCONT Resume. That goes back to Foreground if the shell has given Bawn the
// terminal (fg), and to Background if not (bg). SIGCONT may also come without a stop that
// Bawn saw; Resume is right then too.
//
// In Background the user's terminal still has its signal keys on: the
// caller passes SIGINT, SIGQUIT and SIGTSTP on to the guest. In Foreground
// they arrive as keys, and the guest's own terminal makes the signals. The
// caller must leave SIGTTIN and SIGTTOU at their defaults and call Restore
// before it dies of a signal.
package terminal

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// ErrBackground is returned by Foreground when the user's terminal belongs to
// another process group, so that Bawn can't take it.
var ErrBackground = errors.New("bawn is in the background of its terminal")

// errClosed is returned by everything but Close and Restore after Close.
var errClosed = errors.New("terminal is closed")

// A Mode is the state of a Terminal. See the package's description.
type Mode uint8

// The modes. The zero Mode touches nothing.
const (
	NoTerminal Mode = iota
	Background
	Foreground
	Suspended
	Closed
)

var modeNames = [...]string{"no terminal", "background", "foreground", "suspended", "closed"}

// String returns the mode's name in lower case.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// An Opener opens both sides of a new pseudo-terminal (pty(7)).
type Opener func() (master, slave *os.File, err error)

// A Terminal is the host side of a guest's terminal. Its methods may be
// called by several goroutines.
type Terminal struct {
	opener  Opener
	guest   [3]*os.File
	master  int      // -1 without a terminal
	slave   *os.File // nil without a terminal
	in, out *console // the user's terminal; may be one and the same

	mu       sync.Mutex // guards what follows
	mode     Mode
	plain    bool   // the user's terminal knows no control sequences
	tells    bool   // it has told where its cursor is
	copied   bool   // the guest has the settings that programs in the foreground find
	started  bool   // the relay runs
	wanted   bool   // Foreground whenever the shell gives us the terminal
	keys     *pump  // user to guest, in Foreground only
	pending  []byte // keys that were read and not yet handed on
	screen   *pump  // guest to user
	resize   chan os.Signal
	resized  chan struct{}
	unfollow func() // ends resize

	writing sync.Mutex     // held while something is written to the user's terminal; guards what follows
	split   modes.Splitter // of the guest's output
	shows   modes.Modes    // that the guest has set
	label   modes.Label    // the title of the user's terminal

	ttyMu sync.Mutex  // guards the user's termios, so that Restore waits for nobody
	saved *term.State // what they were, while ours are in force
	final bool        // never again raw

	done    chan struct{}
	ending  sync.Once
	failure error // set before done is closed
}

// Among reports whether one of stdin, stdout and stderr is a terminal, so that
// New would return one that is not NoTerminal.
func Among(stdio [3]*os.File) bool {
	for _, f := range stdio {
		if f != nil && term.IsTerminal(descriptor(f)) {
			return true
		}
	}
	return false
}

// Present reports whether somebody could be asked: one of the three is a
// terminal, or the process has a controlling one (tty(4)).
func Present(stdio [3]*os.File) bool {
	if Among(stdio) {
		return true
	}
	tty, err := os.OpenFile(controlling, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = tty.Close() // nothing was written
	return true
}

// New returns the terminal of a guest that Bawn's own stdin, stdout and stderr
// would have been given to. Nothing about the user's terminal changes before
// Start. Where none of the three is a terminal the Terminal is NoTerminal. Where they
// are several terminals the guest sees one, and what it writes comes out on
// that of stdout, or else stderr.
//
// The guest's terminal comes from open, both sides of it; nil opens one of the
// host's, which a guest with a /dev/pts of its own can't name.
func New(stdio [3]*os.File, open Opener) (*Terminal, error) {
	if open == nil {
		open = pty.Open
	}
	t := &Terminal{opener: open, guest: stdio, master: -1, done: make(chan struct{})}
	var is [3]bool
	for i, f := range stdio {
		is[i] = f != nil && term.IsTerminal(descriptor(f))
	}
	if !is[0] && !is[1] && !is[2] {
		return t, nil
	}
	t.wanted = is[0] && is[1]
	if err := t.open(stdio, is); err != nil {
		t.release()
		return nil, err
	}
	for i := range stdio {
		if is[i] {
			t.guest[i] = t.slave
		}
	}
	t.mode = Background
	return t, nil
}

// open opens the user's terminal and the guest's, and makes the second look
// like the first.
func (t *Terminal) open(stdio [3]*os.File, is [3]bool) error {
	var err error
	if t.in, err = openConsole(first(stdio, is, 0, 1, 2)); err != nil {
		return err
	}
	if t.out, err = t.outConsole(first(stdio, is, 1, 2, 0)); err != nil {
		return err
	}
	if err := t.openGuest(); err != nil {
		return fmt.Errorf("no terminal for the guest: %w", err)
	}
	t.copied = t.in.foreground()
	t.copySize()
	return t.copySettings()
}

// copySettings makes the guest's terminal behave as the user's does now.
func (t *Terminal) copySettings() error {
	state, err := term.GetState(t.in.fd)
	if err == nil {
		err = term.Restore(descriptor(t.slave), state)
	}
	if err != nil {
		return fmt.Errorf("terminal settings can't be copied: %w", err)
	}
	return nil
}

// openGuest opens both sides of the guest's terminal. They are duplicated and
// the originals closed because those are registered with Go's poller, which
// would wake up at every key and which makes the guest's side non-blocking.
func (t *Terminal) openGuest() error {
	master, slave, err := t.opener()
	if err != nil {
		return err
	}
	defer master.Close()
	defer slave.Close()
	if t.master, err = duplicate(master); err != nil {
		return err
	}
	fd, err := duplicate(slave)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.SetNonblock(t.master, true), unix.SetNonblock(fd, false)); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	t.slave = os.NewFile(uintptr(fd), slave.Name())
	return nil
}

func duplicate(f *os.File) (int, error) {
	return unix.FcntlInt(uintptr(descriptor(f)), unix.F_DUPFD_CLOEXEC, 0)
}

// outConsole is in where both are the same terminal.
func (t *Terminal) outConsole(f *os.File) (*console, error) {
	if t.in.is(f) {
		return t.in, nil
	}
	return openConsole(f)
}

// first returns the first of three files, in the order given, that is a terminal.
func first(stdio [3]*os.File, is [3]bool, order ...int) *os.File {
	for _, i := range order {
		if is[i] {
			return stdio[i]
		}
	}
	return nil
}

// TakeKeys has Start enter Foreground wherever stdin is a terminal. It is for a
// terminal that is made for Bawn and this guest only and does not control Bawn,
// so that its signal keys would reach no process. It is called before Start.
func (t *Terminal) TakeKeys() { t.wanted = t.slave != nil && t.guest[0] == t.slave }

// Label has the title of the user's terminal show that a guest is in it, as long as the
// terminal is the guest's. It is called before Start.
func (t *Terminal) Label(l modes.Label) { t.label = l }

// Guest returns what the guest gets as stdin, stdout and stderr: the slave for
// each that is a terminal, the file itself for each that is not. They must be
// handed on before Close.
func (t *Terminal) Guest() [3]*os.File { return t.guest }

// Slave returns the guest's terminal, to be made the controlling terminal of its
// session (TIOCSCTTY), or nil if the guest has no terminal.
func (t *Terminal) Slave() *os.File { return t.slave }

// Mode returns the current mode.
func (t *Terminal) Mode() Mode {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mode
}

// Done is closed when the relay has ended by itself because the user's
// terminal is gone. The guest has nobody to talk to then: send it SIGHUP.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// Err returns why the relay ended, after Done is closed; nil before.
func (t *Terminal) Err() error {
	select {
	case <-t.done:
		return t.failure
	default:
		return nil
	}
}

// fail ends the relay's duty: the user's terminal is gone.
func (t *Terminal) fail(err error) {
	t.ending.Do(func() {
		t.failure = fmt.Errorf("user's terminal is gone: %w", err)
		close(t.done)
	})
}

// copySize gives the guest's terminal the size of the user's, whereupon the
// kernel sends SIGWINCH to the guest if it has changed. A terminal that has no
// size (a serial line) is no error.
func (t *Terminal) copySize() {
	if size, err := unix.IoctlGetWinsize(t.out.fd, unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(t.master, unix.TIOCSWINSZ, size)
	}
}
