package attach

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/peercred"
)

// maxViewers is how many may look at one session.
const maxViewers = 64

// patience is how long a viewer may take to say hello, and how long the end of a
// session waits for viewers to hear of it.
const patience = 3 * time.Second

// A Server is the host's side: it has the master side of the terminal that the
// session takes for its user's (pty(7)), and shows it to viewers.
type Server struct {
	master  *os.File
	drained chan struct{} // closed when there is nothing more to read
	admit   func(net.Conn) error
	key     string // what viewers at the socket say first

	// Refused is told of those who may not view the session, and why. It is set
	// before Listen; nil tells nobody.
	Refused func(why error)

	mu       sync.Mutex
	screen   screen
	log      *outputLog
	place    *Place
	listener *net.UnixListener
	viewers  []*viewer
	primary  *viewer // answers what the guest asks its terminal
	status   Status
	exit     *Exit // once it is known
	watched  chan bool
	attended bool // what watched has told last

	typing  sync.Mutex // held while keys are written
	serving sync.WaitGroup
}

// NewServer serves the terminal behind master, which is the server's from now
// on. Viewers come with Serve and Listen.
func NewServer(master *os.File) *Server {
	s := &Server{master: master, drained: make(chan struct{}), watched: make(chan bool, 1), admit: noGuest}
	s.status.Size = sizeOf(master)
	go s.pump()
	return s
}

// noGuest refuses other users, and guests: of this session or of another.
func noGuest(conn net.Conn) error {
	return peercred.Admit(conn, func(pid int) bool { return pid == os.Getpid() })
}

// pump takes what the guest writes until everybody has closed the other side.
// It waits for no viewer.
func (s *Server) pump() {
	defer close(s.drained)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.master.Read(buf)
		if n > 0 {
			s.show(buf[:n])
		}
		if err != nil { // EIO: the other side is closed
			return
		}
	}
}

// show hands output to everybody.
func (s *Server) show(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.screen.Pending() == 0
	quiet := s.screen.feed(b)
	s.log.write(quiet)
	for _, v := range s.viewers {
		if whole { // nobody begins in the middle of a sequence
			v.asked = v == s.primary
		}
		if v.asked {
			v.send(outputFrame, b)
		} else {
			v.send(outputFrame, quiet)
		}
	}
}

// Serve has who holds the other end of a Pair as a viewer from now on. The end
// is used up. It checks nothing: what is handed over is trusted.
func (s *Server) Serve(end *os.File) error {
	conn, err := streamConn(end)
	if err == nil {
		s.serving.Go(func() { s.serve(conn, "") })
	}
	return err
}

// Listen opens the session to viewers: at the socket in place, where also the
// output is kept. The place is ended by End.
func (s *Server) Listen(p *Place) error {
	s.key = rand.Text()
	if err := writeKey(p.path(keyName), s.key); err != nil {
		return err
	}
	l, err := listen(p.dir)
	if err != nil {
		return err
	}
	log, err := openLog(p.dir)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place, s.listener, s.log = p, l, log
	s.log.write(s.screen.tail)
	s.status.Session = p.entry.ID
	s.changed()
	s.serving.Go(func() { s.accept(l) })
	return nil
}

func (s *Server) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, for now
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err := s.admit(conn); err != nil {
			s.refuse(conn, err)
			continue
		}
		s.serving.Go(func() { s.serve(conn, s.key) })
	}
}

// refuse refuses somebody who may not view the session.
func (s *Server) refuse(conn *net.UnixConn, why error) {
	if s.Refused != nil {
		s.Refused(why)
	}
	refuse(conn, why.Error())
}

// refuse tells a viewer why it can't view the session, and closes the connection.
func refuse(conn *net.UnixConn, why string) {
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = conn.Write(appendFrame(nil, refuseFrame, []byte(why))) // a viewer that does not read is closed too
	conn.Close()
}

// Running tells everybody that the guest's command has been started.
func (s *Server) Running() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Running = true
	s.changed()
}

// Viewers returns how many look at the session, and how many of them may type.
func (s *Server) Viewers() (all, typing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.viewers {
		if !v.readOnly {
			typing++
		}
	}
	return len(s.viewers), typing
}

// Watched tells whenever somebody comes who could answer at the terminal, and
// when the last such has gone. At the beginning there is nobody.
func (s *Server) Watched() <-chan bool { return s.watched }

// attend keeps Watched up to date: who has not taken the last word yet gets the
// newest only.
func (s *Server) attend() {
	now := slices.ContainsFunc(s.viewers, func(v *viewer) bool { return !v.readOnly && v.size != Size{} })
	if now == s.attended {
		return
	}
	s.attended = now
	select {
	case <-s.watched:
	default:
	}
	s.watched <- now
}

