package rawproc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Command is the command of a request.
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
		return 0, ErrEnded
	}
	if err := in.request(c); err != nil {
		return 0, err
	}
	return in.answer(c)
}

// Ask asks for the first command, where Config named none. It need not wait for
// the program.
func (in *Init) Ask(c Command) error {
	in.start.Lock()
	defer in.start.Unlock()
	if in.ended {
		return ErrEnded
	}
	in.cfg.First = &c
	return in.request(c)
}

// First waits for the command that Config or Ask named and returns what Run
// would. It is called once, before Run.
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
		return 0, ErrEnded
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

// ErrEnded says that PID 1 has ended, and everything in its sandbox with it. The
// request may have been carried out before.
var ErrEnded = errors.New("the sandbox has ended")

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
	sh.argv, sh.envv, sh.mark = w.strs(c.Args), w.strs(c.Env), uintptr(Mark())
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
