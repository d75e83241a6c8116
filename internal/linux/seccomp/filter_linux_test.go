package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// eval runs a filter the way the kernel does, on the instructions Compile
// emits. Anything else is an error, so that a change of Compile is noticed.
func eval(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		var cond bool
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			switch in.K {
			case offNr:
				a = nr
			case offArch:
				a = arch
			default:
				a = uint32(args[(in.K-offArgs)/8])
			}
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			cond = a == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			cond = a >= in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			cond = a > in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			cond = a&in.K != 0
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
		if cond {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("fell off the end")
	return 0
}

func TestGuestFilter(t *testing.T) {
	const (
		allow  = uint32(unix.SECCOMP_RET_ALLOW)
		notify = uint32(unix.SECCOMP_RET_USER_NOTIF)
	)
	eperm, enosys, eacces := Errno(unix.EPERM).ret(), Errno(unix.ENOSYS).ret(), Errno(unix.EACCES).ret()
	cases := []struct {
		name             string
		nr               uint32
		args             [6]uint64
		supervised, bare uint32
	}{
		{"read", unix.SYS_READ, [6]uint64{}, allow, allow},
		{"openat read-only", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_RDONLY | unix.O_CLOEXEC}, allow, allow},
		{"openat write", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_WRONLY}, notify, allow},
		{"openat of a path only", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_PATH | unix.O_CREAT | unix.O_RDWR}, allow, allow},
		{"openat truncate", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TRUNC}, notify, allow},
		{"openat with high bits", unix.SYS_OPENAT, [6]uint64{0, 0, 1<<32 | unix.O_CREAT}, notify, allow},
		{"openat2", unix.SYS_OPENAT2, [6]uint64{}, enosys, allow},
		{"renameat2", unix.SYS_RENAMEAT2, [6]uint64{}, notify, allow},
		{"connect", unix.SYS_CONNECT, [6]uint64{}, notify, allow},
		{"clone thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow, allow},
		{"clone user", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER}, eperm, eperm},
		{"clone3", unix.SYS_CLONE3, [6]uint64{}, enosys, enosys},
		{"unshare time", unix.SYS_UNSHARE, [6]uint64{unix.CLONE_NEWTIME}, eperm, eperm},
		{"unshare files", unix.SYS_UNSHARE, [6]uint64{unix.CLONE_FILES}, allow, allow},
		{"unix stream", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allow, allow},
		{"unix datagram", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, eacces, eacces},
		{"unix raw", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_RAW}, eacces, eacces},
		{"unix stream pair", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, allow, allow},
		{"tcp", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, allow, allow},
		{"ping", unix.SYS_SOCKET, [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, protoICMP}, eperm, eperm},
		{"raw", unix.SYS_SOCKET, [6]uint64{unix.AF_INET6, unix.SOCK_RAW | unix.SOCK_NONBLOCK, 255}, eperm, eperm},
		{"packet", unix.SYS_SOCKET, [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}, eperm, eperm},
		{"vsock", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, eperm, eperm},
		{"alg", unix.SYS_SOCKET, [6]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, eperm, eperm},
		{"netlink route", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, allow, allow},
		{"netlink audit", unix.SYS_SOCKET, [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, eperm, eperm},
		{"TIOCSTI", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, eperm, eperm},
		{"TIOCSTI with high bits", unix.SYS_IOCTL, [6]uint64{0, 1<<32 | unix.TIOCSTI}, eperm, eperm},
		{"btrfs subvolume", unix.SYS_IOCTL, [6]uint64{0, 0x5000940e}, eperm, eperm},
		{"TCGETS", unix.SYS_IOCTL, [6]uint64{0, unix.TCGETS}, allow, allow},
		{"fchmod plain", unix.SYS_FCHMOD, [6]uint64{0, 0o755}, allow, allow},
		{"fchmod setuid", unix.SYS_FCHMOD, [6]uint64{0, 0o4755}, eperm, eperm},
		{"fchmodat setgid", unix.SYS_FCHMODAT, [6]uint64{0, 0, 0o2755}, notify, eperm},
		{"fchmod setuid and setgid", unix.SYS_FCHMOD, [6]uint64{0, 0o6755}, eperm, eperm},
		{"personality query", unix.SYS_PERSONALITY, [6]uint64{personalityQuery}, allow, allow},
		{"READ_IMPLIES_EXEC", unix.SYS_PERSONALITY, [6]uint64{0x0400000}, eperm, eperm},
		{"traceme", unix.SYS_PTRACE, [6]uint64{unix.PTRACE_TRACEME}, allow, allow},
		{"seize", unix.SYS_PTRACE, [6]uint64{ptraceSeize}, eperm, eperm},
		{"mount", unix.SYS_MOUNT, [6]uint64{}, eperm, eperm},
		{"io_uring", unix.SYS_IO_URING_SETUP, [6]uint64{}, eperm, eperm},
		{"unreviewed", lastReviewed + 1, [6]uint64{}, enosys, enosys},
	}
	for _, supervise := range []bool{true, false} {
		prog, err := Compile(Guest(supervise))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			want := c.bare
			if supervise {
				want = c.supervised
			}
			if got := eval(t, prog, auditArch, c.nr, c.args); got != want {
				t.Errorf("supervise %v, %s: got %#x, want %#x", supervise, c.name, got, want)
			}
		}
		if got := eval(t, prog, unix.AUDIT_ARCH_I386, 1, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("foreign architecture: got %#x, want a kill", got)
		}
		if got := eval(t, prog, auditArch, x32Bit|1, [6]uint64{}); got != enosys {
			t.Errorf("x32: got %#x, want ENOSYS", got)
		}
	}
}

