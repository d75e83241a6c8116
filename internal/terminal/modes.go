//go:build linux || darwin

package terminal

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	quiet     = 10 * time.Millisecond  // no output for so long: all has been relayed
	flushWait = 200 * time.Millisecond // at most, before Bawn stops itself
)

// Start begins to relay and returns the mode it is in. Call it when the guest
// has been started.
func (t *Terminal) Start() (Mode, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mode == Closed:
		return Closed, errClosed
	case t.mode == NoTerminal || t.started:
		return t.mode, nil
	}
	screen, err := newPump()
	if err != nil {
		return t.mode, err
	}
	t.started = true
	t.screen = screen
	t.followSize()
	mode, err := t.settle()
	// Not before: what is prepared for a terminal that is not raw has no carriage
	// returns, and must not come out on one that is raw by then.
	go t.relayScreen(screen)
	return mode, err
}

// followSize copies the window's size whenever it changes.
func (t *Terminal) followSize() {
	t.resize = make(chan os.Signal, 1)
	t.resized = make(chan struct{})
	t.unfollow = follow(t.resize, unix.SIGWINCH)
	t.copySize() // it may have changed since New
	go func() {
		defer close(t.resized)
		for range t.resize {
			t.copySize()
		}
	}()
}

// settle enters Foreground where that is wanted and possible, or Background.
func (t *Terminal) settle() (Mode, error) {
	t.mode = Background
	if !t.wanted || !t.in.foreground() {
		return t.mode, nil
	}
	err := t.enterForeground()
	if err == nil {
		t.relabel()
	}
	return t.mode, err
}

// enterForeground makes the user's terminal raw and starts to relay keys.
func (t *Terminal) enterForeground() error {
	// In the background the settings are those of the shell's line editor; a
	// job that is fetched to the front finds the ordinary ones.
	if !t.copied {
		if err := t.copySettings(); err != nil {
			return err
		}
		t.copied = true
	}
	if err := t.makeRaw(); err != nil {
		return err
	}
	if t.keys == nil {
		keys, err := newPump()
		if err != nil {
			return errors.Join(err, t.restore(false))
		}
		t.keys = keys
		go t.relayKeys(keys)
	}
	t.mode = Foreground
	return nil
}

// relabel sets the title of the user's terminal, unless it is set.
func (t *Terminal) relabel() {
	if t.in == t.out && !t.plain && t.writing.TryLock() {
		defer t.writing.Unlock()
		_ = t.out.put(t.label.Begin()) // a terminal that is gone is told by what is relayed to it
	}
}

// unlabel puts the title back where the terminal is still ours. It waits for nobody: a
// terminal that takes nothing keeps the title.
func (t *Terminal) unlabel() {
	if !t.writing.TryLock() {
		return
	}
	defer t.writing.Unlock()
	if end := t.label.End(); end != nil && t.in.foreground() {
		_, _ = unix.Write(t.out.fd, end)
	}
}

// makeRaw sets the user's terminal and remembers how it was; how it was before
// the first time, if we have not been able to restore that since.
func (t *Terminal) makeRaw() error {
	t.ttyMu.Lock()
	defer t.ttyMu.Unlock()
	if t.final {
		return errClosed
	}
	now, err := term.MakeRaw(t.in.fd)
	if err != nil {
		return fmt.Errorf("terminal can't be made raw: %w", err)
	}
	if t.saved == nil {
		t.saved = now
	}
	return nil
}

// restore gives the user's terminal its settings back, if we changed them and
// it is still ours. A shell that has taken it meanwhile has set its own, and
// would stop us (SIGTTOU) for touching them.
func (t *Terminal) restore(final bool) error {
	t.ttyMu.Lock()
	defer t.ttyMu.Unlock()
	t.final = t.final || final
	if t.saved == nil || !t.in.foreground() {
		return nil
	}
	saved := t.saved
	t.saved = nil
	if err := term.Restore(t.in.fd, saved); err != nil && !errors.Is(err, unix.EIO) {
		return fmt.Errorf("terminal settings can't be restored: %w", err)
	}
	return nil // EIO: the terminal is gone, and its settings with it
}

// Foreground takes the user's terminal for the guest. It returns
// ErrBackground where that belongs to another process group.
func (t *Terminal) Foreground() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mode == NoTerminal || t.mode == Foreground:
		return nil
	case t.mode == Closed || !t.started:
		return errClosed
	case !t.in.foreground():
		return ErrBackground
	}
	t.wanted = true
	t.copySize()
	err := t.enterForeground()
	if err == nil {
		t.relabel()
	}
	return err
}

// Suspend relays what the guest has written, stops taking keys and gives the
// terminal its settings back, so that Bawn may stop itself. Keys typed from now on
// go to the next reader of the terminal.
func (t *Terminal) Suspend() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started || t.mode == Closed {
		return nil
	}
	t.flush()
	t.stopKeys()
	t.mode = Suspended
	t.unlabel()
	return t.restore(false)
}

// flush waits until the guest's output has come out, but not for long.
func (t *Terminal) flush() {
	for end := time.Now().Add(flushWait); time.Now().Before(end); {
		if !readable(t.master, quiet) && !t.screen.busy.Load() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Resume is called after SIGCONT: it enters Foreground if the shell has given
// Bawn the terminal and the guest had it before, or else Background, and
// returns which.
func (t *Terminal) Resume() (Mode, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mode == Closed:
		return Closed, errClosed
	case !t.started:
		return t.mode, nil
	}
	t.copySize()
	if t.wanted && t.in.foreground() {
		return t.settle()
	}
	t.stopKeys()
	t.mode = Background
	return t.mode, nil
}

// stopKeys ends the key relay and waits until it has: no key is read after.
func (t *Terminal) stopKeys() {
	if t.keys == nil {
		return
	}
	t.keys.stop()
	t.keys = nil
}

// Restore gives the user's terminal its settings back at once and for good,
// for a caller that is about to die of a signal. It waits for nobody and may
// be called at any time, also without Start and after Close.
func (t *Terminal) Restore() error {
	t.unlabel()
	return t.restore(true)
}
