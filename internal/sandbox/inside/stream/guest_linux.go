package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/ipc"
)

// A guest is the end of a tunnel at which commands run.
type guest struct {
	*tunnel
	slaves map[uint32]int // of terminals that no command has got yet
	ports  *ports         // nil for none
}

// Serve speaks through wire, which it owns from now on, to Open on the host. It
// returns the control socket for the executor, which ends when the host's does.
// No file can be sent out over it. forward is empty, or an address and ports:
// connections to these on loopback are carried to the same ports there. With
// PortsWord in place of the address they go through the tunnel.
func Serve(wire *os.File, forward []string) (control *os.File, err error) {
	own, err := takeAway(wire)
	if err != nil {
		return nil, err
	}
	tunnelled := len(forward) > 0 && forward[0] == PortsWord
	if !tunnelled {
		if err := forwardAll(forward); err != nil {
			return nil, errors.Join(err, own.Close())
		}
	}
	local, control, err := ipc.Pair()
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	t, err := newTunnel(own, local)
	if err != nil {
		return nil, errors.Join(err, local.Close(), control.Close(), own.Close())
	}
	g := &guest{tunnel: t, slaves: map[uint32]int{}}
	if tunnelled {
		if err := g.carryPorts(forward[1:]); err != nil {
			return nil, errors.Join(err, local.Close(), control.Close(), own.Close())
		}
	}
	go g.receive(g.obey)
	go g.reports()
	return control, nil
}

// takeAway moves wire out of the way of commands, and leaves nothing to read in
// its place.
func takeAway(wire *os.File) (*os.File, error) {
	fd, err := dup(wire)
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Dup3(null, int(wire.Fd()), unix.O_CLOEXEC), unix.Close(null), unix.SetNonblock(fd, true))
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "wire"), nil
}

// obey does what the host says. One goroutine calls it.
func (g *guest) obey(f frame) error {
	switch f.kind {
	case kindControl:
		return g.order(f.body)
	case kindShut:
		return g.shut()
	case kindTerminal:
		return g.terminal(f)
	case kindSize:
		return g.resize(f)
	case kindDial:
		go g.dial(f.id, binary.BigEndian.Uint16(f.body))
		return nil
	case kindDialed:
		return g.dialed(f.id, binary.BigEndian.Uint32(f.body))
	}
	return g.channel(f)
}

// reports sends out what the executor says.
func (g *guest) reports() {
	for {
		message, files, err := g.message()
		for _, f := range files {
			f.Close()
		}
		if err == nil && len(files) > 0 {
			err = errors.New("a file was to leave the sandbox")
		}
		if err == nil {
			err = g.pass(message, func() error { return g.send(frame{kind: kindControl, body: encodeControl(message, nil)}) })
		}
		if err != nil {
			break
		}
	}
	_ = g.send(frame{kind: kindShut})
}

// order makes the descriptors that a message refers to, and hands it on.
func (g *guest) order(body []byte) error {
	message, refs, err := decodeControl(body)
	if err != nil {
		return err
	}
	made := map[uint32]*os.File{}
	defer func() {
		for _, f := range made {
			f.Close()
		}
	}()
	var files []*os.File
	var start []func()
	var settle []settler
	for _, r := range refs {
		if made[r.id] == nil {
			f, s, begin, err := g.make(r)
			if err != nil {
				return err
			}
			made[r.id], start = f, append(start, begin)
			if s != nil {
				settle = append(settle, s)
			}
		}
		files = append(files, made[r.id])
	}
	if p := look(message); p.Do != nil && len(settle) > 0 {
		g.mu.Lock()
		g.commands[p.Do.ID] = settle
		g.mu.Unlock()
	}
	err = g.conn.Send(rawMessage(message), files...)
	for _, begin := range start {
		begin()
	}
	return err
}

// make makes the descriptor that r stands for.
func (g *guest) make(r reference) (f *os.File, wait settler, start func(), err error) {
	if r.what == tty {
		return g.slave(r.id)
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	if r.what == readable {
		f = os.NewFile(uintptr(fds[0]), "stdin")
		s, err := g.write(r.id, fds[1])
		return f, nil, func() { g.start(nil, s) }, err
	}
	f = os.NewFile(uintptr(fds[1]), "stdout")
	s, err := g.read(r.id, fds[0])
	return f, s, func() { g.start(s, nil) }, err
}

// terminal makes a terminal.
func (g *guest) terminal(f frame) error {
	set, err := decodeSettings(f.body)
	if err != nil {
		return err
	}
	master, slave, err := openPair()
	if err != nil {
		return err
	}
	if err := set.apply(slave); err != nil {
		return errors.Join(fmt.Errorf("set a terminal up: %w", err), unix.Close(master), unix.Close(slave))
	}
	g.slaves[f.id] = slave
	g.mu.Lock()
	g.ttys[f.id] = true
	g.mu.Unlock()
	_, _, err = g.both(f.id, master, false)
	return err
}

// slave returns a terminal's side for a command. A channel that has ended
// meanwhile is ignored.
func (g *guest) slave(id uint32) (f *os.File, wait settler, start func(), err error) {
	g.mu.Lock()
	from, to := g.sources[id], g.sinks[id]
	g.mu.Unlock()
	nothing := func() {}
	if fd, first := g.slaves[id]; first {
		delete(g.slaves, id)
		return os.NewFile(uintptr(fd), "terminal"), from, func() { g.start(from, to) }, nil
	}
	if from != nil {
		if fd, err := from.peer(); err == nil {
			return os.NewFile(uintptr(fd), "terminal"), from, nothing, nil
		}
	}
	f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	return f, nil, nothing, err
}

// peer opens the other side of a source that is a terminal's master.
func (s *source) peer() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return -1, unix.EIO
	}
	n, err := unix.IoctlGetInt(s.fd, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	return unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}

// resize gives a terminal its new size.
func (g *guest) resize(f frame) error {
	size, err := decodeSize(f.body)
	if err != nil {
		return err
	}
	g.mu.Lock()
	s := g.sources[f.id]
	g.mu.Unlock()
	if s != nil {
		s.resize(&size)
	}
	return nil
}

// resize sets the size of a source that is a terminal's master, and tells who
// is in its foreground (SIGWINCH), which not every kernel does by itself.
func (s *source) resize(size *unix.Winsize) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	_ = unix.IoctlSetWinsize(s.fd, unix.TIOCSWINSZ, size) // a size is nothing to fail for
	if group, err := unix.IoctlGetInt(s.fd, unix.TIOCGPGRP); err == nil && group > 1 {
		_ = unix.Kill(-group, unix.SIGWINCH)
	}
}

// connectTime bounds how long a listener may leave a connection waiting for
// room in its queue.
const connectTime = 5 * time.Second

// dial connects a channel to a port of loopback.
func (g *guest) dial(id uint32, port uint16) {
	fd, err := connect(unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		if fd6, err6 := connect(unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}); err6 == nil {
			fd, err = fd6, nil
		}
	}
	var errno unix.Errno
	if err != nil && (!errors.As(err, &errno) || errno == 0) {
		errno = unix.EIO
	}
	var from *source
	var to *sink
	if errno == 0 {
		if from, to, err = g.both(id, fd, true); err != nil {
			errno = unix.EIO
		}
	}
	if g.send(frame{kindDialed, id, number(uint32(errno))}) == nil && errno == 0 {
		g.start(from, to)
	}
}

func connect(family int, to unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	tv, forever := unix.NsecToTimeval(int64(connectTime)), unix.Timeval{}
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	if err == nil {
		err = unix.Connect(fd, to)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &forever)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
