package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// Descriptors of the launcher besides its control socket, which is 0.
const (
	wireFD   = 3 // of the guest's first process
	groupsFD = 4 // the first of the groups' cgroup.procs
)

// A launcher is the first process of the namespaces of a sandbox.
type launcher struct {
	conn *ipc.Conn
	wire *os.File
	out  tail
}

// Main is the launcher. control is its standard input. It ends when runsc does,
// or when the host closes the socket; as the first process of a PID namespace it
// takes every process of the sandbox along.
func Main(control *os.File) int {
	unix.CloseOnExec(int(control.Fd()))
	unix.CloseOnExec(wireFD)
	conn, err := ipc.New(control, intent.Limits)
	if err != nil {
		return 1
	}
	l := &launcher{conn: conn, wire: os.NewFile(wireFD, "wire")}
	var o order
	if _, err := conn.Receive(&o); err != nil || o.Launch == nil {
		return 1
	}
	over := make(chan int, 1)
	if err := l.launch(o.Launch, over); err != nil {
		_ = conn.Send(&report{Failed: failed(err)}) // nobody else to tell
		return 1
	}
	go l.serve()
	status := <-over
	_ = conn.Send(&report{Ended: &ended{Status: status, Text: l.out.String()}})
	return 0
}

// failed is err as the host is told it.
func failed(err error) *step {
	var s *stepError
	if !errors.As(err, &s) {
		s = &stepError{"make the sandbox", err}
	}
	var errno syscall.Errno
	errors.As(s.err, &errno)
	return &step{Name: s.name, Why: s.err.Error(), Errno: int(errno)}
}

type stepError struct {
	name string
	err  error
}

func (e *stepError) Error() string { return e.name + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

func at(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

// launch makes the sandbox, and starts runsc in it.
func (l *launcher) launch(a *launch, over chan<- int) error {
	for i := range a.Groups {
		f := os.NewFile(uintptr(groupsFD+i), "cgroup.procs")
		_, err := f.WriteString("0") // the writing process
		if err = errors.Join(err, f.Close()); err != nil {
			return at("join a control group", err)
		}
	}
	if n := uint64(a.Processes); n > 0 {
		var have unix.Rlimit
		err := unix.Getrlimit(unix.RLIMIT_NPROC, &have)
		if n = min(n, have.Max); err == nil {
			err = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
		}
		if err != nil {
			return at("limit processes", err)
		}
	}
	runsc, err := assemble(a)
	if err != nil {
		return err
	}
	text, err := json.Marshal(a.Config)
	if err == nil {
		err = os.WriteFile(bundle+"/config.json", text, 0o600)
	}
	if err != nil {
		return at("write the bundle", err)
	}
	return onOwnThread(func() error { return l.start(a, runsc, over) })
}

// onOwnThread calls f on a thread that nothing else uses, that ends with it, and
// that is not the process' first: the namespaces of that one are the process'.
func onOwnThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // permanently: changes to the thread are not undone
		if unix.Gettid() == unix.Getpid() {
			result <- onOwnThread(f)
			return
		}
		result <- f()
	}()
	return <-result
}

// start makes the network, from a thread that is in the guest's namespace from
// then on and ends with this, and starts runsc there.
func (l *launcher) start(a *launch, runsc string, over chan<- int) error {
	if a.Gateway != nil {
		files, err := a.Gateway.set()
		if err != nil {
			return at("network", err)
		}
		if err := l.hand(files); err != nil {
			return at("hand out the network", err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return at("make a pipe", err)
	}
	cmd := exec.Command(runsc, append(a.Flags, "run", "--bundle="+bundle, "bawn")...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + scratch}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.wire, w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, AmbientCaps: allCapabilities()}
	if err := cmd.Start(); err != nil {
		return at("start runsc", err)
	}
	w.Close()
	l.wire.Close()
	if err := l.conn.Send(&report{Started: true}); err != nil {
		return at("say that runsc was started", err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&l.out, r) // as much as there is
		close(read)
	}()
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		<-read
		over <- cmd.ProcessState.ExitCode()
	}()
	return nil
}

// allCapabilities are those of the launcher's user namespace, which runsc gets
// although it does not run as its root.
func allCapabilities() []uintptr {
	var list []uintptr
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if has, err := unix.PrctlRetInt(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET, c, 0, 0); err == nil && has == 1 {
			list = append(list, c)
		}
	}
	return list
}

// hand hands sockets out, as many at a time as a message carries.
func (l *launcher) hand(files []*os.File) error {
	for len(files) > 0 {
		n := min(len(files), intent.MaxFiles)
		if err := l.conn.Send(&report{Sockets: n}, files[:n]...); err != nil {
			return err
		}
		for _, f := range files[:n] {
			f.Close()
		}
		files = files[n:]
	}
	return nil
}

// serve makes sockets of the gateway's until the host is gone, and everything
// ends then.
func (l *launcher) serve() {
	for {
		var o order
		if _, err := l.conn.Receive(&o); err != nil || o.Socket == 0 {
			os.Exit(0)
		}
		fd, err := unix.Socket(o.Socket, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			_ = l.conn.Send(&report{Failed: failed(at("make a socket", err))})
			continue
		}
		f := os.NewFile(uintptr(fd), "socket")
		_ = l.conn.Send(&report{Socket: true}, f)
		f.Close()
	}
}

// A tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much of runsc's output is kept, in bytes.
const maxTail = 4 << 10

// Write keeps the last of what there is.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text) - maxTail; n > 0 {
		t.text = append([]byte(nil), t.text[n:]...)
	}
	return len(b), nil
}

// String returns it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// fdPath names an open file, also for a program that is started.
func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
