package attach

import (
	"syscall"
	"time"
)

// A process is known by its pid here: between the look at the lock and the
// signal it may be another's, if all others were given away in between.
type process struct{ pid int }

func openProcess(pid int) (*process, error) {
	if pid <= 1 {
		return nil, syscall.ESRCH
	}
	return &process{pid}, syscall.Kill(pid, 0)
}

func (p *process) signal(sig syscall.Signal) error { return syscall.Kill(p.pid, sig) }

// wait reports whether the process ended in time.
func (p *process) wait(limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(p.pid, 0) != nil {
			return true
		}
	}
	return false
}

func (p *process) close() {}
