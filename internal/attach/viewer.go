package attach

import (
	"bufio"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/peercred"
)

// A viewer may have so much before it that it has not read. Then it loses that,
// and gets the screen anew once it reads again.
const maxBacklog = 1 << 20

// stalled is how long a viewer may read nothing at all.
const stalled = 30 * time.Second

// A viewer is one connection, as the host sees it.
type viewer struct {
	conn     *net.UnixConn
	readOnly bool
	size     Size // guarded by the server's lock
	asked    bool // gets the questions to the terminal; guarded by the server's lock

	mu       sync.Mutex
	changed  sync.Cond
	backlog  []byte // frames
	behind   bool   // has lost output
	finished bool   // no more frames come
}

func newViewer(conn *net.UnixConn) *viewer {
	v := &viewer{conn: conn}
	v.changed.L = &v.mu
	return v
}

// send queues a frame and does not wait. Of output, screens and states, which a
// viewer may ask for as often as it likes, it loses those that are too many.
func (v *viewer) send(k kind, content []byte) {
	if len(content) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	comesAgain := k == outputFrame || k == screenFrame || k == stateFrame
	if comesAgain && (v.behind || len(v.backlog)+len(content) > maxBacklog) {
		v.behind = true
		return
	}
	v.queue(k, content)
}

// queue needs v.mu.
func (v *viewer) queue(k kind, content []byte) {
	v.backlog = appendFrame(v.backlog, k, content)
	v.changed.Signal()
}

func (v *viewer) sendJSON(k kind, value any) {
	content, _ := json.Marshal(value) // numbers and strings
	v.send(k, content)
}

// finish ends the viewer when it has read what is queued.
func (v *viewer) finish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.finished = true
	v.changed.Signal()
}

// take waits for frames. It returns none at the end, and whether the viewer has
// lost output before them.
func (v *viewer) take(spare []byte) (frames []byte, behind bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.backlog) == 0 && !v.finished && !v.behind {
		v.changed.Wait()
	}
	frames, v.backlog = v.backlog, spare[:0]
	behind, v.behind = v.behind && len(frames) == 0, v.behind && len(frames) > 0
	return frames, behind
}

// catchUp queues the screen if the viewer has lost output, whatever is queued
// already: the session ends.
func (v *viewer) catchUp(screen func() []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.behind {
		v.queue(screenFrame, screen())
	}
	v.behind = false
}

// serve sees one viewer through, which has to say the key first where there is
// one.
func (s *Server) serve(conn *net.UnixConn, key string) {
	v := newViewer(conn)
	r := bufio.NewReader(conn)
	defer conn.Close()
	err := v.greet(r, key)
	if err != nil && key != "" && !errors.Is(err, io.EOF) {
		s.refuse(conn, peercred.Refuse(conn, err.Error()))
	}
	if err != nil {
		return
	}
	if !s.join(v) {
		refuse(conn, "the session has as many viewers as it can")
		return
	}
	s.registered()
	var writing sync.WaitGroup
	writing.Go(func() { s.write(v) })
	err = s.obey(v, r)
	s.leave(v)
	s.registered()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		v.send(refuseFrame, []byte(err.Error()))
	}
	v.finish()
	writing.Wait()
}

// greet waits for what a viewer says first.
func (v *viewer) greet(r *bufio.Reader, key string) error {
	_ = v.conn.SetReadDeadline(time.Now().Add(patience)) // without one, it waits
	var buf []byte
	k, content, err := readFrame(r, &buf)
	if err != nil {
		return err
	}
	var h hello
	if k != helloFrame || json.Unmarshal(content, &h) != nil {
		return errors.New("a viewer did not say hello")
	}
	if subtle.ConstantTimeCompare([]byte(h.Key), []byte(key)) != 1 {
		return errors.New("it has not the key of the session, so it may be a host that connects for a guest")
	}
	v.readOnly = h.ReadOnly
	return v.conn.SetReadDeadline(time.Time{})
}

// write carries frames to the viewer until there are no more, or it has read
// none for long.
func (s *Server) write(v *viewer) {
	defer v.conn.Close()
	var spare []byte
	for {
		frames, behind := v.take(spare)
		if behind {
			s.catchUp(v)
			continue
		}
		if len(frames) == 0 {
			return
		}
		if err := v.put(frames); err != nil {
			return
		}
		spare = frames
	}
}

// put writes frames. The deadline moves as long as something is read.
func (v *viewer) put(frames []byte) error {
	for len(frames) > 0 {
		if err := v.conn.SetWriteDeadline(time.Now().Add(stalled)); err != nil {
			return err
		}
		n, err := v.conn.Write(frames[:min(len(frames), 64<<10)])
		if frames = frames[n:]; err != nil {
			return err
		}
	}
	return nil
}

// catchUp shows status and screen to a viewer that has lost some.
func (s *Server) catchUp(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.asked = v.asked && s.screen.Pending() == 0
	v.sendJSON(stateFrame, s.status)
	v.send(screenFrame, s.screen.again())
}

// obey does what a viewer says, until it goes or says what none may.
func (s *Server) obey(v *viewer, r *bufio.Reader) error {
	var buf []byte
	for {
		k, content, err := readFrame(r, &buf)
		if err != nil {
			return nil // it has gone
		}
		switch {
		case k == screenFrame:
			s.catchUp(v)
		case k == resizeFrame:
			err = s.resized(v, content)
		case k != inputFrame && k != signalFrame:
			return fmt.Errorf("frame %q is none that a viewer sends", string(k))
		case v.readOnly:
			return errors.New("this viewer may only look")
		case k == inputFrame:
			s.types(v)
			err = s.keys(content)
		case k == signalFrame:
			err = deliver(string(content))
		}
		if err != nil {
			return err
		}
	}
}

// types makes the viewer that types the one whose terminal is asked.
func (s *Server) types(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.primary = v
}

// resized takes a viewer's size. A program that draws its window does so anew
// for a viewer that has just come.
func (s *Server) resized(v *viewer, content []byte) error {
	var size Size
	if err := json.Unmarshal(content, &size); err != nil {
		return errors.New("a size is no size")
	}
	if v.readOnly {
		return nil
	}
	s.mu.Lock()
	first := v.size == Size{}
	v.size = size
	changed := s.resize()
	if changed || first {
		s.changed()
	}
	s.mu.Unlock()
	if first && !changed {
		s.redraw()
	}
	return nil
}

// signals are those that may be sent to a session. Bawn passes most of them on
// to the guest's command.
var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1,
	"USR2": syscall.SIGUSR2, "TSTP": syscall.SIGTSTP, "CONT": syscall.SIGCONT, "KILL": syscall.SIGKILL,
}

// deliver sends a signal to this very process, which passes it on. KILL is the
// end without grace.
func deliver(name string) error {
	sig, ok := signals[name]
	if !ok {
		return fmt.Errorf("signal %q can't be sent to a session", name)
	}
	send := func(sig syscall.Signal) error { return syscall.Kill(os.Getpid(), sig) }
	if sig == syscall.SIGKILL {
		return twice(send)
	}
	return send(sig)
}

// twice sends the signal of which the second ends a session without grace.
func twice(send func(syscall.Signal) error) error {
	if err := send(syscall.SIGTERM); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond) // the kernel keeps one of a kind
	return send(syscall.SIGTERM)
}
