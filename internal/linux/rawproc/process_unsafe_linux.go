package rawproc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arenaSize bounds what one command may bring: argv, environment and paths.
// Linux itself stops at 2 MiB with the usual stack limit (execve(2)).
const arenaSize = 4 << 20

// A StepError says which step of a program failed, and how.
type StepError struct {
	Index int
	Step  string
	Errno unix.Errno
}

func (e *StepError) Error() string {
	return fmt.Sprintf("step %d, %s: %v", e.Index, e.Step, e.Errno)
}

// Unwrap returns the errno.
func (e *StepError) Unwrap() error { return e.Errno }

// Config says how to start an Init.
type Config struct {
	Namespaces uintptr // CLONE_NEW… flags
	Program    *Program
	Ready      []Slot // descriptors to hand back once the program has run, at most 16
	// First is started once the program has run, or nil. The request for it
	// waits in the socket when the child comes to life, so that neither side
	// waits for the other; First tells what became of it. Ask says it later.
	First *Command
	// Alone closes every descriptor above 2 before the first step: the program
	// uses none of the caller's.
	Alone bool
}

// An Init is PID 1 of a PID namespace. Its methods may be called from several
// goroutines; commands are started one at a time.
type Init struct {
	pid    int
	pidfd  *os.File
	conn   *os.File // the control socket, which the poller watches
	raw    syscall.RawConn
	arena  []byte
	shared *shared
	cfg    Config
	launch *launch    // in the program's memory
	ready  []*os.File // written before readied is closed

	end     sync.Once
	start   sync.Mutex // guards the arena, ended, and how many descriptors are to come
	ended   bool
	readied chan struct{} // the program has run
	started chan packet
	socket  sync.Mutex // guards the one request for a socket
	made    chan made
	pending atomic.Pointer[Command] // the command being started
	done    chan struct{}           // the socket has ended
}

// Start forks PID 1, runs the program in it and returns once it is ready.
func Start(cfg Config) (*Init, error) {
	in, err := Begin(cfg)
	if err != nil {
		return nil, err
	}
	if err := in.Wait(); err != nil {
		return nil, err
	}
	return in, nil
}

// Begin forks PID 1 and returns while that carries the program out. Wait or Kill
// must be called.
func Begin(cfg Config) (*Init, error) {
	if len(cfg.Ready) > maxReady {
		return nil, fmt.Errorf("BUG(bawn): %d descriptors to hand back", len(cfg.Ready))
	}
	tidy()
	arena, err := unix.Mmap(-1, 0, arenaSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("reserve shared memory: %w", err)
	}
	in := &Init{arena: arena, cfg: cfg, shared: (*shared)(unsafe.Pointer(&arena[0])),
		readied: make(chan struct{}), started: make(chan packet, 1), made: make(chan made, 1), done: make(chan struct{})}
	in.shared.in.link()
	in.shared.out.link()
	if err := in.begin(); err != nil {
		in.release()
		return nil, err
	}
	return in, nil
}

// begin makes the control socket, asks for the first command and forks.
func (in *Init) begin() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("create control socket: %w", err)
	}
	defer unix.Close(pair[1])
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return errors.Join(fmt.Errorf("create control socket: %w", err), unix.Close(pair[0]))
	}
	in.conn = os.NewFile(uintptr(pair[0]), "control socket")
	if in.raw, err = in.conn.SyscallConn(); err != nil {
		return fmt.Errorf("create control socket: %w", err)
	}
	if in.cfg.First != nil {
		if err := in.request(*in.cfg.First); err != nil {
			return err
		}
	}
	if err := in.forkHere(pair[1]); err != nil {
		return err
	}
	go in.receive()
	return nil
}

// discarded are unused mappings. Unmapping one makes every processor that runs
// one of our threads flush its cached translations. So it waits for the next
// start, or for the end of the process.
var discarded struct {
	sync.Mutex
	list [][]byte
}

