package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// A View shows a session at the user's terminal.
type View struct {
	Client  *Client
	In, Out *os.File // In is nil, or not a terminal, for one that only looks
	Detach  DetachKeys
	Notify  func(line string) // the host's messages to the human; may be nil
	// Fresh says that the session begins now: there is no screen to restore, and
	// the text at the terminal stays.
	Fresh bool
	// Start ends the view as soon as the guest's command has been started.
	Start bool
	// Label is the title that the terminal has meanwhile.
	Label modes.Label
}

// An Outcome says how a view ended: the human left it (or their terminal did),
// or the session ended.
type Outcome struct {
	Detached bool
	Exit     Exit
	Status   Status // the last that the host told
}

// Run shows the session until it ends or the human leaves it. The terminal is
// as it was found afterwards, however that comes about. The error is ErrHostGone
// where the session was killed.
func (v View) Run(ctx context.Context) (Outcome, error) {
	s := &sight{
		View: v, detacher: detacher{keys: v.Detach}, events: make(chan func() error),
		toGuest: make(chan []byte, maxTyped), sent: make(chan struct{}), reading: make(chan struct{}),
	}
	defer s.close()
	if err := s.open(); err != nil {
		close(s.sent)
		return Outcome{}, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGHUP, unix.SIGTERM, unix.SIGTSTP, unix.SIGCONT, unix.SIGINT)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.hear(ctx)
	go s.read(ctx)
	go s.send()
	for s.outcome == nil {
		var err error
		select {
		case act := <-s.events:
			err = act()
		case sig := <-signals:
			err = s.signal(sig.(syscall.Signal))
		case <-s.holding:
			s.holding = nil
			s.types(s.release())
		case <-ctx.Done():
			s.outcome = &Outcome{Detached: true}
		}
		if err != nil {
			return Outcome{}, err
		}
	}
	s.outcome.Status = s.status
	return *s.outcome, nil
}

// A sight is a View that runs. All but read and hear happens in one goroutine.
type sight struct {
	View
	detacher
	modes   modes.Modes // of the terminal, by the guest's output
	split   modes.Splitter
	raw     *term.State   // as the terminal was found; nil while it is
	wake    [2]*os.File   // closing the second wakes read
	reading chan struct{} // closed when read has ended
	events  chan func() error
	toGuest chan []byte   // what was typed
	sent    chan struct{} // closed when send has ended
	holding <-chan time.Time
	status  Status
	outcome *Outcome
}

// writes reports whether keys are read here.
func (s *sight) writes() bool { return s.In != nil && term.IsTerminal(int(s.In.Fd())) }

func (s *sight) open() error {
	if !s.writes() {
		close(s.reading)
		return nil
	}
	err := s.takeTerminal()
	if err == nil {
		s.wake[0], s.wake[1], err = os.Pipe()
	}
	s.resize()
	return err
}

func (s *sight) takeTerminal() error {
	was, err := term.MakeRaw(int(s.In.Fd()))
	if err != nil {
		return fmt.Errorf("terminal can't be made raw: %w", err)
	}
	s.raw = was
	s.write(s.Label.Begin())
	return nil
}

// write writes to a terminal. A viewer that is gone is noticed when output is
// printed.
func (s *sight) write(b []byte) {
	if len(b) > 0 && term.IsTerminal(int(s.Out.Fd())) {
		_, _ = s.Out.Write(b)
	}
}

// giveTerminal leaves the terminal as it was found.
func (s *sight) giveTerminal() {
	s.write(append(s.modes.Undo(), s.Label.End()...))
	if s.raw != nil {
		_ = term.Restore(int(s.In.Fd()), s.raw)
		s.raw = nil
	}
}

func (s *sight) close() {
	if s.wake[1] != nil {
		s.wake[1].Close()
		<-s.reading
		s.wake[0].Close()
	}
	close(s.toGuest)
	_ = s.Client.conn.SetWriteDeadline(time.Now().Add(time.Second)) // keys typed before the human left are the guest's
	<-s.sent
	s.giveTerminal()
	s.Client.Close()
}

// resize tells the host how large the window is. That the host is gone is heard
// by hear.
func (s *sight) resize() {
	ws, err := unix.IoctlGetWinsize(int(s.Out.Fd()), unix.TIOCGWINSZ)
	if err == nil && ws.Row > 0 && ws.Col > 0 && s.writes() {
		_ = s.Client.Resize(Size{ws.Row, ws.Col})
	}
}

// do has act done by the one goroutine.
func (s *sight) do(ctx context.Context, act func() error) {
	select {
	case s.events <- act:
	case <-ctx.Done():
	}
}

