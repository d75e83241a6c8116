package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// actors are the other things this program can be told to be. None runs for
// longer than actorTime.
func actors() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		"attempt":  attempt,
		"nothing":  func([]string) error { return nil },
		"append":   func(args []string) error { return exitWith(openAndWrite(args[0], unix.O_WRONLY|unix.O_APPEND)) },
		"whoami":   whoami,
		"loopback": func([]string) error { return exitWith(loopbackUp()) },
		"mount":    func([]string) error { return exitWith(unix.Mount("probe", "/proc", "tmpfs", 0, "")) },
		"idle":     idle,
		"linger":   linger,
		"orphan":   orphan,
		"memory":   memory,
		"swarm":    swarm,
		"flood":    flood,
		"litter":   litter,
		"spin":     spin,
	}
}

// actorTime ends whatever its sandbox failed to end.
const actorTime = 60 * time.Second

// exitWith ends the process with the errno as its status.
func exitWith(err error) error {
	var e errno
	if errors.As(err, &e) {
		os.Exit(int(e))
	}
	return err
}

// whoami exits with 0 if our effective user is not the one named.
func whoami(args []string) error {
	if args[0] == strconv.Itoa(os.Geteuid()) {
		os.Exit(int(unix.EPERM))
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// idle waits and prints a line for each signal that reaches it. It ends with
// its standard input, so that it never outlives a harness that was killed.
func idle([]string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGHUP, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGIO)
	fmt.Println("ready")
	for s := range signals {
		fmt.Println(s)
	}
	return nil
}

// linger stays, deaf to polite signals, and with "closed" without its
// standard descriptors.
func linger(args []string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	fmt.Println("ready")
	if len(args) > 1 && args[1] == "closed" {
		for fd := range 3 {
			unix.Close(fd)
		}
	}
	time.Sleep(actorTime)
	return nil
}

// orphan leaves a process in a session of its own behind, deaf and closed.
func orphan(args []string) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	fds := []uintptr{null.Fd(), null.Fd(), null.Fd()}
	_, err = syscall.ForkExec(self, []string{"victim", "linger", args[0], "closed"}, &syscall.ProcAttr{Files: fds, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return err
	}
	settle()
	return nil
}

// memory takes and touches MiB, a few at a time, and says how far it came.
func memory(args []string) error {
	most, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fmt.Println("began")
	const step = 16
	for have := 0; have < most; have += step {
		m, err := unix.Mmap(-1, 0, step<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			fmt.Printf("refused after %d MiB: %v\n", have, err)
			os.Exit(int(unix.ENOMEM))
		}
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
	}
	fmt.Println("took all")
	return nil
}

// swarm starts at most so many processes at once and says how many it got.
func swarm(args []string) error {
	most, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fmt.Println("began")
	var started []int
	defer func() {
		for _, pid := range started {
			syscall.Kill(pid, syscall.SIGKILL)
			syscall.Wait4(pid, nil, 0, nil)
		}
	}()
	for range most {
		pid, err := syscall.ForkExec(self, []string{"victim", "linger"}, &syscall.ProcAttr{})
		if err != nil {
			fmt.Printf("refused after %d: %v\n", len(started), err)
			return nil
		}
		started = append(started, pid)
	}
	fmt.Println("started all")
	return nil
}

// flood writes MiB to standard output.
func flood(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range n {
		if _, err := os.Stdout.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// spin works, deaf to polite signals.
func spin([]string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	for end := time.Now().Add(actorTime); time.Now().Before(end); {
	}
	return nil
}

// litter leaves things in the working directory on which careless programs of
// the host hang or fall.
func litter([]string) error {
	deep := "deep"
	for range 200 {
		deep += "/d"
	}
	long := make([]byte, 255)
	for i := range long {
		long[i] = 'a'
	}
	return errors.Join(
		unix.Mknod("fifo", unix.S_IFIFO|0o644, 0), os.Symlink("/dev/zero", "zero"), os.Symlink("/dev/tty", "tty"), os.Symlink("loop", "loop"),
		os.MkdirAll(deep, 0o755), os.WriteFile(string(long), nil, 0o644), os.WriteFile("line\nbreak\x1b[2J", nil, 0o644), os.WriteFile("-rf", nil, 0o644))
}
