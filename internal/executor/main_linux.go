package executor

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// A program is the executor's own process. Everything that the host says is
// done by one thread, one thing after another; a second one reaps.
type program struct {
	conn     *ipc.Conn
	null     *os.File // /dev/null
	jobs     jobs
	now      func() time.Time
	verifier *ticket.Verifier // nil before Start
	session  string
	plan     [32]byte
}

// Main is the executor. It serves control, the standard input of its program,
// until the host closes its end; then it kills every command that still runs,
// and returns the exit code. It must be alone in its process.
func Main(control *os.File) int {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return ended(err)
	}
	return Serve(control, null, nil)
}

// Serve is Main for a program that has made a zone itself. null is /dev/null,
// open for reading and writing, in case the program can't open it any more.
// limits apply to every command and not to the executor, which some of them
// would end.
func Serve(control, null *os.File, limits []Rlimit) int {
	debug.SetGCPercent(400) // the heap is small, and a collection stands between a ticket and its command
	p, err := newProgram(control, null)
	if err == nil {
		p.jobs.limits = limits
		err = onOwnThread(p.serve)
		p.jobs.end()
	}
	return ended(err)
}

// ended is the exit code after err.
func ended(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bawn: the executor ends:", err)
	return 1
}

// newProgram takes the control socket out of the way of commands, to a
// descriptor above 2 that is closed on exec.
func newProgram(control, null *os.File) (*program, error) {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil { // whatever was left open before
		return nil, fmt.Errorf("close descriptors on exec: %w", err)
	}
	fd, err := unix.FcntlInt(control.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the control socket: %w", err)
	}
	if err := unix.Dup3(int(null.Fd()), int(control.Fd()), unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("close the control socket's first descriptor: %w", err)
	}
	// A blocking read wakes this thread directly; the poller would wake another
	// one first.
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	conn, err := ipc.New(os.NewFile(uintptr(fd), "control"), intent.Limits)
	if err != nil {
		return nil, err
	}
	p := &program{conn: conn, null: null, now: time.Now}
	p.jobs.init(func(r *report) error { return p.send(r) })
	return p, nil
}

// onOwnThread calls f on a thread that nothing else uses and that is not the
// process' first: a signal to the process is checked against the first thread.
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

// serve obeys the host until it has gone. It returns an error where the host
// says what makes no sense, or the process could not be made safe.
func (p *program) serve() error {
	for {
		var o order
		files, err := p.conn.Receive(&o)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err == nil {
			err = p.obey(&o, files)
		}
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			return err
		}
	}
}

func (p *program) obey(o *order, files []*os.File) error {
	if want := o.files(); len(files) != want {
		return fmt.Errorf("%d files came with an order; want %d", len(files), want)
	}
	switch {
	case o.Start != nil:
		return p.start(o.Start)
	case o.Trust != nil && p.verifier == nil:
		return errors.New("keys came before the start")
	case o.Trust != nil:
		p.verifier.Trust(o.Trust)
	case o.Do != nil && (o.Do.Control < 0 || o.Do.Control > 2):
		return fmt.Errorf("descriptor %d is to be a terminal; want 0, 1 or 2", o.Do.Control)
	case o.Do != nil:
		o.Do.Limits.Timeout = o.Do.Timeout
		return p.do(&o.Do.Do, files)
	case o.Signal != nil:
		p.jobs.signal(o.Signal.ID, syscall.Signal(o.Signal.Signal))
	case o.Foreground != 0:
		p.jobs.foreground(o.Foreground)
	case o.Socket != 0:
		return p.socket(o.Socket)
	}
	return nil
}