// hear takes the host's messages.
func (s *sight) hear(ctx context.Context) {
	for ctx.Err() == nil {
		e, err := s.Client.Next()
		done := make(chan struct{}) // the event is valid until the next
		s.do(ctx, func() error {
			defer close(done)
			if err != nil {
				return err
			}
			return s.show(e)
		})
		if err != nil {
			return
		}
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

func (s *sight) show(e Event) error {
	switch {
	case e.Exit != nil:
		s.outcome = &Outcome{Exit: *e.Exit}
	case e.Notice != "":
		if s.Notify != nil {
			s.Notify(e.Notice)
		}
	case e.Status != nil:
		s.status = *e.Status
		if s.Start && s.status.Running {
			s.outcome = &Outcome{Detached: true}
		}
	case e.Output != nil:
		return s.print(e)
	}
	return nil
}

// print shows output. Where the terminal is gone, so is the human.
func (s *sight) print(e Event) error {
	out := e.Output
	if !term.IsTerminal(int(s.Out.Fd())) { // lines of a file end as lines of files do
		out = bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
	}
	if e.Anew && !s.Fresh {
		out = append(s.empty(), out...)
	}
	s.Fresh = s.Fresh && !e.Anew
	s.split.Split(e.Output, func([]byte) {}, s.see)
	out = slices.Concat(out, s.Label.After(e.Output, s.split.Pending()))
	if _, err := s.Out.Write(out); err != nil {
		s.outcome = &Outcome{Detached: true}
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EIO) {
			return nil
		}
		return err
	}
	return nil
}

// see follows one sequence of the guest's.
func (s *sight) see(seq []byte) {
	s.modes.See(seq)
	s.Label.See(seq)
}

// empty makes room for a whole screen. The window's text goes into the
// terminal's own scroll-back.
func (s *sight) empty() []byte {
	if !term.IsTerminal(int(s.Out.Fd())) {
		return nil
	}
	b := s.modes.Undo()
	s.modes, s.split = modes.Modes{}, modes.Splitter{}
	if ws, err := unix.IoctlGetWinsize(int(s.Out.Fd()), unix.TIOCGWINSZ); err == nil {
		b = append(b, fmt.Sprintf("\x1b[%d;1H", ws.Row)...)
		b = append(b, bytes.Repeat([]byte{'\n'}, int(ws.Row))...)
	}
	return append(b, "\x1b[H\x1b[2J"...)
}

// keyBuffer is how much is read at once: keys that are read after those that
// detach are lost to the shell, and a human does not type that fast.
const keyBuffer = 4 << 10

// read takes what is typed. It reads only once there is something, so that no key
// is taken after the end.
func (s *sight) read(ctx context.Context) {
	if !s.writes() {
		return
	}
	defer close(s.reading)
	buf := make([]byte, keyBuffer)
	fd, wake := int(s.In.Fd()), int(s.wake[0].Fd())
	for {
		ready, err := waitKeys(fd, wake)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || !ready {
			return
		}
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if n <= 0 {
			s.do(ctx, func() error { s.outcome = &Outcome{Detached: true}; return nil })
			return
		}
		typed := bytes.Clone(buf[:n])
		s.do(ctx, func() error { return s.typed(typed) })
	}
}

// typed takes keys: for the guest, or to leave.
func (s *sight) typed(b []byte) error {
	guest, detach := s.feed(b)
	if detach {
		s.outcome = &Outcome{Detached: true}
	}
	s.holding = nil
	if s.at > 0 {
		s.holding = time.After(holdKeys)
	}
	s.types(guest)
	return nil
}

// maxTyped is how many reads of keys wait for a guest that does not read.
const maxTyped = 256

// types queues keys, so that one can leave a guest that does not read them.
func (s *sight) types(b []byte) {
	if len(b) == 0 {
		return
	}
	select {
	case s.toGuest <- b:
	default:
		if s.Notify != nil {
			s.Notify("the guest does not read what is typed; some of it was lost")
		}
	}
}

// send carries keys to the host; hear says whether the host is there.
func (s *sight) send() {
	defer close(s.sent)
	for b := range s.toGuest {
		_ = s.Client.Input(b)
	}
}

// signal obeys a signal to the viewer itself.
func (s *sight) signal(sig syscall.Signal) error {
	switch sig {
	case unix.SIGWINCH:
		s.resize()
	case unix.SIGHUP, unix.SIGTERM, unix.SIGINT:
		s.outcome = &Outcome{Detached: true}
	case unix.SIGTSTP: // sent by somebody: as a key it is the guest's
		s.giveTerminal()
		s.modes, s.split = modes.Modes{}, modes.Splitter{}
		return syscall.Kill(0, unix.SIGSTOP)
	case unix.SIGCONT:
		return s.back()
	}
	return nil
}

// back takes the terminal anew after a stop: a shell has had it meanwhile.
func (s *sight) back() error {
	if s.writes() && s.raw == nil {
		if err := s.takeTerminal(); err != nil {
			return err
		}
	}
	s.resize()
	_ = s.Client.Refresh()
	return nil
}
