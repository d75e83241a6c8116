package testenv

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlock takes the right to read files from a thread and tries to read one.
func landlock() error {
	return onThrowAwayThread(func() error {
		attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_READ_FILE}
		// Only the first field: a kernel of ABI 1 refuses a longer structure.
		fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
			uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
		if errno != 0 {
			return fmt.Errorf("landlock_create_ruleset: %w", errno)
		}
		defer unix.Close(int(fd))
		if err := noNewPrivs(); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
			return fmt.Errorf("landlock_restrict_self: %w", errno)
		}
		if f, err := os.Open("/etc/passwd"); !errors.Is(err, unix.EACCES) {
			f.Close()
			return fmt.Errorf("opening a file in spite of Landlock gave %v; want %w", err, unix.EACCES)
		}
		return nil
	})
}

// landlockScope asks for the version that confines signals.
func landlockScope() error {
	const first = 6
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	if abi < first {
		return fmt.Errorf("landlock has version %d; want %d, of Linux 6.12", abi, first)
	}
	return nil
}

func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_NO_NEW_PRIVS: %w", err)
	}
	return nil
}

// filterGetppid installs a filter on the thread that answers getppid(2) with
// action and leaves every other call alone. It returns seccomp(2)'s result.
func filterGetppid(action uint32, flags uintptr) (int, error) {
	if err := noNewPrivs(); err != nil {
		return -1, err
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETPPID, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: action},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
	return int(r), nil
}

// seccompFilter makes one system call of a thread fail.
func seccompFilter() error {
	return onThrowAwayThread(func() error {
		if _, err := filterGetppid(unix.SECCOMP_RET_ERRNO|uint32(unix.EDOM), 0); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EDOM {
			return fmt.Errorf("a filtered call returned %q; want %q", errno, unix.EDOM)
		}
		return nil
	})
}

// seccompNotify answers one system call of a thread from another thread.
func seccompNotify() error {
	const answer = 4711
	return onThrowAwayThread(func() error {
		fd, err := filterGetppid(unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		if err != nil {
			return err
		}
		served := make(chan error, 1)
		go func() { served <- answerOne(fd, answer) }()
		r, _, errno := unix.Syscall(unix.SYS_GETPPID, 0, 0, 0)
		if err := <-served; err != nil {
			return err
		}
		if errno != 0 || r != answer {
			return fmt.Errorf("an answered call returned %d, errno %d; want %d", r, errno, answer)
		}
		return nil
	})
}

// notification and response are seccomp_notif and seccomp_notif_resp, see
// seccomp_unotify(2).
type notification struct {
	id         uint64
	pid, flags uint32
	data       [64]byte
}

type response struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// answerOne answers one notification and closes fd, which fails every later
// filtered call.
func answerOne(fd int, val int64) error {
	defer unix.Close(fd)
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(ready, int(probeTimeout.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		if n == 0 {
			return errors.New("no notification came")
		}
		break
	}
	var req notification
	if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&req)); err != nil {
		return fmt.Errorf("SECCOMP_IOCTL_NOTIF_RECV: %w", err)
	}
	resp := response{id: req.id, val: val}
	if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&resp)); err != nil {
		return fmt.Errorf("SECCOMP_IOCTL_NOTIF_SEND: %w", err)
	}
	return nil
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
