package launch

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Limits of the record of a session's programs: a guest must fill neither the disk nor
// the memory of its host.
const (
	maxProgramBytes = 256 << 20 // of the audit log
	maxRunning      = 1 << 14   // processes of which the start is known
	maxProgramQueue = 4096      // events that wait; with more, programs wait as well
)

// A later records events that have happened, for which nothing waits: an
// audit.Share.
type later interface{ Later(bawn.Event) error }

// A programLog records the programs of a session (isolation.log_programs): file, words,
// directory, process and parent at the start, and the exit code at the end. Programs
// that were started before begin are recorded then.
type programLog struct {
	queue chan func(to later, base bawn.Event) error
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	running map[int]running // by process; of those that the supervisor watches
}

type running struct {
	file  string
	since time.Time
}

func newProgramLog() *programLog {
	return &programLog{
		queue: make(chan func(later, bawn.Event) error, maxProgramQueue), stop: make(chan struct{}), done: make(chan struct{}), running: map[int]running{},
	}
}

// put has an event recorded. After end it is dropped: nothing of the guest's is left.
func (l *programLog) put(e func(later, bawn.Event) error) {
	select {
	case l.queue <- e:
	case <-l.stop:
	}
}

func (l *programLog) started(p sandbox.Program) {
	now := time.Now()
	if p.PID > 0 {
		l.mu.Lock()
		if len(l.running) < maxRunning {
			l.running[p.PID] = running{p.Names[0], now}
		}
		l.mu.Unlock()
	}
	l.put(func(to later, e bawn.Event) error {
		e.Time, e.Operation, e.Resource, e.Dir = now, bawn.Exec.String(), p.Names[0], p.Dir
		e.Args = redact.Args(append([]string{p.Names[len(p.Names)-1]}, p.Args...))
		e.Details = map[string]string{"pid": strconv.Itoa(p.PID), "parent": strconv.Itoa(p.Parent)}
		return to.Later(e)
	})
}

func (l *programLog) ended(pid int, code *int) {
	now := time.Now()
	l.mu.Lock()
	was := l.running[pid]
	delete(l.running, pid)
	l.mu.Unlock()
	l.put(func(to later, e bawn.Event) error {
		e.Time, e.Operation, e.Resource, e.Exit = now, "end", was.file, code
		e.DurationMS, e.Details = now.Sub(was.since).Milliseconds(), map[string]string{"pid": strconv.Itoa(pid)}
		return to.Later(e)
	})
}

// begin records until end. The session's own log says once that further ones
// are not recorded.
func (l *programLog) begin(s *runner.Session, to later) {
	if l == nil {
		return
	}
	base := bawn.Event{
		Session: s.ID, Parent: s.Parent, Agent: s.Agent, Provider: s.Plan.Provider(), Mode: s.Mode, Kind: bawn.Command.String(),
		Requested: bawn.Allow, Resolved: bawn.Allow, Source: "auto", Rule: ruleProgram,
	}
	go func() {
		defer close(l.done)
		for full := false; ; {
			select {
			case e := <-l.queue:
				full = full || l.write(s, e, to, base)
			case <-l.stop:
				for len(l.queue) > 0 {
					e := <-l.queue
					full = full || l.write(s, e, to, base)
				}
				return
			}
		}
	}()
}

// write records one event, and reports whether no further one can be.
func (l *programLog) write(s *runner.Session, e func(later, bawn.Event) error, to later, base bawn.Event) (full bool) {
	err := e(to, base)
	if err == nil {
		return false
	}
	base.Time, base.Operation, base.Resource = time.Now(), bawn.Exec.String(), "further programs"
	base.Reason = "programs that start from now on are not recorded: " + err.Error()
	_ = s.Guard.Recorder.Record(context.Background(), base) // a reader of the log sees where they end
	return true
}

// ruleProgram marks events of programs that no rule has decided about.
const ruleProgram = "builtin:program"

// end records what waits. The guest has ended.
func (l *programLog) end() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}
