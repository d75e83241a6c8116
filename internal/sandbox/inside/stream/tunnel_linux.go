package stream

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// A tunnel is what both ends have in common.
type tunnel struct {
	wire *os.File
	conn *ipc.Conn     // the local end of the control socket
	done chan struct{} // closed when the stream has ended and its bytes have been written

	sending sync.Mutex

	mu       sync.Mutex
	sources  map[uint32]*source
	sinks    map[uint32]*sink
	ttys     map[uint32]bool      // channels of which no direction outlives the other
	commands map[uint64][]settler // what a command writes to, by its number
	flushing map[*sink]struct{}   // that have had their last frame
	closed   bool
}

// A settler waits until what was there when it was called is on its way.
type settler interface{ settle() }

func newTunnel(wire, local *os.File) (*tunnel, error) {
	conn, err := ipc.New(local, intent.Limits)
	if err != nil {
		return nil, err
	}
	return &tunnel{
		wire: wire, conn: conn, done: make(chan struct{}),
		sources: map[uint32]*source{}, sinks: map[uint32]*sink{}, ttys: map[uint32]bool{},
		commands: map[uint64][]settler{}, flushing: map[*sink]struct{}{},
	}, nil
}

// send writes one frame.
func (t *tunnel) send(f frame) error {
	t.sending.Lock()
	defer t.sending.Unlock()
	_, err := t.wire.Write(f.encode())
	return err
}

// receive hands every frame to obey until there are no more, or one makes no
// sense; then everything ends.
func (t *tunnel) receive(obey func(frame) error) {
	r := bufio.NewReaderSize(t.wire, header+chunk)
	var err error
	for err == nil {
		var f frame
		if f, err = readFrame(r); err == nil {
			err = obey(f)
		}
	}
	t.end()
}

// flushTime is how long what has come may take to be written once nothing
// more will come.
const flushTime = 2 * time.Second

// end closes every channel, and the control socket at last.
func (t *tunnel) end() {
	t.mu.Lock()
	t.closed = true
	for _, s := range t.sources {
		s.stop()
	}
	for id, s := range t.sinks {
		_ = s.end() // its last frame has not arrived, or it would be gone
		t.flushing[s] = struct{}{}
		delete(t.sinks, id)
	}
	rest := t.flushing
	t.flushing = nil
	t.mu.Unlock()
	late := time.After(flushTime)
	for s := range rest {
		select {
		case <-s.done:
		case <-late:
			late = time.After(0)
		}
	}
	_ = t.wire.Close()
	_ = t.conn.Close()
	close(t.done)
}

// channel obeys the frames that mean the same at both ends.
func (t *tunnel) channel(f frame) error {
	t.mu.Lock()
	from, to := t.sources[f.id], t.sinks[f.id]
	t.mu.Unlock()
	switch f.kind {
	case kindData, kindEnd:
		if to == nil {
			return fmt.Errorf("bytes for channel %d, which there is not", f.id)
		}
		if f.kind == kindData {
			return to.take(f.body)
		}
		return t.last(f.id, from, to)
	case kindCredit:
		if from != nil { // else it has ended meanwhile
			return from.allow(binary.BigEndian.Uint32(f.body))
		}
	case kindReset:
		if from != nil {
			from.stop()
		}
	default:
		return fmt.Errorf("a frame of kind %d, which this end does not take", f.kind)
	}
	return nil
}

// last ends one direction of a channel.
func (t *tunnel) last(id uint32, from *source, to *sink) error {
	t.mu.Lock()
	delete(t.sinks, id)
	t.flushing[to] = struct{}{}
	both := t.ttys[id]
	t.mu.Unlock()
	if both && from != nil {
		from.stop()
	}
	return to.end()
}

// read makes fd, which it takes, what channel id reads from.
func (t *tunnel) read(id uint32, fd int) (*source, error) {
	s, err := newSource(id, fd, t.send)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, t.add(func() { t.sources[id] = s })
}

// write makes fd, which it takes, what channel id writes to.
func (t *tunnel) write(id uint32, fd int) (*sink, error) {
	s, err := newSink(id, fd, t.send)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, t.add(func() { t.sinks[id] = s })
}

func (t *tunnel) add(f func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return io.ErrClosedPipe
	}
	f()
	return nil
}

// start lets a channel's halves work; nil is for one that there is not.
func (t *tunnel) start(from *source, to *sink) {
	if from != nil {
		go func() {
			from.run()
			t.mu.Lock()
			delete(t.sources, from.id)
			t.mu.Unlock()
		}()
	}
	if to != nil {
		go func() {
			to.run()
			t.mu.Lock()
			delete(t.flushing, to)
			t.mu.Unlock()
		}()
	}
}

// both makes fd, which it takes, a channel of two directions.
func (t *tunnel) both(id uint32, fd int, socket bool) (*source, *sink, error) {
	other, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	from, err := t.read(id, fd)
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(other))
	}
	to, err := t.write(id, other)
	if err != nil {
		return nil, nil, err
	}
	to.socket = socket
	return from, to, nil
}

// A peek is what the tunnel reads of the executor's messages.
type peek struct {
	Do *struct {
		ID    uint64
		Stdio [3]bool
	}
	Changed *struct {
		ID     uint64
		Status uint32
	}
	Refused *struct{ ID uint64 }
}

// ended returns the number of the command whose end a message tells, or 0.
func (p *peek) ended() uint64 {
	switch {
	case p.Refused != nil:
		return p.Refused.ID
	case p.Changed != nil:
		if ws := syscall.WaitStatus(p.Changed.Status); ws.Exited() || ws.Signaled() {
			return p.Changed.ID
		}
	}
	return 0
}

// look peeks into a message. A message that can't be read is passed on as it is.
func look(message []byte) (p peek) {
	_ = json.Unmarshal(message, &p)
	return p
}

// pass hands a message on, that of a command's end not before what the command
// has written.
func (t *tunnel) pass(message []byte, on func() error) error {
	p := look(message)
	id := p.ended()
	t.mu.Lock()
	wait := t.commands[id]
	delete(t.commands, id)
	t.mu.Unlock()
	if id == 0 || len(wait) == 0 {
		return on()
	}
	go func() {
		for _, s := range wait {
			s.settle()
		}
		_ = on() // the other side's end is noticed elsewhere
	}()
	return nil
}

// shut says on the local control socket that nothing follows.
func (t *tunnel) shut() error {
	var failed error
	err := t.conn.SyscallConn().Control(func(fd uintptr) { failed = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if errors.Is(failed, unix.ENOTCONN) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// message receives the next message of the local control socket.
func (t *tunnel) message() (json.RawMessage, []*os.File, error) {
	var m json.RawMessage
	files, err := t.conn.Receive(&m)
	return m, files, err
}

// dup returns a descriptor of a file's own, not below 3, closed on exec.
func dup(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(err, failed)
}
