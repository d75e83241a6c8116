package executor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// lead is run for a command whose session somebody else leads. A command that
// led its own would be an orphaned process group, which no key of the terminal
// stops (setpgid(2), POSIX.1 11.1.4). The leader is a loop of system calls with
// nothing of this process but the socket over which it is told what to start.
func (j *jobs) lead(d *Do, stdio [3]*os.File) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID[d.ID] != nil || d.ID == 0 || d.Statement {
		return errors.New("the command is there already, or is a statement")
	}
	b := &job{id: d.ID, state: -1}
	if err := b.lead(d, stdio, j); err != nil {
		return j.failed(d, err)
	}
	go func() {
		<-b.leader.Done()
		j.over(b, uint32(unix.SIGKILL)) // of the leader, unless the command has ended before
		b.leader.Kill()
	}()
	return j.begun(b, d)
}

// lead makes the leader and has it start the command.
func (b *job) lead(d *Do, stdio [3]*os.File, j *jobs) error {
	program, err := find(d.Argv[0], d.Dir, pathOf(d.Env))
	if err != nil {
		return err
	}
	dir, err := enter(d.Dir)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	// A leader takes a thread of this process besides, for want of which that
	// would end: so see first whether there is room.
	if err := rawproc.Apart(&rawproc.Program{}); err != nil {
		return err
	}
	b.leader, err = rawproc.Start(rawproc.Config{Program: j.fence.program(append(d.Limits.rlimits(), j.limits...)), First: &rawproc.Command{
		Paths: []string{program}, Args: d.Argv, Env: d.Env, Dir: d.Dir, Stdio: stdio,
		Terminal: stdio[d.Control], Foreground: !d.Behind, Last: true, OnStatus: func(ws unix.WaitStatus) { j.ledChange(b, ws) },
	}})
	if err != nil {
		return err
	}
	b.led, err = b.leader.First()
	if errors.Is(err, rawproc.ErrEnded) {
		return nil // perhaps killed by its own commands: the command is over, and may have run
	}
	if err != nil {
		go b.leader.Kill() // this thread may signal only its own children
	}
	return err
}

// program lists the leader's steps before it starts the command: those that
// this process's own thread has taken already, and those of a limited command.
func (f fence) program(limits []Rlimit) *rawproc.Program {
	p := &rawproc.Program{}
	p.Call("new session", unix.SYS_SETSID)
	for _, l := range limits {
		v := l.Value
		var now unix.Rlimit
		if unix.Getrlimit(l.Resource, &now) == nil {
			v = min(v, now.Max)
		}
		p.Call("limit it", unix.SYS_PRLIMIT64, 0, l.Resource, rawproc.Put(p, unix.Rlimit{Cur: v, Max: v}), 0)
	}
	p.Call("no new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if f.ruleset >= 0 {
		p.Call("keep it from others", unix.SYS_LANDLOCK_RESTRICT_SELF, f.ruleset, 0)
	}
	prog := unix.SockFprog{Len: uint16(len(f.filter)), Filter: rawproc.Array(p, f.filter)}
	p.Call("guard the executor", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, rawproc.Put(p, prog))
	return p
}

// ledChange reports what becomes of a led command.
func (j *jobs) ledChange(b *job, ws unix.WaitStatus) {
	if ws.Stopped() {
		_ = j.send(&report{Changed: &changed{ID: b.id, Status: uint32(ws)}}) // if it fails there is no reader
		return
	}
	j.over(b, uint32(ws))
}

// over reports the end of a led command, once.
func (j *jobs) over(b *job, status uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID[b.id] != b {
		return
	}
	delete(j.byID, b.id)
	b.close()
	_ = j.send(&report{Changed: &changed{ID: b.id, Status: status}}) // as above
}

// foreground gives a led command its terminal's foreground.
func (j *jobs) foreground(id uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.byID[id]; b != nil && b.leader != nil {
		_ = b.leader.Foreground(b.led) // it may have ended
	}
}
