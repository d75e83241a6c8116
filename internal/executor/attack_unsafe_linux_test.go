package executor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// An attack is made by a command on a process. It returns nil if it got
// through.
type attack func(pid int, threads []int) error

// raw makes a system call.
func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// each tries f on every thread and succeeds if one of them falls.
func each(threads []int, f func(tid int) error) error {
	var all []error
	for _, tid := range threads {
		err := f(tid)
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func kill(sig unix.Signal) attack {
	return func(pid int, _ []int) error { return unix.Kill(pid, sig) }
}

// queued is a siginfo_t as sigqueue(3) would send it.
func queued() unsafe.Pointer {
	info := new([128]byte)
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	return unsafe.Pointer(info)
}

const sigKill = uintptr(unix.SIGKILL)

// attacks are the ways by which one process ends, stops, reads or changes
// another of its user.
// nobody is a user of whom no process is.
const nobody = 3999999999 - 1<<31

var attacks = map[string]attack{
	"SIGKILL": kill(unix.SIGKILL),
	"SIGSTOP": kill(unix.SIGSTOP),
	"SIGTERM": kill(unix.SIGTERM),
	"a signal to a thread": func(pid int, threads []int) error {
		return each(threads, func(tid int) error { return raw(unix.SYS_TGKILL, uintptr(pid), uintptr(tid), sigKill) })
	},
	"a signal to a thread, the old way": func(_ int, threads []int) error {
		return each(threads, func(tid int) error { return raw(unix.SYS_TKILL, uintptr(tid), sigKill) })
	},
	"a signal with a value": func(pid int, _ []int) error {
		return raw(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), sigKill, uintptr(queued()))
	},
	"a signal with a value, to a thread": func(pid int, threads []int) error {
		return each(threads, func(tid int) error {
			return raw(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(tid), sigKill, uintptr(queued()))
		})
	},
	"a signal through a descriptor": func(pid int, _ []int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	},
	"a signal through a thread's descriptor": func(_ int, threads []int) error {
		return each(threads, func(tid int) error {
			fd, err := unix.PidfdOpen(tid, pidfdThread)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		})
	},
	"a signal that a pipe sends": func(_ int, threads []int) error {
		return each(threads, signalFromPipe)
	},
	"a limit": func(_ int, threads []int) error {
		return each(threads, func(tid int) error {
			return unix.Prlimit(tid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: 0}, nil)
		})
	},
	"a lower priority": func(pid int, _ []int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
	"a lower priority for all of a user": func(int, []int) error {
		if err := unix.Setpriority(unix.PRIO_USER, nobody, 19); !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil // it was looked for
	},
	"a lower priority at the disk": func(pid int, _ []int) error { return raw(unix.SYS_IOPRIO_SET, ioprioProcess, uintptr(pid), 3<<13) },
	"the idle class": func(pid int, _ []int) error {
		return raw(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), unix.SCHED_IDLE, uintptr(unsafe.Pointer(new(int32))))
	},
	"one processor": func(pid int, _ []int) error {
		var now unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &now); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &now)
	},
	"tracing": func(pid int, _ []int) error {
		runtime.LockOSThread()
		return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid))
	},
	"tracing a thread without stopping it": func(_ int, threads []int) error {
		runtime.LockOSThread()
		return each(threads, func(tid int) error { return raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid)) })
	},
	"its memory": func(pid int, _ []int) error {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
		f.Close()
		return err
	},
	"its memory, copied": func(pid int, _ []int) error {
		local, remote := make([]byte, 8), unix.RemoteIovec{Base: uintptr(unsafe.Pointer(new(int))), Len: 8}
		_, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{remote}, 0)
		if errors.Is(err, unix.EFAULT) {
			return nil // it was looked for
		}
		return err
	},
	"its environment": func(pid int, _ []int) error {
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err
	},
	"where its descriptors lead": func(pid int, _ []int) error {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
		return err
	},
	"its descriptors, opened again": func(pid int, threads []int) error {
		var all []error
		for _, tid := range append(threads, pid) {
			for fd := range 20 {
				f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", tid, fd), os.O_RDWR, 0)
				f.Close()
				if err == nil || errors.Is(err, unix.ENXIO) { // a socket can't be opened, but was found
					return nil
				}
				all = append(all, err)
			}
		}
		return errors.Join(all...)
	},
	"its descriptors, taken": func(pid int, _ []int) error {
		p, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		var all []error
		for fd := range 20 {
			_, err := unix.PidfdGetfd(p, fd, 0)
			if err == nil {
				return nil
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	},
}

// signalFromPipe makes a pipe send SIGKILL to a thread when something can be
// read (F_SETOWN_EX and F_SETSIG in fcntl(2)).
func signalFromPipe(tid int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	owner := struct{ kind, id int32 }{0, int32(tid)} // F_OWNER_TID
	fd := r.Fd()
	if err := raw(unix.SYS_FCNTL, fd, unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner))); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, unix.O_ASYNC); err != nil {
		return err
	}
	_, err = w.Write([]byte("x"))
	for range 100 { // who is killed takes a moment
		if tasks, _ := filepath.Glob(fmt.Sprintf("/proc/[0-9]*/task/%d", tid)); err != nil || len(tasks) == 0 || zombie(tid) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the thread lives on")
}