func discard(mapping []byte) {
	if mapping == nil {
		return
	}
	discarded.Lock()
	defer discarded.Unlock()
	discarded.list = append(discarded.list, mapping)
}

func tidy() {
	discarded.Lock()
	defer discarded.Unlock()
	for _, m := range discarded.list {
		_ = unix.Munmap(m) // fails for what only stood in for a mapping
	}
	discarded.list = nil
}

// Wait returns once the program has run. If it fails, the child is gone.
func (in *Init) Wait() error {
	select {
	case <-in.readied:
	case <-in.done:
	}
	select {
	case <-in.readied: // also if it has ended since
		in.forgetProgram()
		return nil
	default:
	}
	err := in.programError()
	in.Kill()
	return err
}

// handed takes the descriptors that come with the word that the program has run.
func (in *Init) handed(fds []int) bool {
	in.start.Lock()
	want := len(in.cfg.Ready)
	in.start.Unlock()
	if len(fds) != want {
		closeAll(fds)
		return false
	}
	for _, fd := range fds {
		in.ready = append(in.ready, os.NewFile(uintptr(fd), "guest"))
	}
	close(in.readied)
	return true
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// programError tells which step ended the child.
func (in *Init) programError() error {
	if i := int(in.shared.failed); i > 0 && i <= in.cfg.Program.Len() {
		return &StepError{Index: i - 1, Step: in.cfg.Program.names[i-1], Errno: unix.Errno(in.shared.errno)}
	}
	return errors.New("the sandbox's first process ended before it was ready")
}

// forgetProgram releases the memory of steps that the child has carried out.
func (in *Init) forgetProgram() {
	discard(in.cfg.Program.mem.all)
	in.cfg.Program.mem = memory{}
}

// release releases all that belongs to a child that is gone.
func (in *Init) release() {
	if in.conn != nil {
		in.conn.Close()
	}
	if in.pidfd != nil {
		in.pidfd.Close()
	}
	for _, f := range in.ready {
		f.Close()
	}
	discard(in.arena)
	in.forgetProgram()
}

func wait(pid int) (ws unix.WaitStatus) {
	for {
		if _, err := unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			return ws
		}
	}
}

// recv reads one packet and its descriptors.
func (in *Init) recv() (packet, []int, error) {
	var p packet
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p))
	oob := make([]byte, unix.CmsgSpace(4*maxReady))
	var n, oobn int
	var err error
	// Not a call that blocks: with one processor all else would stand still
	// until the runtime's watchdog comes by, which may be asleep for 10 ms.
	if gone := in.raw.Read(func(fd uintptr) bool {
		n, oobn, err = again(func() (int, int, error) {
			n, oobn, _, _, err := unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
			return n, oobn, err
		})
		return err != unix.EAGAIN
	}); gone != nil {
		return p, nil, gone
	}
	if err != nil || n != len(buf) {
		return p, nil, errors.Join(err, errors.New("control socket closed"))
	}
	var fds []int
	if msgs, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(msgs) == 1 {
		fds, _ = unix.ParseUnixRights(&msgs[0])
	}
	return p, fds, nil
}

func again(f func() (int, int, error)) (int, int, error) {
	for reset := false; ; {
		// A child that ends before it has read all its requests leaves
		// ECONNRESET before its last messages (unix(7)).
		if a, b, err := f(); err != unix.EINTR && (err != unix.ECONNRESET || reset) {
			return a, b, err
		} else if err == unix.ECONNRESET {
			reset = true
		}
	}
}

