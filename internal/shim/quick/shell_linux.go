package quick

import (
	"os"
	"os/signal"
	"syscall"
)

// Shell acts as the shell that argv calls, and returns the exit code of its
// command. ended is false if the caller must continue: nothing has been asked
// for then, or Begun has the rest.
func Shell(argv, environ []string, socket string) (code int, ended bool) {
	if !Fits(argv) || !noTerminal() {
		return 0, false
	}
	buf := make([]byte, syscall.PathMax)
	n, err := syscall.Getcwd(buf)
	if err != nil || n < 2 || buf[0] != '/' {
		return 0, false
	}
	message := hello(argv, string(buf[:n-1]), environ)
	if message == nil {
		return 0, false
	}
	fd, err := dial(socket)
	if err != nil {
		return 0, false // package shim says so
	}
	c := call{socket: fd, said: buf[:0]}
	if syscall.Pipe2(c.wake[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK) != nil { // before anything runs that could not be waited for
		syscall.Close(fd)
		return 0, false
	}
	c.catch() // from here on the command may run, and is told of signals
	if !c.send(message) {
		return 0, c.leave()
	}
	return c.watch()
}

// noTerminal reports whether descriptors 0 to 2 are open and none of them is a
// terminal, for which package shim would have to say more.
func noTerminal() bool {
	null := uint64(1<<8 | 3) // makedev(1, 3)
	for fd := range 3 {
		var s syscall.Stat_t
		if syscall.Fstat(fd, &s) != nil || s.Mode&syscall.S_IFMT == syscall.S_IFCHR && s.Rdev != null {
			return false
		}
	}
	return true
}

// dial connects to the session socket by a call that does not wait (package shim's dial),
// with a socket that does afterwards. Where there are too many guests at the
// session socket, it errs.
func dial(socket string) (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err == nil {
		err = syscall.SetNonblock(fd, false)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A call is a command at the session socket.
type call struct {
	socket  int
	said    []byte
	signals chan os.Signal
	wake    [2]int // a pipe: its reading end can be read once there is a signal
	stop    chan struct{}
}

// send sends the first message with the descriptors 0 to 2. It reports whether
// all of it was sent.
func (c *call) send(message []byte) bool {
	rights := syscall.UnixRights(0, 1, 2)
	for len(message) > 0 {
		n, err := syscall.SendmsgN(c.socket, message, rights, nil, syscall.MSG_NOSIGNAL)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		message, rights = message[n:], nil
	}
	return true
}

// forwarded are the signals that package shim is to see.
var forwarded = [...]os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// catch takes the signals that are not ignored, as package shim does.
func (c *call) catch() {
	c.signals, c.stop = make(chan os.Signal, 16), make(chan struct{})
	var list []os.Signal
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	signal.Notify(c.signals, list...)
	go c.tell()
}

// tell has watch end at the first signal, which stays to be received.
func (c *call) tell() {
	select {
	case sig := <-c.signals:
		select {
		case c.signals <- sig:
		default: // there are others
		}
		_, _ = syscall.Write(c.wake[1], []byte{0}) // the pipe is empty
	case <-c.stop:
	}
}

// watch waits for the command's end. Where it hears anything else, the caller
// of Shell has to go on.
func (c *call) watch() (code int, ended bool) {
	for {
		code, ended, known := exit(c.said)
		if ended {
			return code, true
		}
		if !known || !c.wait() || !c.read() {
			break
		}
	}
	return 0, c.leave()
}

// wait waits until the session socket says something. It returns false at a signal.
func (c *call) wait() bool {
	for {
		var set syscall.FdSet
		last := max(c.socket, c.wake[0])
		if last >= len(set.Bits)*64 {
			return false
		}
		for _, fd := range []int{c.socket, c.wake[0]} {
			set.Bits[fd/64] |= 1 << (fd % 64)
		}
		n, err := syscall.Select(last+1, &set, nil, nil, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || n == 0:
			return false
		default:
			return set.Bits[c.wake[0]/64]&(1<<(c.wake[0]%64)) == 0
		}
	}
}

// read reads what the session socket says. It returns false where there is no more, or
// no room.
func (c *call) read() bool {
	if len(c.said) == cap(c.said) {
		return false
	}
	n, err := syscall.Read(c.socket, c.said[len(c.said):cap(c.said)])
	if err != nil || n <= 0 {
		return err == syscall.EINTR
	}
	c.said = c.said[:len(c.said)+n]
	return true
}

// leave keeps the conversation for Begun. It returns false. What has been said
// by now is read: to a signal that came afterwards the command runs.
func (c *call) leave() bool {
	close(c.stop)                           // tell may be about to write: the pipe stays open
	_ = syscall.SetNonblock(c.socket, true) // of a socket that works
	_ = c.read()                            // or later
	ahead, started := cutStarted(c.said)
	begun = &Talk{Socket: os.NewFile(uintptr(c.socket), "socket"), Started: started, Ahead: ahead, Signals: c.signals}
	return false
}