// socket makes a TCP socket in this process' network namespace and hands it
// over: with it the host reaches what listens on the zone's own loopback.
func (p *program) socket(family int) error {
	if family != unix.AF_INET && family != unix.AF_INET6 {
		return p.send(&report{Socket: &made{int(unix.EAFNOSUPPORT)}})
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p.send(&report{Socket: &made{int(errnoOf(err))}})
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return p.send(&report{Socket: &made{}}, f)
}

func (o *order) files() int {
	if o.Do == nil {
		return 0
	}
	return o.Do.files()
}

func (p *program) start(s *Start) error {
	if p.verifier != nil {
		return errors.New("the executor was started twice")
	}
	ready, err := p.standApart()
	if err != nil {
		return err
	}
	p.session, p.plan = s.Session, s.Plan
	p.verifier = ticket.NewVerifier(p.now, s.Keys...)
	if err := p.send(&report{Ready: &ready}); err != nil {
		return err
	}
	keepThreads()
	return nil
}

// spareThreads are as many as have been seen to be busy at a time, and a few.
const spareThreads = 8

// keepThreads has the runtime make threads, which it keeps, and returns when
// they are there, before the first command is read. Commands can use up the processes of
// the zone's control group, and a runtime that needs a thread and can't have one ends its
// program.
func keepThreads() {
	runtime.LockOSThread() // so that the spare threads come on top of this one
	defer runtime.UnlockOSThread()
	var all sync.WaitGroup
	all.Add(spareThreads)
	for range spareThreads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait() // each keeps its own until all have one
		}()
	}
	all.Wait()
}

func (p *program) send(r *report, files ...*os.File) error {
	err := p.conn.Send(r, files...)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil // the end of the orders follows
	}
	return err
}

// do starts one command if its ticket says so.
func (p *program) do(d *Do, files []*os.File) error {
	if r := p.permit(d); r != nil {
		r.ID = d.ID
		return p.send(&report{Refused: r})
	}
	all := p.stdio(d, files)
	if d.Terminal && d.Led {
		return p.jobs.lead(d, all)
	}
	fds, err := descriptors(all)
	if err != nil {
		return err
	}
	return p.jobs.run(d, fds)
}

// permit returns why the command must not run, or nil. A permission is used up
// by asking.
func (p *program) permit(d *Do) *refused {
	if p.verifier == nil {
		return &refused{Rule: RuleEarly, Why: "the executor was told no key to trust"}
	}
	digest, err := d.Digest(p.session, p.plan)
	if err != nil {
		return &refused{Rule: RuleMeaning, Why: err.Error()}
	}
	if err := d.Limits.enforceable(); err != nil {
		return &refused{Rule: RuleLimits, Why: err.Error()}
	}
	if _, err := p.verifier.Redeem(d.Ticket, p.session, digest); err != nil {
		return refusedBy(err)
	}
	return nil
}

func refusedBy(err error) *refused {
	var no *ticket.RefusedError
	if errors.As(err, &no) {
		return &refused{Rule: string(no.Rule), Why: no.Why}
	}
	return &refused{Rule: RuleMeaning, Why: err.Error()}
}

// stdio returns the command's files 0 to 2.
func (p *program) stdio(d *Do, files []*os.File) (all [3]*os.File) {
	for i, along := range d.Stdio {
		all[i] = p.null
		if along {
			all[i], files = files[0], files[1:]
		}
	}
	return all
}

func descriptors(files [3]*os.File) ([]uintptr, error) {
	fds := make([]uintptr, 3, 4)
	for i, f := range files {
		raw, err := f.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds[i] = fd }) // File.Fd would make what others share block
		}
		if err != nil {
			return nil, err
		}
	}
	return fds, nil
}

// enforceable returns an error for a limit that can't be set on one command.
func (l Limits) enforceable() error {
	l.OpenFiles, l.FileSizeMB, l.Timeout = 0, 0, 0
	if l != (Limits{}) {
		return errors.New("a limit other than open files, file size and time is stated, which holds for the zone and not for a command")
	}
	return nil
}

// files is how many descriptors travel along.
func (d *Do) files() int {
	n := 0
	for _, open := range d.Stdio {
		if open {
			n++
		}
	}
	return n
}