func zombie(tid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// attacker makes one attack and says how it went: 0 if it got through.
func attacker(args []string) int {
	pid, _ := strconv.Atoi(args[1])
	var threads []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		threads = append(threads, tid)
	}
	if len(threads) == 0 {
		threads = []int{pid}
	}
	if err := attacks[args[0]](pid, threads); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestCommandsCantReachTheExecutor makes every attack from a command. The
// control makes it on a process that is like the executor, but for what keeps
// it apart.
func TestCommandsCantReachTheExecutor(t *testing.T) {
	testenv.Need(t, "scope")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range attacks {
		t.Run(name, func(t *testing.T) {
			l := start(t)
			if !l.ready.Apart {
				t.Errorf("it says of itself: %+v", l.ready)
			}
			victim := victim(t)
			if out, err := exec.Command(self, roleAttacker, name, strconv.Itoa(victim)).CombinedOutput(); err != nil {
				t.Errorf("control: a process of the same user is safe: %s %v", out, err)
			}
			out, end := l.run(t, command(self, roleAttacker, name, strconv.Itoa(l.pid)))
			if end.Status == 0 || out == "" || !strings.Contains(out, "perm") && !strings.Contains(out, "denied") && !strings.Contains(out, "invalid argument") {
				t.Errorf("got %v %q", end, out)
			}
			out, end = l.led(t, command(self, roleAttacker, name, strconv.Itoa(l.pid)))
			if end.Status == 0 || out == "" || !strings.Contains(out, "perm") && !strings.Contains(out, "denied") && !strings.Contains(out, "invalid argument") {
				t.Errorf("from a terminal: got %v %q", end, out)
			}
			if out, end := l.run(t, command("echo", "alive")); end.Status != 0 || out != "alive\n" {
				t.Errorf("the executor after it: %v %q", end, out)
			}
		})
	}
}

// victim starts a process that nothing protects.
func victim(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", roleVictim)
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestCommandsReachEachOther: one started later ends one started before, as in
// any shell; that is the control for the executor's own domain too.
func TestCommandsReachEachOther(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := start(t)
	for _, name := range []string{"SIGKILL", "a signal to a thread", "a signal with a value"} {
		pidFile := filepath.Join(t.TempDir(), "pid")
		d := command("/bin/sh", "-c", "echo $$ >"+pidFile+".new; mv "+pidFile+".new "+pidFile+"; exec sleep 100")
		p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{})
		if err != nil {
			t.Fatal(err)
		}
		var pid string
		testenv.Until(t, "the other one", func() bool {
			text, err := os.ReadFile(pidFile)
			pid = strings.TrimSpace(string(text))
			return err == nil
		})
		if out, end := l.run(t, command(self, roleAttacker, name, pid)); end.Status != 0 {
			t.Errorf("%s: %q, %v", name, out, end)
		}
		if end := last(t, p); end.Status.Signal() != unix.SIGKILL {
			t.Errorf("%s: the other one ended with %v", name, end.Status)
		}
	}
}

// TestOrdinaryWorkInTheDomain: files move between directories, although a
// Landlock domain refuses that unless it is granted.
func TestOrdinaryWorkInTheDomain(t *testing.T) {
	l := start(t)
	d := command("/bin/sh", "-c", "mkdir a b && echo x >a/f && mv a/f b/g && ln b/g a/h && cat b/g a/h && kill $$")
	d.Dir = t.TempDir()
	if out, end := l.run(t, d); out != "x\nx\n" || end.Status.Signal() != unix.SIGTERM {
		t.Errorf("got %q, %v", out, end)
	}
}
