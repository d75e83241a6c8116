package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// settings are what a terminal starts with.
type settings struct {
	Iflag, Oflag, Cflag, Lflag uint32
	Line                       byte
	Cc                         [19]byte
	Ispeed, Ospeed             uint32
	Size                       unix.Winsize
}

func (s *settings) encode() []byte {
	b, err := binary.Append(nil, binary.BigEndian, s)
	if err != nil {
		panic(err) // its size is fixed
	}
	return b
}

func decodeSettings(b []byte) (s settings, err error) {
	err = binary.Read(bytes.NewReader(b), binary.BigEndian, &s)
	return s, err
}

func encodeSize(w *unix.Winsize) []byte {
	b, err := binary.Append(nil, binary.BigEndian, w)
	if err != nil {
		panic(err) // its size is fixed
	}
	return b
}

func decodeSize(b []byte) (w unix.Winsize, err error) {
	err = binary.Read(bytes.NewReader(b), binary.BigEndian, &w)
	return w, err
}

// settingsOf reads a terminal's settings.
func settingsOf(fd int) (*settings, error) {
	t, err1 := unix.IoctlGetTermios(fd, unix.TCGETS)
	w, err2 := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("read a terminal's settings: %w", err)
	}
	return &settings{t.Iflag, t.Oflag, t.Cflag, t.Lflag, t.Line, t.Cc, t.Ispeed, t.Ospeed, *w}, nil
}

// apply gives a terminal these settings.
func (s *settings) apply(fd int) error {
	t := unix.Termios{Iflag: s.Iflag, Oflag: s.Oflag, Cflag: s.Cflag, Lflag: s.Lflag, Line: s.Line, Cc: s.Cc, Ispeed: s.Ispeed, Ospeed: s.Ospeed}
	return errors.Join(unix.IoctlSetTermios(fd, unix.TCSETS, &t), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &s.Size))
}

// openPair opens a pseudo-terminal: its master, and its other side by name
// (pts(4)).
func openPair() (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	var n int
	if err == nil {
		n, err = unix.IoctlGetInt(master, unix.TIOCGPTN)
	}
	if err == nil {
		slave, err = unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return -1, -1, errors.Join(fmt.Errorf("open a terminal: %w", err), unix.Close(master))
	}
	return master, slave, nil
}

// A terminal is one of the host's that stands for one of the sandbox's: what is
// written at its master is read here and written at the other's master. The
// line discipline is that of the sandbox; here every byte passes as it is.
type terminal struct {
	name string // of its slave
	mu   sync.Mutex
	from *source // nil before a command got it, and after the last has left it
	to   *sink
}

// OpenTerminal opens a terminal for commands. A command that gets the slave has
// a terminal of the sandbox in its place, with the slave's settings at the
// first use, and always the master's size.
func (h *Host) OpenTerminal() (master, slave *os.File, err error) {
	m, s, err := openPair()
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(s, &st); err != nil {
		return nil, nil, errors.Join(err, unix.Close(m), unix.Close(s))
	}
	name := fmt.Sprintf("/dev/pts/%d", unix.Minor(st.Rdev))
	h.naming.Lock()
	h.opened[st.Rdev] = &terminal{name: name}
	h.naming.Unlock()
	return os.NewFile(uintptr(m), "ptmx"), os.NewFile(uintptr(s), name), nil
}

// terminal returns the terminal that a file is, or nil.
func (h *Host) terminal(st *unix.Stat_t) *terminal {
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	h.naming.Lock()
	defer h.naming.Unlock()
	return h.opened[st.Rdev]
}

// use returns the channel of a terminal, and makes one where it is missing:
// then start begins to carry.
func (t *terminal) use(h *Host) (id uint32, to *sink, start func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from != nil {
		select {
		case <-t.from.done:
		default:
			return t.from.id, t.to, nil, nil
		}
	}
	fd, err := unix.Open(t.name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("open the terminal again: %w", err)
	}
	set, err := settingsOf(fd)
	if err == nil {
		err = passAll(fd)
	}
	if err != nil {
		return 0, nil, nil, errors.Join(err, unix.Close(fd))
	}
	id = h.next()
	h.mu.Lock()
	h.ttys[id] = true
	h.mu.Unlock()
	if t.from, t.to, err = h.both(id, fd, false); err != nil {
		return 0, nil, nil, err
	}
	if err := h.send(frame{kindTerminal, id, set.encode()}); err != nil {
		return 0, nil, nil, err
	}
	from, to := t.from, t.to
	return id, to, func() {
		h.tunnel.start(from, to)
		go h.sizes(from, set.Size)
	}, nil
}

// passAll makes a terminal pass every byte (cfmakeraw in termios(3)).
func passAll(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// lookPause is how long a terminal's new size may stay unknown in the sandbox:
// it must be polled, since the terminal controls no process of ours.
const lookPause = 100 * time.Millisecond

// sizes carries a terminal's size for as long as there is somebody there.
func (h *Host) sizes(s *source, now unix.Winsize) {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		size := s.size()
		if size == nil || *size == now {
			continue
		}
		now = *size
		if h.send(frame{kindSize, s.id, encodeSize(size)}) != nil {
			return
		}
	}
}

// size returns the size of a source that is a terminal, or nil.
func (s *source) size() *unix.Winsize {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	size, err := unix.IoctlGetWinsize(s.fd, unix.TIOCGWINSZ)
	if err != nil {
		return nil
	}
	return size
}