// TestOwnFiles: only what makes set-user-ID files and whiteouts, and the calls about
// sockets, wait for the listener where all files are the guest's own.
func TestOwnFiles(t *testing.T) {
	const allow, notify = uint32(unix.SECCOMP_RET_ALLOW), uint32(unix.SECCOMP_RET_USER_NOTIF)
	prog, err := Compile(GuestOfOwnFiles())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		nr   uint32
		args [6]uint64
		want uint32
	}{
		{"create", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o644}, allow},
		{"create setuid", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT, 0o4755}, notify},
		{"create setgid", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_CREAT, 1<<32 | 0o2755}, notify},
		{"nameless setuid", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}, notify},
		{"directory, odd mode", unix.SYS_OPENAT, [6]uint64{0, 0, unix.O_DIRECTORY, 0o4755}, allow},
		{"openat2", unix.SYS_OPENAT2, [6]uint64{}, Errno(unix.ENOSYS).ret()},
		{"mkdirat", unix.SYS_MKDIRAT, [6]uint64{0, 0, 0o755}, allow},
		{"mknodat", unix.SYS_MKNODAT, [6]uint64{0, 0, unix.S_IFREG | 0o644}, allow},
		{"mknodat setuid", unix.SYS_MKNODAT, [6]uint64{0, 0, unix.S_IFREG | 0o4644}, notify},
		{"unlinkat", unix.SYS_UNLINKAT, [6]uint64{}, allow},
		{"renameat2", unix.SYS_RENAMEAT2, [6]uint64{0, 0, 0, 0, unix.RENAME_EXCHANGE}, allow},
		{"whiteout", unix.SYS_RENAMEAT2, [6]uint64{0, 0, 0, 0, unix.RENAME_WHITEOUT}, notify},
		{"truncate", unix.SYS_TRUNCATE, [6]uint64{}, allow},
		{"fchmod setgid", unix.SYS_FCHMOD, [6]uint64{0, 0o2755}, notify},
		{"connect", unix.SYS_CONNECT, [6]uint64{}, notify},
		{"bind", unix.SYS_BIND, [6]uint64{}, notify},
		{"umask", unix.SYS_UMASK, [6]uint64{}, notify},
	} {
		if got := eval(t, prog, auditArch, c.nr, c.args); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestCompileRefusesBadRules(t *testing.T) {
	if _, err := Compile([]Rule{{Calls: []Call{{1, "x"}}, Conds: []Cond{Equal(6, 0)}}}); err == nil {
		t.Error("argument 6: got nil error")
	}
	if got := Kill.ret(); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("zero action: got %#x, want kill", got)
	}
}
