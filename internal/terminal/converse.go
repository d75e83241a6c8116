//go:build linux || darwin

package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// A Conversation is one with the human at the terminal.
type Conversation interface {
	io.ReadWriter
	// Pause leaves the human time to read, from when the terminal has shown all that
	// was written, and throws away what is typed meanwhile: the human had not read the
	// text yet. It fails if the conversation ends before.
	Pause(d time.Duration) error
	// Size is how many rows and columns there are to write on; 0 and 0 where
	// the terminal does not tell.
	Size() (rows, cols int)
	// Note leaves a line on the guest's screen when the conversation is over,
	// and before whatever the guest writes then. It has to be safe to be shown.
	Note(line string)
}

// Converse lets Bawn itself speak with the human: f reads keys, raw, and
// writes, while the guest's output waits and no key reaches the guest. Keys
// typed before the conversation began are thrown away, since they were meant
// for the guest. f's reads end with ctx's error when ctx ends.
//
// f begins at the upper left of an empty screen of Bawn's own. No terminal state of the
// guest hides or moves its output there, and pasted text arrives in brackets (mode
// 2004). Where the terminal could not do that (Plain), it begins at a new line.
// Afterwards the guest's screen and modes are as before, and a full-screen guest is
// told to draw itself anew.
//
// It returns ErrBackground where there is no terminal or it belongs to somebody
// else. The other methods wait until the conversation is over.
func (t *Terminal) Converse(ctx context.Context, f func(Conversation) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.mode {
	case NoTerminal:
		return t.converseAside(ctx, f)
	case Foreground, Background:
	default:
		return ErrBackground
	}
	if !t.started || !t.in.foreground() {
		return ErrBackground
	}
	before := t.mode
	t.flush()
	t.stopKeys()
	t.writing.Lock()
	defer t.writing.Unlock()
	if err := t.makeRaw(); err != nil {
		return err
	}
	guest := &modes.Modes{}
	if t.in == t.out {
		guest = &t.shows
		t.split = modes.Splitter{} // what the guest had begun is over
	}
	err := converse(ctx, &stage{console: t.in, plain: t.plain, tells: &t.tells, guest: guest}, f)
	if before == Foreground {
		t.redraw()
		return firstError(err, t.enterForeground())
	}
	return firstError(err, t.restore(false))
}

// converseAside speaks over the controlling terminal (tty(4)) of a session whose
// input and output are not terminals.
func (t *Terminal) converseAside(ctx context.Context, f func(Conversation) error) error {
	tty, err := os.OpenFile(controlling, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return ErrBackground
	}
	defer tty.Close()
	c, err := openConsole(tty)
	if err != nil || !c.foreground() {
		c.close()
		return ErrBackground
	}
	aside := &Terminal{in: c, out: c, master: -1}
	defer c.close()
	if err := aside.makeRaw(); err != nil {
		return err
	}
	return firstError(converse(ctx, &stage{console: c, plain: t.plain, tells: &t.tells, guest: &modes.Modes{}}, f), aside.restore(true))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func converse(ctx context.Context, s *stage, f func(Conversation) error) error {
	p, err := newPump()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { p.wakeWrite.Close() })
	defer func() {
		if stop() {
			p.wakeWrite.Close()
		}
		p.wakeRead.Close()
	}()
	t := &talk{ctx: ctx, stage: s, console: s.console, pump: p}
	if err := firstError(s.enter(), t.forget()); err != nil {
		return firstError(err, s.leave(t))
	}
	err = f(t)
	return firstError(err, s.leave(t))
}

// talk is the human's side of a conversation.
type talk struct {
	ctx     context.Context
	stage   *stage
	console *console
	pump    *pump
}

// Read waits for keys until the conversation's context ends.
func (t *talk) Read(b []byte) (int, error) {
	n, err := t.pump.read(t.console.fd, b)
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	return n, err
}

// Size implements Conversation.
func (t *talk) Size() (rows, cols int) {
	ws, err := unix.IoctlGetWinsize(t.console.fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(ws.Row), int(ws.Col)
}

// Pause implements Conversation.
func (t *talk) Pause(d time.Duration) error {
	if err := t.awaitShown(); err != nil {
		return err
	}
	return t.pause(d)
}

func (t *talk) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return t.forget()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// forget throws away the keys that nobody has read yet.
func (t *talk) forget() error {
	keys := make([]byte, keyBuffer)
	for readable(t.console.fd, 0) {
		if n, err := readAll(t.console.fd, keys); n <= 0 && err != nil {
			return fmt.Errorf("user's terminal can't be read: %w", err)
		}
	}
	return nil
}

func (t *talk) Write(b []byte) (int, error) {
	t.stage.spoken = true
	return t.pump.write(t.console.fd, b)
}

// Note implements Conversation.
func (t *talk) Note(line string) {
	t.stage.note = append(t.stage.note, "\r\n"+line+"\r\n"...)
}

// redrawPause is how long the window of a guest that draws it stays smaller:
// some look only at whether the size is another one.
const redrawPause = 60 * time.Millisecond

// redraw makes the guest's window one row smaller and large again: at each
// change the kernel sends SIGWINCH, whereupon full-screen programs draw.
func (t *Terminal) redraw() {
	size, err := unix.IoctlGetWinsize(t.out.fd, unix.TIOCGWINSZ)
	if err != nil || size.Row < 2 {
		return
	}
	size.Row--
	_ = unix.IoctlSetWinsize(t.master, unix.TIOCSWINSZ, size) // a window without a size is no error
	if t.shows.Draws() {
		time.Sleep(redrawPause)
	}
	t.copySize()
}