// receive hands packets on until the child has ended. A command's own packets
// come after the one that says it has started.
func (in *Init) receive() {
	defer close(in.done)
	watch := map[int32]func(unix.WaitStatus){}
	for {
		p, fds, err := in.recv()
		if err != nil {
			return
		}
		switch p.kind {
		case kindReady:
			if in.ready != nil || !in.handed(fds) {
				return
			}
		case kindStarted:
			if p.status == 0 {
				watch[p.pid] = in.pending.Load().OnStatus
			}
			in.started <- p
		case kindStatus:
			ws := unix.WaitStatus(p.status)
			if f := watch[p.pid]; f != nil {
				f(ws)
			}
			if !ws.Stopped() {
				delete(watch, p.pid)
			}
		case kindSocket:
			in.made <- made{fds, unix.Errno(p.status)}
		}
	}
}

// PID returns the process id of PID 1 as the caller sees it.
func (in *Init) PID() int { return in.pid }

// Ready returns the descriptors that the program handed back.
func (in *Init) Ready() []*os.File { return in.ready }

// Done is closed when PID 1 has ended or closed its socket.
func (in *Init) Done() <-chan struct{} { return in.done }

func (in *Init) send(p packet, oob []byte) error {
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p))
	var err error
	if gone := in.raw.Write(func(fd uintptr) bool {
		_, _, err = again(func() (int, int, error) {
			return 0, 0, unix.Sendmsg(int(fd), buf, oob, nil, unix.MSG_NOSIGNAL)
		})
		return err != unix.EAGAIN
	}); gone != nil {
		err = gone
	}
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	return nil
}

// made is the answer to a request for a socket.
type made struct {
	fds   []int
	errno unix.Errno
}

// Socket returns a TCP socket of the namespace, of family AF_INET or AF_INET6,
// not connected yet. Its error is the errno of socket(2).
func (in *Init) Socket(family int) (*os.File, error) {
	in.socket.Lock()
	defer in.socket.Unlock()
	if err := in.ask(packet{kind: kindSocket, status: int32(family)}); err != nil {
		return nil, err
	}
	select {
	case m := <-in.made:
		return m.file()
	case <-in.done:
	}
	select {
	case m := <-in.made: // came just before the end
		return m.file()
	default:
		return nil, ErrEnded
	}
}

// ask sends a request unless the control socket is closed.
func (in *Init) ask(p packet) error {
	in.start.Lock()
	defer in.start.Unlock()
	if in.ended {
		return ErrEnded
	}
	return in.send(p, nil)
}

func (m made) file() (*os.File, error) {
	if len(m.fds) != 1 {
		return nil, fmt.Errorf("make a socket in the sandbox: %w", m.errno)
	}
	return os.NewFile(uintptr(m.fds[0]), "guest"), nil
}

// Signal sends sig to the process group pid of the namespace.
func (in *Init) Signal(pid int, sig unix.Signal) error {
	return in.send(packet{kind: kindSignal, pid: int32(pid), status: int32(sig)}, nil)
}

// Foreground makes pid the foreground process group of the terminal.
func (in *Init) Foreground(pid int) error {
	return in.send(packet{kind: kindForeground, pid: int32(pid)}, nil)
}

// EndAll has the first process kill, when this process ends, all processes that it
// may signal. It is for one whose signals stay inside a Landlock domain (ABI 6): one that
// can signal this process does not obey.
func (in *Init) EndAll() error { return in.send(packet{kind: kindEndAll}, nil) }

// End kills PID 1 without waiting: Kill releases what is left of it.
func (in *Init) End() {
	in.start.Lock()
	defer in.start.Unlock()
	if !in.ended {
		_ = unix.PidfdSendSignal(int(in.pidfd.Fd()), unix.SIGKILL, nil, 0) // ESRCH: it has ended
	}
}

// Kill ends PID 1 and with it every process of the namespace, and waits until
// they are gone. It may be called more than once.
func (in *Init) Kill() {
	in.end.Do(in.kill)
}

func (in *Init) kill() {
	unix.PidfdSendSignal(int(in.pidfd.Fd()), unix.SIGKILL, nil, 0)
	wait(in.pid)
	<-in.done
	in.start.Lock()
	defer in.start.Unlock()
	in.ended = true
	in.release()
}
