package rawproc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
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
	Ready      []Slot // descriptors to hand back once the program has run, at most four
	// First is started once the program has run, or nil. The request for it
	// waits in the socket when the child comes to life, so that neither side
	// waits for the other; First tells what became of it.
	First *Command
}

// An Init is PID 1 of a PID namespace. Its methods may be called from several
// goroutines; commands are started one at a time.
type Init struct {
	pid    int
	pidfd  *os.File
	sock   int
	arena  []byte
	shared *shared
	cfg    Config
	ready  []*os.File

	end     sync.Once
	start   sync.Mutex // guards the arena and ended
	ended   bool
	started chan packet
	pending atomic.Pointer[Command] // the command being started
	done    chan struct{}           // the socket has ended
}

// Start forks PID 1, runs the program in it and returns once it is ready.
func Start(cfg Config) (*Init, error) {
	if len(cfg.Ready) > maxReady {
		return nil, fmt.Errorf("BUG(bawn): %d descriptors to hand back", len(cfg.Ready))
	}
	tidy()
	arena, err := unix.Mmap(-1, 0, arenaSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("reserve shared memory: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		unix.Munmap(arena)
		return nil, fmt.Errorf("create control socket: %w", err)
	}
	in := &Init{sock: pair[0], arena: arena, cfg: cfg, shared: (*shared)(unsafe.Pointer(&arena[0])),
		started: make(chan packet, 1), done: make(chan struct{})}
	in.shared.in.link()
	in.shared.out.link()
	if err := in.launch(pair[1]); err != nil {
		in.abandon()
		return nil, err
	}
	return in, nil
}

// discarded are mappings that nobody uses any more. Giving one back makes every
// processor that runs one of our threads flush what it knows of it, so that
// waits for the next start, or for the end of the process.
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

// launch asks for the first command and starts the child.
func (in *Init) launch(childSock int) error {
	if in.cfg.First != nil {
		if err := in.request(*in.cfg.First); err != nil {
			return errors.Join(err, unix.Close(childSock))
		}
	}
	ready := make(chan error, 1)
	go in.live(childSock, ready)
	return <-ready
}

// live forks the child and then listens to it. It keeps one thread for itself
// from before the fork until the child's end: PR_SET_PDEATHSIG counts the
// thread that forked as the parent.
func (in *Init) live(childSock int, ready chan<- error) {
	runtime.LockOSThread()
	err := in.fork(childSock)
	unix.Close(childSock)
	if err == nil {
		err = in.awaitReady()
	}
	ready <- err
	if err == nil {
		in.receive()
	}
}

// link makes the message point at its own parts.
func (m *message) link() {
	m.hdr.Iov, m.hdr.Control = &m.iov, &m.ctl[0]
	m.hdr.SetIovlen(1)
	m.iov.Base = (*byte)(unsafe.Pointer(&m.body))
	m.iov.SetLen(int(unsafe.Sizeof(m.body)))
}

func (in *Init) fork(childSock int) error {
	p := in.cfg.Program
	args := ownArgs()
	l := launch{steps: p.mem.step(0), n: p.Len(), sh: in.shared, sock: uintptr(childSock), args: unsafe.Pointer(unsafe.SliceData(args)), nargs: len(args)}
	l.ready.n = int32(len(in.cfg.Ready))
	copy(l.ready.slot[:], in.cfg.Ready)
	stack, tls, g := p.mem.stack((*launch)(Put(p, l)))
	if p.mem.err != nil {
		return p.mem.err
	}
	start := uintptr(p.mem.base())
	syscall.ForkLock.Lock()
	pid, errno := forkInit(in.cfg.Namespaces, stack, tls, g, unshared(extent{start, start + memorySize}))
	syscall.ForkLock.Unlock()
	discard(p.mem.all)
	p.mem = memory{}
	if errno != 0 {
		return fmt.Errorf("create namespaces: %w", errno)
	}
	in.pid = int(pid)
	fd, err := unix.PidfdOpen(in.pid, 0)
	if err != nil {
		return fmt.Errorf("open pidfd: %w", err)
	}
	in.pidfd = os.NewFile(uintptr(fd), "pidfd")
	return nil
}

// ownArgs is the memory of this process's command line, as execve(2) laid it
// out, or nothing if os.Args is not that any more.
func ownArgs() []byte {
	if len(os.Args) == 0 {
		return nil
	}
	start := unsafe.StringData(os.Args[0])
	size := 0
	for _, a := range os.Args {
		if len(a) > 0 && unsafe.StringData(a) != (*byte)(unsafe.Add(unsafe.Pointer(start), size)) {
			return nil
		}
		size += len(a) + 1
	}
	return unsafe.Slice(start, size-1)
}

// awaitReady waits for the packet that says the program has run.
func (in *Init) awaitReady() error {
	p, fds, err := in.recv()
	if err != nil || p.kind != kindReady || len(fds) != len(in.cfg.Ready) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return in.programError()
	}
	for _, fd := range fds {
		in.ready = append(in.ready, os.NewFile(uintptr(fd), "guest"))
	}
	return nil
}

