package bwrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sealed"
)

// A process is a running bwrap and the sandbox's first process.
type process struct {
	cmd   *exec.Cmd
	first *os.File      // pidfd of the sandbox's first process
	pid   int           // of that, while first holds it
	done  chan struct{} // closed when bwrap has ended
	said  tail          // what it and the first process wrote to descriptors 1 and 2
	once  sync.Once
}

// launch starts the bwrap at program for p, with control as the first process'
// descriptor 0. The files of p's sources are opened and compared with what the plan
// saw. The opened files are mounted, not whatever has their names by then. ctx
// bounds how long bwrap may take to make a process.
func launch(ctx context.Context, program string, p *Plan, control *os.File) (*process, error) {
	files, err := p.open()
	defer closeAll(files)
	if err != nil {
		return nil, err
	}
	words, err := argumentFile(p.bytes())
	if err != nil {
		return nil, err
	}
	defer words.Close()
	info, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer info.Close()
	r := &process{done: make(chan struct{})}
	r.cmd = &exec.Cmd{
		Path: program, Args: append([]string{Name, "--args", strconv.Itoa(argsFD), "--info-fd", strconv.Itoa(infoFD), "--"}, p.Command...), Env: []string{}, Dir: "/",
		Stdin: control, Stdout: &r.said, Stderr: &r.said, ExtraFiles: append([]*os.File{words, theirs}, files...), WaitDelay: time.Second,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no key of the user's terminal is for it
	}
	err = r.start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	if r.first, r.pid, err = firstProcess(ctx, info, r.cmd.Process.Pid); err != nil {
		return nil, errors.Join(r.why(err), r.end())
	}
	return r, nil
}

// start starts bwrap on a thread that lives as long as it does: what
// --die-with-parent waits for is the end of the thread (PR_SET_PDEATHSIG).
func (r *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks: nothing else may end this thread
		// bwrap hands on whatever it has open, also what our parent left open to us.
		err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
		if err == nil {
			err = r.cmd.Start()
		}
		started <- err
		if err == nil {
			_ = r.cmd.Wait() // how it ended is nobody's interest
			close(r.done)
		}
	}()
	return <-started
}

// why adds bwrap's own message to err, if bwrap has ended. The first process' own error
// says more than that.
func (r *process) why(err error) error {
	var step *inside.StepError
	if errors.As(err, &step) {
		return err
	}
	select {
	case <-r.done:
	case <-time.After(100 * time.Millisecond):
	}
	if text := r.said.String(); text != "" {
		return errors.New(text)
	}
	return err
}

// firstProcess reads which process bwrap has made and returns its pidfd and
// PID.
func firstProcess(ctx context.Context, info *os.File, parent int) (*os.File, int, error) {
	stop := context.AfterFunc(ctx, func() { _ = info.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var said struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(io.LimitReader(info, 4096)).Decode(&said); err != nil {
		return nil, 0, fmt.Errorf("bwrap does not say which process it has made: %w", err)
	}
	fd, err := unix.PidfdOpen(said.PID, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("the sandbox's first process: %w", err)
	}
	if of, err := parentOf(said.PID); err != nil || of != parent {
		return nil, 0, errors.Join(fmt.Errorf("process %d is not the one that bwrap has made: its parent is %d", said.PID, of), err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "first process"), said.PID, nil
}

// parentOf reads the parent of a process (proc_pid_stat(5)).
func parentOf(pid int) (int, error) {
	text, err := cgroup.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d has no parent", pid)
	}
	return strconv.Atoi(fields[1])
}

// How long killed processes may take to be gone, and bwrap to end by itself.
const (
	closePatience = 5 * time.Second
	reapPatience  = time.Second
)

// kill ends every process of the sandbox and does not wait for it. Those in a PID
// namespace die with its first (pid_namespaces(7)); bwrap then reaps that one and
// ends by itself.
func (r *process) kill() {
	if r.first == nil {
		_ = r.cmd.Process.Kill()
		return
	}
	_ = unix.PidfdSendSignal(int(r.first.Fd()), unix.SIGKILL, nil, 0) // it may be gone
}

// end is kill, and returns when all have ended or that takes more than 5 s.
func (r *process) end() (err error) {
	r.once.Do(func() {
		r.kill()
		if r.first != nil {
			err = inside.Gone(int(r.first.Fd()))
			r.first.Close()
		}
		select {
		case <-r.done:
			return
		case <-time.After(reapPatience):
		}
		_ = r.cmd.Process.Kill()
		select {
		case <-r.done:
		case <-time.After(closePatience):
			err = errors.Join(err, errors.New("bwrap was killed and is still there"))
		}
	})
	return err
}

// open opens what bwrap is to mount, and errs where a place is not the one that
// the plan saw, or a target is not there.
func (p *Plan) open() (files []*os.File, err error) {
	paths := make([]string, len(p.sources))
	for i, s := range p.sources {
		paths[i] = s.path
	}
	defer sealed.Ahead(paths)()
	for _, s := range p.sources {
		f, err := s.open()
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (s source) open() (*os.File, error) {
	if s.path == "" {
		return os.Open(os.DevNull) // reads as an empty file
	}
	f, err := s.reach()
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if s.id != (layout.Identity{}) && s.id != (layout.Identity{Dev: st.Dev, Ino: st.Ino}) {
		return nil, errors.Join(&changedError{s.path}, f.Close())
	}
	return f, nil
}

func (s source) reach() (*os.File, error) {
	if s.path != self {
		return sealed.Reach(s.path)
	}
	// A link to the program that runs, whatever lies at its path by now.
	fd, err := unix.Open(self, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: self, Err: err}
	}
	return os.NewFile(uintptr(fd), self), nil
}

// A changedError says that a place was exchanged.
type changedError struct{ path string }

func (e *changedError) Error() string {
	return fmt.Sprintf("%q was exchanged while the session started", e.path)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// bytes is how the words are handed over: each ends with a zero byte.
func (p *Plan) bytes() []byte {
	var b []byte
	for _, w := range p.Words {
		b = append(append(b, w...), 0)
	}
	return b
}

// argumentFile holds bwrap's words.
func argumentFile(words []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("bwrap words", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file for bwrap's words: %w", err)
	}
	f := os.NewFile(uintptr(fd), "bwrap words")
	if _, err = f.Write(words); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// A tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailSize is how much of it, in bytes.
const tailSize = 4096

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(b), nil
}

// String returns it without the space around it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