// changed tells everybody the status. It is called with the lock held.
func (s *Server) changed() {
	s.attend()
	s.status.Viewers = len(s.viewers)
	for _, v := range s.viewers {
		v.sendJSON(stateFrame, s.status)
	}
}

// registered writes the number of viewers where ps finds it.
func (s *Server) registered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place != nil && s.place.lock >= 0 {
		_ = s.place.Update(func(e *Entry) { e.Viewers = len(s.viewers) }) // a number that is late harms nobody
	}
}

// join adds a viewer, with the screen as its first sight. One that comes when the
// session has ended is shown how: commands end before their starter has said hello.
func (s *Server) join(v *viewer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exit == nil && len(s.viewers) >= maxViewers {
		return false
	}
	v.sendJSON(stateFrame, s.status)
	if len(s.screen.tail) > 0 {
		v.send(screenFrame, s.screen.again())
	}
	if s.exit != nil {
		v.sendJSON(exitFrame, s.exit)
		v.finish()
		return true
	}
	s.viewers = append(s.viewers, v)
	if s.primary == nil && !v.readOnly {
		s.primary = v
	}
	s.changed()
	return true
}

// leave takes a viewer out.
func (s *Server) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.viewers, v)
	if i < 0 {
		return
	}
	s.viewers = slices.Delete(s.viewers, i, i+1)
	if s.primary == v {
		s.primary = nil
		for _, other := range s.viewers {
			if !other.readOnly {
				s.primary = other
			}
		}
	}
	s.resize()
	s.changed()
}

// resize makes the window as large as the smallest of those who may type, and
// reports whether that changed it. It is called with the lock held.
func (s *Server) resize() bool {
	var size Size
	for _, v := range s.viewers {
		if v.readOnly || v.size == (Size{}) {
			continue
		}
		if size == (Size{}) {
			size = v.size
		}
		size.Rows, size.Cols = min(size.Rows, v.size.Rows), min(size.Cols, v.size.Cols)
	}
	if size == (Size{}) || size == s.status.Size {
		return false
	}
	s.status.Size = size
	setSize(s.master, size)
	return true
}

// redrawPause is how long the window stays smaller: the session follows each
// change, but not two at once.
const redrawPause = 60 * time.Millisecond

// redraw has a program that draws its window draw it anew.
func (s *Server) redraw() {
	s.mu.Lock()
	size := s.status.Size
	if !s.screen.Draws() || size.Rows < 2 {
		s.mu.Unlock()
		return
	}
	setSize(s.master, Size{size.Rows - 1, size.Cols})
	s.mu.Unlock()
	time.Sleep(redrawPause)
	s.mu.Lock()
	defer s.mu.Unlock()
	setSize(s.master, s.status.Size)
}

// keyPatience is how long keys wait for a guest that does not read.
const keyPatience = 30 * time.Second

// keys writes what a viewer has typed, as a whole.
func (s *Server) keys(b []byte) error {
	s.typing.Lock()
	defer s.typing.Unlock()
	_ = s.master.SetWriteDeadline(time.Now().Add(keyPatience)) // without one, it waits
	_, err := s.master.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("the guest does not read what is typed; some of it was lost")
	}
	if err != nil {
		return io.EOF // the session is ending
	}
	return nil
}

// End is called when the session has ended, everybody has written what they had
// to, and the other side of the terminal has been closed: what was written comes
// out, the registry learns how it ended, and then the viewers.
func (s *Server) End(code int) error {
	select {
	case <-s.drained:
	case <-time.After(patience): // somebody keeps the terminal open
	}
	err := s.close(code)
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
	}
	return err
}

// close says everywhere that the session has ended.
func (s *Server) close(code int) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.close()
	if s.place != nil {
		err = s.place.End(code, time.Now())
		s.listener.Close()
	}
	s.exit = &Exit{Code: code}
	for _, v := range s.viewers {
		v.catchUp(s.screen.again)
		v.sendJSON(exitFrame, s.exit)
		v.finish()
	}
	return err
}

func sizeOf(f *os.File) (size Size) {
	control(f, func(fd int) {
		if ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			size = Size{ws.Row, ws.Col}
		}
	})
	return size
}

// setSize gives the window a size, of which the kernel tells who is in front.
func setSize(f *os.File, size Size) {
	control(f, func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}) // it is being closed
	})
}

// control is for calls on a descriptor that stays as it is.
func control(f *os.File, call func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { call(int(fd)) })
	}
}
