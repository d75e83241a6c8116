package rawproc

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Apart carries p out in a process of its own and returns when that has ended.
// The process shares the caller's memory and has copies of its credentials,
// descriptors and root. So it may enter a user namespace and a mount namespace,
// which a multi-threaded process may not (setns(2)). It errs with a *StepError
// if a step fails; p is used up.
func Apart(p *Program) error {
	steps, n := p.mem.step(0), p.Len()
	defer func() {
		_ = unix.Munmap(p.mem.all) // fails for what only stood in for a mapping
		p.mem = memory{}
	}()
	if p.mem.err != nil {
		return p.mem.err
	}
	sh := new(shared)
	pid, errno := runApart(steps, n, sh)
	if errno != 0 {
		return fmt.Errorf("fork: %w", errno)
	}
	ws := wait(int(pid))
	if i := int(sh.failed); i > 0 && i <= n {
		return &StepError{Index: i - 1, Step: p.names[i-1], Errno: unix.Errno(sh.errno)}
	}
	if !ws.Exited() || ws.ExitStatus() != 0 {
		return fmt.Errorf("a process that shares this one's memory ended early: wait status %#x", uint32(ws))
	}
	return nil
}

// runApart sleeps until the child has carried out its steps.
//
//go:noinline
//go:norace
//go:nocheckptr
func runApart(steps *step, n int, sh *shared) (pid uintptr, err syscall.Errno) {
	beforeFork() // all signals are blocked, in the child too
	var got forked
	stepsApart(steps, n, sh, &got)
	afterFork()
	return got.pid, syscall.Errno(got.errno)
}

// stepsApart runs on one stack in two processes, one after the other.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func stepsApart(steps *step, n int, sh *shared, got *forked) {
	pid, errno := vfork(unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD))
	if errno == 0 && pid == 0 {
		runSteps(steps, &n, sh, ^uintptr(0)) // without gates
		exit(0)
	}
	got.pid, got.errno = pid, errno
}
