package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
)

// A Host is the end of a tunnel at which commands are asked for. Its methods
// may be called from several goroutines.
type Host struct {
	*tunnel
	control *os.File

	naming sync.Mutex
	last   uint32 // the number of a channel
	dials  map[uint32]chan dialed
	opened map[uint64]*terminal // by device

	ports    Ports
	reaching map[uint32]bool // by number, under tunnel.mu
}

type dialed struct {
	file *os.File
	err  error
}

// Open speaks through wire, the host's end of a stream socket in non-blocking
// mode, which it owns from now on, to Serve at the other end.
func Open(wire *os.File) (*Host, error) {
	h, err := open(wire)
	if err == nil {
		h.serve()
	}
	return h, err
}

// open makes a host's end, and serve lets it work.
func open(wire *os.File) (*Host, error) {
	control, local, err := ipc.Pair()
	if err == nil {
		err = nonblocking(&local)
	}
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	t, err := newTunnel(wire, local)
	if err != nil {
		return nil, errors.Join(err, wire.Close(), control.Close(), local.Close())
	}
	return &Host{
		tunnel: t, control: control, dials: map[uint32]chan dialed{}, opened: map[uint64]*terminal{}, reaching: map[uint32]bool{},
	}, nil
}

func (h *Host) serve() {
	go h.receive(h.obey)
	go h.orders()
}

// nonblocking opens a file anew for Go's poller.
func nonblocking(f **os.File) error {
	fd, err := dup(*f)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	(*f).Close()
	*f = os.NewFile(uintptr(fd), "control")
	return nil
}

// Control returns the control socket, for ipc.New. The caller owns
// it.
func (h *Host) Control() *os.File { return h.control }

// Done is closed when the other end is gone, and all that had come from it has
// been written.
func (h *Host) Done() <-chan struct{} { return h.done }

// Close ends the tunnel, and with it whatever is at its other end. It may be
// called more than once.
func (h *Host) Close() error {
	_ = unix.Shutdown(int(h.fd()), unix.SHUT_RDWR) // it may be closed already
	<-h.done
	return nil
}

// fd is the wire's descriptor, or -1.
func (h *Host) fd() (n int) {
	n = -1
	if raw, err := h.wire.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n
}

// next returns the number of a new channel.
func (h *Host) next() uint32 {
	h.naming.Lock()
	defer h.naming.Unlock()
	h.last++
	return h.last
}

// obey does what comes from the sandbox.
func (h *Host) obey(f frame) error {
	switch f.kind {
	case kindControl:
		message, refs, err := decodeControl(f.body)
		if err != nil {
			return err
		}
		if len(refs) > 0 {
			return errors.New("a descriptor comes from the sandbox")
		}
		return h.pass(message, func() error { return h.conn.Send(rawMessage(message)) })
	case kindShut:
		return h.shut()
	case kindDial:
		return h.wanted(f.id, binary.BigEndian.Uint16(f.body))
	case kindDialed:
		return h.dialed(f.id, binary.BigEndian.Uint32(f.body))
	}
	return h.channel(f)
}

// rawMessage is JSON that was checked where it came from: here it is passed on.
type rawMessage []byte

// MarshalJSON returns the message.
func (m rawMessage) MarshalJSON() ([]byte, error) { return m, nil }

// orders sends on what comes over the control socket.
func (h *Host) orders() {
	for {
		message, files, err := h.message()
		if err != nil {
			break
		}
		err = h.order(message, files)
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			break
		}
	}
	_ = h.send(frame{kind: kindShut})
}

// order makes channels of a message's files, and sends it.
func (h *Host) order(message []byte, files []*os.File) error {
	p := look(message)
	o := ordering{Host: h, places: places(&p, len(files))}
	for i, f := range files {
		if err := o.add(i, f); err != nil {
			return err
		}
	}
	if p.Do != nil && len(o.settle) > 0 {
		h.mu.Lock()
		h.commands[p.Do.ID] = o.settle
		h.mu.Unlock()
	}
	if err := h.send(frame{kind: kindControl, body: encodeControl(message, o.refs)}); err != nil {
		return err
	}
	for _, start := range o.start {
		start()
	}
	return nil
}

// places says which descriptors of a command its files are.
func places(p *peek, n int) []int {
	var list []int
	for i := range 3 {
		if p.Do == nil || p.Do.Stdio[i] {
			list = append(list, i)
		}
	}
	return list[:min(n, len(list))]
}

