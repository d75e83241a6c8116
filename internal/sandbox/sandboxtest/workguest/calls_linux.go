package main

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadName lies where the collector never moves it.
var threadName = [16]byte{'w', 'o', 'r', 'k'}

// calls makes system calls that ordinary runtimes make. Each of them must
// exist, or give the same error as without a sandbox.
func calls([]string) {
	write("f", "copied by the kernel")
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"memfd_create", discard(func() (int, error) { return unix.MemfdCreate("m", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING) })},
		{"eventfd", discard(func() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC) })},
		{"timerfd_create", discard(func() (int, error) { return unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC) })},
		{"signalfd", discard(func() (int, error) { return unix.Signalfd(-1, new(unix.Sigset_t), unix.SFD_CLOEXEC) })},
		{"epoll_create1", discard(func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) })},
		{"getrandom", func() error { _, err := unix.Getrandom(make([]byte, 16), 0); return err }},
		{"sched_getaffinity", func() error { return unix.SchedGetaffinity(0, new(unix.CPUSet)) }},
		{"sched_yield", raw(unix.SYS_SCHED_YIELD, 0, 0, 0)},
		{"mlock", func() error { return unix.Mlock(make([]byte, 4096)) }},
		{"membarrier", func() error { _, _, e := unix.Syscall(unix.SYS_MEMBARRIER, 0, 0, 0); return fail(e) }},
		{"prlimit", func() error { return unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)) }},
		{"getpriority", func() error { _, err := unix.Getpriority(unix.PRIO_PROCESS, 0); return err }},
		{"setpriority", func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 19) }}, // however low it is,
		{"prctl of a name", func() error { return unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&threadName)), 0, 0, 0) }},
		{"prctl of a subreaper", func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }},
		{"prctl of the parent's death", func() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }},
		{"close_range", func() error { return unix.CloseRange(500, 600, 0) }},
		{"sysinfo", func() error { return unix.Sysinfo(new(unix.Sysinfo_t)) }},
		{"uname", func() error { return unix.Uname(new(unix.Utsname)) }},
		{"shmget", raw(unix.SYS_SHMGET, 0, 4096, 0o1600)},
		{"semget", raw(unix.SYS_SEMGET, 0, 1, 0o1600)},
		{"msgget", raw(unix.SYS_MSGGET, 0, 0o1600, 0)},
		{"flistxattr", func() error { _, err := unix.Listxattr("f", nil); return err }},
		{"copy_file_range", copyRange},
		{"sendfile", sendFile},
		{"splice", splicing},
		{"pidfd", pidfd},
		{"waitid", func() error { return unix.Waitid(unix.P_ALL, 0, nil, unix.WNOHANG|unix.WEXITED, nil) }},
		{"a call nobody knows", raw(4000, 0, 0, 0)},
	} {
		say(c.name, c.call())
	}
	fmt.Println("time goes on:", time.Now().Year() > 2000)
}

func discard(f func() (int, error)) func() error {
	return func() error {
		fd, err := f()
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
}

func raw(trap, a, b, c uintptr) func() error {
	return func() error {
		_, _, e := unix.Syscall(trap, a, b, c)
		return fail(e)
	}
}

// fromTo opens f and a new file.
func fromTo(to string) (in, out *os.File) {
	in, err := os.Open("f")
	must(err)
	out, err = os.Create(to)
	must(err)
	return in, out
}

func copyRange() error {
	in, out := fromTo("copy")
	n, err := unix.CopyFileRange(int(in.Fd()), nil, int(out.Fd()), nil, 100, 0)
	fmt.Println("copied", n)
	return err
}

func sendFile() error {
	in, out := fromTo("sent")
	n, err := unix.Sendfile(int(out.Fd()), int(in.Fd()), nil, 100)
	fmt.Println("sent", n)
	return err
}

func splicing() error {
	in, out := fromTo("spliced")
	var p [2]int
	must(unix.Pipe2(p[:], unix.O_CLOEXEC))
	n, err := unix.Splice(int(in.Fd()), nil, p[1], nil, 100, 0)
	must(err)
	_, err = unix.Splice(p[0], nil, int(out.Fd()), nil, int(n), 0)
	fmt.Println("spliced", n)
	return err
}

// pidfd ends a child through a descriptor.
func pidfd() error {
	cmd := self("child", "sleep")
	must(cmd.Start())
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	must(err)
	must(unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0))
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, err = unix.Poll(poll, 5000)
	must(err)
	fmt.Println(cmd.Wait())
	return nil
}