// programError tells which step ended the child.
func (in *Init) programError() error {
	if i := int(in.shared.failed); i > 0 && i <= in.cfg.Program.Len() {
		return &StepError{Index: i - 1, Step: in.cfg.Program.names[i-1], Errno: unix.Errno(in.shared.errno)}
	}
	return errors.New("the sandbox's first process ended before it was ready")
}

// abandon ends a child that never became ready.
func (in *Init) abandon() {
	unix.Close(in.sock)
	if in.pid > 0 {
		unix.Kill(in.pid, unix.SIGKILL)
		wait(in.pid)
	}
	if in.pidfd != nil {
		in.pidfd.Close()
	}
	for _, f := range in.ready {
		f.Close()
	}
	discard(in.arena)
	discard(in.cfg.Program.mem.all)
	in.cfg.Program.mem = memory{}
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
	n, oobn, err := again(func() (int, int, error) {
		n, oobn, _, _, err := unix.Recvmsg(in.sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
		return n, oobn, err
	})
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
		// ECONNRESET in front of what it still had to say (unix(7)).
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
		p, _, err := in.recv()
		if err != nil {
			return
		}
		switch p.kind {
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
		}
	}
}

// PID returns the process id of PID 1 as the caller sees it.
func (in *Init) PID() int { return in.pid }

// Ready returns the descriptors that the program handed back.
func (in *Init) Ready() []*os.File { return in.ready }

// Done is closed when PID 1 has ended or closed its socket.
func (in *Init) Done() <-chan struct{} { return in.done }

// A Command is what a request starts.
type Command struct {
	Paths      []string // candidates for the program, absolute, tried in order as execvp(3) does
	Args, Env  []string
	Dir        string
	Stdio      [3]*os.File
	Terminal   *os.File // becomes the controlling terminal, or nil
	Foreground bool     // the command starts as the terminal's foreground process group
	Last       bool     // PID 1, and all else in its namespace, ends with this command
	// OnStatus is called, in order and from one goroutine, each time the
	// command has stopped, and at last when it has ended. It must not block.
	OnStatus func(unix.WaitStatus)
}

// An ExecError says that a command could not be executed.
type ExecError struct {
	Name  string
	Errno unix.Errno
}

func (e *ExecError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Errno) }

// Unwrap returns the errno.
func (e *ExecError) Unwrap() error { return e.Errno }

// Run starts a command in the namespace and returns its pid there. It returns
// an *ExecError when the program can't be executed.
func (in *Init) Run(c Command) (int, error) {
	in.start.Lock()
	defer in.start.Unlock()
	if in.ended {
		return 0, errEnded
	}
	if err := in.request(c); err != nil {
		return 0, err
	}
	return in.answer(c)
}

// First waits for the command that Config named and returns what Run would. It
// is called once, before Run.
func (in *Init) First() (int, error) { return in.answer(*in.cfg.First) }

// request asks the child to start c.
func (in *Init) request(c Command) error {
	if err := in.shared.fill(in.arena, c); err != nil {
		return err
	}
	in.pending.Store(&c)
	fds := []int{int(c.Stdio[0].Fd()), int(c.Stdio[1].Fd()), int(c.Stdio[2].Fd())}
	if c.Terminal != nil {
		fds = append(fds, int(c.Terminal.Fd()))
	}
	return in.send(packet{kind: kindStart}, unix.UnixRights(fds...))
}