// ordering is a message on its way.
type ordering struct {
	*Host
	places []int
	refs   []reference
	files  []unix.Stat_t // of refs
	settle []settler
	start  []func()
}

// add makes a channel of a file: by how it was opened, and where it was opened
// for both, by its place.
func (o *ordering) add(i int, f *os.File) error {
	fd, err := dup(f)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err = errors.Join(err, unix.Fstat(fd, &st)); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	if t := o.terminal(&st); t != nil {
		return errors.Join(unix.Close(fd), o.addTerminal(t, st))
	}
	what := byte(writable)
	if mode := flags & unix.O_ACCMODE; mode == unix.O_RDONLY || mode == unix.O_RDWR && i < len(o.places) && o.places[i] == 0 {
		what = readable
	}
	// What two descriptors write to one file keeps its order.
	for j, other := range o.files {
		if what == writable && o.refs[j].what == writable && other.Dev == st.Dev && other.Ino == st.Ino {
			o.refer(o.refs[j], st)
			return unix.Close(fd)
		}
	}
	return o.addPipe(what, fd, st)
}

func (o *ordering) refer(r reference, st unix.Stat_t) {
	o.refs, o.files = append(o.refs, r), append(o.files, st)
}

func (o *ordering) addPipe(what byte, fd int, st unix.Stat_t) error {
	r := reference{what, o.next()}
	o.refer(r, st)
	if what == readable {
		s, err := o.read(r.id, fd)
		o.start = append(o.start, func() { o.tunnel.start(s, nil) })
		return err
	}
	s, err := o.write(r.id, fd)
	if err == nil {
		o.settle = append(o.settle, s)
		o.start = append(o.start, func() { o.tunnel.start(nil, s) })
	}
	return err
}

// addTerminal refers to a terminal, which is made there if it is new.
func (o *ordering) addTerminal(t *terminal, st unix.Stat_t) error {
	for j, other := range o.files {
		if o.refs[j].what == tty && other.Rdev == st.Rdev {
			o.refer(o.refs[j], st)
			return nil
		}
	}
	id, to, start, err := t.use(o.Host)
	if err != nil {
		return err
	}
	o.refer(reference{tty, id}, st)
	o.settle = append(o.settle, to)
	if start != nil {
		o.start = append(o.start, start)
	}
	return nil
}

// dialTimeout bounds how long the sandbox may take to connect.
const dialTimeout = 10 * time.Second

// Dial connects to a TCP port of the sandbox's own loopback, IPv4 first and
// then IPv6. The file is a socket; closing a direction of it (shutdown(2))
// closes that of the connection. It errs with ECONNREFUSED where nothing
// listens.
func (h *Host) Dial(port uint16) (*os.File, error) {
	id, answer := h.next(), make(chan dialed, 1)
	h.naming.Lock()
	h.dials[id] = answer
	h.naming.Unlock()
	if err := h.send(frame{kindDial, id, binary.BigEndian.AppendUint16(nil, port)}); err != nil {
		return nil, fmt.Errorf("connect to the guest: %w", err)
	}
	timer := time.NewTimer(dialTimeout)
	defer timer.Stop()
	select {
	case d := <-answer:
		return d.file, d.err
	case <-h.done:
		return nil, fmt.Errorf("connect to the guest: %w", io.ErrClosedPipe)
	case <-timer.C:
		go func() { // whatever comes of it later
			select {
			case d := <-answer:
				if d.file != nil {
					d.file.Close()
				}
			case <-h.done:
			}
		}()
		return nil, fmt.Errorf("connect to the guest: %w", unix.ETIMEDOUT)
	}
}

// dialed makes a channel of a connection that was made.
func (h *Host) dialed(id, errno uint32) error {
	h.naming.Lock()
	answer := h.dials[id]
	delete(h.dials, id)
	h.naming.Unlock()
	if answer == nil {
		return fmt.Errorf("channel %d was not dialled", id)
	}
	if errno != 0 {
		answer <- dialed{err: fmt.Errorf("connect to the guest: %w", syscall.Errno(errno))}
		return nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	from, to, err := h.both(id, fds[0], true)
	if err != nil {
		return errors.Join(err, unix.Close(fds[1]))
	}
	h.tunnel.start(from, to)
	answer <- dialed{file: os.NewFile(uintptr(fds[1]), "guest's port")}
	return nil
}
