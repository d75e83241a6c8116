package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// killAfter is how long a command that ran out of time has to end by itself.
const killAfter = 2 * time.Second

// A job is a command that was started and has not been reaped.
type job struct {
	id    uint64
	pid   int // and its process group, and its session
	state int // memfd of a statement, or -1
	timer *time.Timer
	// leader leads the session of a led command, whose number among its commands
	// is led; nil for others, which are children of this process.
	leader *rawproc.Init
	led    int
}

// jobs are the children. The lock is held while a child is made or reaped. So
// no status is lost, and no signal goes to a reused PID.
type jobs struct {
	send    func(*report) error
	started chan struct{} // there are children to wait for
	limits  []Rlimit      // of every command
	fence   fence         // for commands that another thread starts

	mu    sync.Mutex
	byPID map[int]*job
	byID  map[uint64]*job
}

func (j *jobs) init(send func(*report) error) {
	j.send, j.started = send, make(chan struct{}, 1)
	j.byPID, j.byID = map[int]*job{}, map[uint64]*job{}
	go j.reap()
}

// run starts a command and reports it. It returns an error if the report can't
// be made.
func (j *jobs) run(d *Do, stdio []uintptr) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID[d.ID] != nil || d.ID == 0 {
		return fmt.Errorf("command %d is there already", d.ID)
	}
	b := &job{id: d.ID, state: -1}
	if err := b.start(d, stdio, j.limits); err != nil {
		b.close()
		return j.failed(d, err)
	}
	j.byPID[b.pid] = b
	return j.begun(b, d)
}

// begun reports a command that runs.
func (j *jobs) begun(b *job, d *Do) error {
	j.byID[b.id] = b
	if d.Limits.Timeout > 0 {
		b.timer = time.AfterFunc(d.Limits.Timeout, func() { j.expire(b) })
	}
	select {
	case j.started <- struct{}{}:
	default:
	}
	return j.send(&report{Started: b.id})
}

// failed reports a command that could not be started.
func (j *jobs) failed(d *Do, err error) error {
	return j.send(&report{Refused: &refused{ID: d.ID, Rule: RuleStart, Why: why(d, err), Errno: int(errnoOf(err))}})
}

// expire ends a command whose time is over.
func (j *jobs) expire(b *job) {
	j.signal(b.id, unix.SIGTERM)
	j.signal(b.id, unix.SIGCONT)
	time.Sleep(killAfter)
	j.signal(b.id, unix.SIGKILL)
}

// signal signals a command's process group, while there is one.
func (j *jobs) signal(id uint64, sig syscall.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.byID[id]
	switch {
	case b == nil:
	case b.leader != nil:
		_ = b.leader.Signal(b.led, sig) // it may have ended
	default:
		_ = syscall.Kill(-b.pid, sig) // it may have become a zombie
	}
}

// reap reports what becomes of the children, those that were adopted too.
func (j *jobs) reap() {
	for {
		pid, err := nextChange()
		if errors.Is(err, unix.ECHILD) {
			<-j.started
			continue
		}
		if err == nil {
			j.take(pid)
		}
	}
}

// nextChange waits until a child has something to report, which it goes on
// having.
func nextChange() (int, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return childOf(&info), err
		}
	}
}

// take fetches one child's report and hands it on. It hands on no report if the
// child was stopped to be given its limits.
func (j *jobs) take(pid int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ws unix.WaitStatus
	got, err := unix.Wait4(pid, &ws, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
	b := j.byPID[got]
	if err != nil || b == nil {
		return
	}
	r := &changed{ID: b.id, Status: uint32(ws)}
	if ws.Exited() || ws.Signaled() {
		delete(j.byPID, b.pid)
		delete(j.byID, b.id)
		b.report(r)
		b.close()
	}
	_ = j.send(&report{Changed: r}) // if it fails there is no reader
}

func (b *job) close() {
	if b.timer != nil {
		b.timer.Stop()
	}
	if b.state >= 0 {
		_ = unix.Close(b.state) // it is memory
	}
}

// end kills every command that has not ended, down to the last orphan: those
// become our children.
func (j *jobs) end() {
	for range 2000 {
		children := ownChildren()
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if len(children) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// ownChildren lists this process' children.
func ownChildren() []int {
	var all []int
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has gone; its children are another's
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