// answer waits for what became of the request for c.
func (in *Init) answer(c Command) (int, error) {
	p, ok := in.awaitStart()
	switch {
	case !ok:
		return 0, errEnded
	case p.status != 0:
		return 0, &ExecError{Name: c.Args[0], Errno: unix.Errno(p.status)}
	}
	return int(p.pid), nil
}

// awaitStart returns the answer to a request. The answer counts also if the
// child has ended since.
func (in *Init) awaitStart() (packet, bool) {
	select {
	case p := <-in.started:
		return p, true
	case <-in.done:
	}
	select {
	case p := <-in.started:
		return p, true
	default:
		return packet{}, false
	}
}

var errEnded = errors.New("the sandbox has ended")

// fill lays the command out in the arena.
func (sh *shared) fill(arena []byte, c Command) error {
	if len(c.Paths) == 0 || len(c.Args) == 0 || len(c.Paths) >= maxPaths {
		return fmt.Errorf("want 1 to %d candidates for the program and a name, got %d and %d", maxPaths-1, len(c.Paths), len(c.Args))
	}
	w := layout{arena: arena, next: int(unsafe.Sizeof(shared{}))}
	sh.flags = 0
	if c.Terminal != nil {
		sh.flags |= flagTerminal
		if c.Foreground {
			sh.flags |= flagForeground
		}
	}
	if c.Last {
		sh.flags |= flagLast
	}
	sh.dir = w.str(c.Dir)
	sh.paths = [maxPaths]uintptr{}
	for i, p := range c.Paths {
		sh.paths[i] = w.str(p)
	}
	sh.argv, sh.envv = w.strs(c.Args), w.strs(c.Env)
	return w.err
}

// layout writes C strings and arrays of them; addresses hold on both sides of
// the fork.
type layout struct {
	arena []byte
	next  int
	err   error
}

func (w *layout) take(n int) int {
	at := (w.next + 7) &^ 7
	if at+n > len(w.arena) {
		if w.err == nil {
			w.err = fmt.Errorf("arguments and environment are larger than %d bytes: %w", len(w.arena), unix.E2BIG)
		}
		return 0
	}
	w.next = at + n
	return at
}

func (w *layout) str(s string) uintptr {
	if strings.IndexByte(s, 0) >= 0 && w.err == nil {
		w.err = fmt.Errorf("%q holds a NUL byte", s)
	}
	at := w.take(len(s) + 1)
	if w.err != nil {
		return 0
	}
	copy(w.arena[at:], s)
	w.arena[at+len(s)] = 0
	return uintptr(unsafe.Pointer(&w.arena[at]))
}

func (w *layout) strs(list []string) uintptr {
	const word = int(unsafe.Sizeof(uintptr(0)))
	at := w.take((len(list) + 1) * word)
	if w.err != nil {
		return 0
	}
	array := unsafe.Slice((*uintptr)(unsafe.Pointer(&w.arena[at])), len(list)+1)
	for i, s := range list {
		array[i] = w.str(s)
	}
	array[len(list)] = 0
	return uintptr(unsafe.Pointer(&w.arena[at]))
}

func (in *Init) send(p packet, oob []byte) error {
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p))
	_, _, err := again(func() (int, int, error) {
		return 0, 0, unix.Sendmsg(in.sock, buf, oob, nil, unix.MSG_NOSIGNAL)
	})
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	return nil
}

// Signal sends sig to the process group pid of the namespace.
func (in *Init) Signal(pid int, sig unix.Signal) error {
	return in.send(packet{kind: kindSignal, pid: int32(pid), status: int32(sig)}, nil)
}

// Foreground makes pid the foreground process group of the terminal.
func (in *Init) Foreground(pid int) error {
	return in.send(packet{kind: kindForeground, pid: int32(pid)}, nil)
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
	unix.Close(in.sock)
	in.pidfd.Close()
	for _, f := range in.ready {
		f.Close()
	}
	in.ended = true
	discard(in.arena)
}
