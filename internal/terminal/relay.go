//go:build linux || darwin

package terminal

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const (
	screenBuffer = 64 << 10
	keyBuffer    = 4 << 10 // what a terminal's input queue holds

	// After the guest has gone the kernel holds at most 64 KiB + 4 KiB of its
	// output (tty_buffer.c, n_tty.c). More comes only from a process that
	// should not be there any more.
	drainBytes = 512 << 10
	drainWait  = 2 * time.Second        // without any progress
	drainQuiet = 250 * time.Millisecond // without output, while someone holds the slave
)

// relayScreen moves the guest's output to the user until the guest's side is
// closed, the user's terminal is gone, or it is stopped.
func (t *Terminal) relayScreen(p *pump) {
	defer close(p.ended)
	buf := make([]byte, screenBuffer)
	var lines newlines
	for {
		n, err := p.read(t.master, buf)
		if err != nil {
			return // EIO or EOF: nobody holds the slave any more
		}
		t.writing.Lock()
		t.split.Split(buf[:n], func([]byte) {}, t.see)
		title := t.label.After(buf[:n], t.split.Pending())
		_, err = p.write(t.out.fd, append(t.cook(&lines, buf[:n]), title...))
		t.writing.Unlock()
		p.busy.Store(false)
		if err != nil && !errors.Is(err, errStopped) {
			t.fail(err)
		}
		if err != nil {
			return
		}
	}
}

// see follows one sequence of the guest's.
func (t *Terminal) see(seq []byte) {
	t.shows.See(seq)
	t.label.See(seq)
}

// cook prepares output for a user's terminal that is not raw and so will put a
// carriage return before each newline, as the guest's already has.
func (t *Terminal) cook(lines *newlines, b []byte) []byte {
	if !addsReturns(t.out.fd) {
		return lines.keep(b)
	}
	out := lines.strip(b)
	if lines.held && !readable(t.master, quiet) {
		out = append(out, lines.release()...)
	}
	return out
}

// newlines undoes what a terminal's ONLCR does to newlines (termios(3)), across
// chunks.
type newlines struct {
	held bool // a carriage return, until we know what follows
}

// strip takes one carriage return from before each newline.
func (l *newlines) strip(b []byte) []byte {
	out := make([]byte, 0, len(b)+1)
	for _, c := range b {
		if l.held && c != '\n' {
			out = append(out, '\r')
		}
		if l.held = c == '\r'; !l.held {
			out = append(out, c)
		}
	}
	return out
}

// keep returns b as it is, after what was held.
func (l *newlines) keep(b []byte) []byte {
	if !l.held {
		return b
	}
	return append(l.release(), b...)
}

func (l *newlines) release() []byte {
	l.held = false
	return []byte{'\r'}
}

// relayKeys moves the user's keys to the guest until it is stopped or the
// user's terminal is gone. It reads no key before there is room for it, so
// that what the guest doesn't take is still there for the next program.
func (t *Terminal) relayKeys(p *pump) {
	defer close(p.ended)
	buf := make([]byte, keyBuffer)
	keys := t.pending // keys that were on their way at the last Suspend
	for {
		n, err := p.write(t.master, keys)
		t.pending = keys[n:]
		if err != nil || p.wait(t.master, unix.POLLOUT) != nil {
			return
		}
		n, err = p.read(t.in.fd, buf)
		if err != nil && !errors.Is(err, errStopped) {
			t.fail(err)
		}
		if err != nil {
			return
		}
		keys = buf[:n]
	}
}

// Close ends the relay: it takes no more keys, closes the guest's terminal,
// relays what the guest has written (bounded: two seconds without progress, 512
// KiB), and restores the user's terminal settings. Call it when the guest is
// gone, and in a defer; a second Close does nothing. It returns what Err would.
func (t *Terminal) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mode == Closed {
		return t.Err()
	}
	t.mode = Closed
	t.stopKeys()
	if t.resize != nil {
		t.unfollow()
		close(t.resize)
		<-t.resized
	}
	if t.slave != nil {
		t.slave.Close()
	}
	if t.screen != nil {
		t.drain()
		t.screen.stop()
	}
	t.unlabel()
	err := t.restore(true)
	t.release()
	return errors.Join(t.Err(), err)
}

// drain waits for the screen relay to end by itself, as long as that makes
// progress.
func (t *Terminal) drain() {
	tick := time.NewTicker(drainQuiet)
	defer tick.Stop()
	begin := t.screen.moved.Load()
	last, since := begin, time.Now()
	for {
		select {
		case <-t.screen.ended:
			return
		case <-tick.C:
		}
		if now := t.screen.moved.Load(); now != last {
			last, since = now, time.Now()
		}
		stuck := time.Since(since) >= drainWait
		// In this order: the relay is busy before it takes what can be read.
		silent := time.Since(since) >= drainQuiet && !readable(t.master, 0) && !t.screen.busy.Load()
		if stuck || silent || last-begin > drainBytes {
			return
		}
	}
}

// release closes every file that is ours.
func (t *Terminal) release() {
	t.ttyMu.Lock()
	defer t.ttyMu.Unlock()
	t.saved = nil // Restore has nothing to restore any more
	if t.master >= 0 {
		unix.Close(t.master)
	}
	if t.slave != nil {
		t.slave.Close()
	}
	t.in.close()
	if t.out != t.in {
		t.out.close()
	}
}
