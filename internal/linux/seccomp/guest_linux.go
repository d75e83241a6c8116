package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// namespaceFlags are the CLONE_NEW… bits of clone(2) and unshare(2). In
// clone(2) the bit of CLONE_NEWTIME belongs to the exit signal.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// writeFlags are the bits of open(2) that can change or create a file.
const writeFlags = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// pathOnly makes open(2) ignore those bits.
const pathOnly = unix.O_PATH

// Numbers that x/sys/unix names on some architectures only.
const (
	sysFchmodat2     = 452
	sysOpenTreeAttr  = 467
	ptraceSeize      = 0x4206
	tiocLinux        = 0x541C
	personalityQuery = 0xffffffff
	addrNoRandomize  = 0x0040000
	netlinkRoute     = 0
	protoICMP        = 1
	protoICMPv6      = 58

	socketType = 0xf // the other bits are SOCK_CLOEXEC and SOCK_NONBLOCK
)

// Guest returns the rules for a guest. With supervise the holder of the filter's
// listener decides every call that names a file, opens one for writing, connects a
// socket, or sets the set-group-ID bit, and is told of umask(2). Without it those calls
// go to the kernel.
func Guest(supervise bool) []Rule {
	if supervise {
		return guest(append(namesHeld(), supervised()...), Notify)
	}
	return guest(nil, Errno(unix.EPERM))
}

// GuestOfOwnFiles is Guest(true) for a guest whose writable places are all its own:
// names of files go to the kernel, except for what would make a set-user-ID or
// set-group-ID file, or a whiteout.
func GuestOfOwnFiles() []Rule { return guest(append(ownNames(), supervised()...), Notify) }

// guest are the rules for every guest, after those about files. shared is what becomes
// of the set-group-ID bit.
func guest(files []Rule, shared Action) []Rule {
	return slices.Concat(files, nested(), sockets(), terminal(), modes(shared), refused())
}

// namesHeld are the calls about files that the listener decides. openat2 hides its flags
// behind a pointer that a filter can't follow: callers fall back to openat.
func namesHeld() []Rule {
	return []Rule{
		{Calls: openLegacy, Conds: []Cond{AnySet(1, pathOnly)}, Action: Allow, Why: "neither reads nor writes"},
		{Calls: []Call{{unix.SYS_OPENAT, "openat"}}, Conds: []Cond{AnySet(2, pathOnly)}, Action: Allow, Why: "neither reads nor writes"},
		{Calls: openLegacy, Conds: []Cond{AnySet(1, writeFlags)}, Action: Notify, Why: "opens for writing"},
		{Calls: []Call{{unix.SYS_OPENAT, "openat"}}, Conds: []Cond{AnySet(2, writeFlags)}, Action: Notify, Why: "opens for writing"},
		{Calls: []Call{{unix.SYS_OPENAT2, "openat2"}}, Action: Errno(unix.ENOSYS), Why: "flags behind a pointer"},
		{Calls: creatLegacy, Action: Notify, Why: "creates"},
		{Calls: append([]Call{
			{unix.SYS_MKDIRAT, "mkdirat"}, {unix.SYS_MKNODAT, "mknodat"}, {unix.SYS_RENAMEAT2, "renameat2"},
			{unix.SYS_LINKAT, "linkat"}, {unix.SYS_SYMLINKAT, "symlinkat"}, {unix.SYS_TRUNCATE, "truncate"}, {unix.SYS_UNLINKAT, "unlinkat"},
		}, namesLegacy...), Action: Notify, Why: "names a file"},
	}
}

// ownNames are those of namesHeld that the listener decides for files of the guest's own.
func ownNames() []Rule {
	const makes, setIDs = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, unix.S_ISUID | unix.S_ISGID
	made := func(calls []Call, mode int, more ...Cond) Rule {
		return Rule{Calls: calls, Conds: append(more, AnySet(mode, setIDs)), Action: Notify, Why: "makes a set-user-ID program"}
	}
	return []Rule{
		made(openLegacy, 2, AnySet(1, makes)),
		made([]Call{{unix.SYS_OPENAT, "openat"}}, 3, AnySet(2, makes)),
		made(creatLegacy, 1),
		made(mknodLegacy, 1),
		made([]Call{{unix.SYS_MKNODAT, "mknodat"}}, 2),
		{Calls: []Call{{unix.SYS_OPENAT2, "openat2"}}, Action: Errno(unix.ENOSYS), Why: "modes behind a pointer"},
		{Calls: []Call{{unix.SYS_RENAMEAT2, "renameat2"}}, Conds: []Cond{AnySet(4, unix.RENAME_WHITEOUT)}, Action: Notify, Why: "makes a device"},
	}
}

// supervised are the other calls that the listener decides, or is told of.
func supervised() []Rule {
	return []Rule{
		{Calls: []Call{{unix.SYS_UMASK, "umask"}}, Action: Notify, Why: "what is created has the caller's umask, which the holder remembers"},
		{Calls: []Call{{unix.SYS_CONNECT, "connect"}, {unix.SYS_BIND, "bind"}}, Action: Notify, Why: "may reach a socket of the host"},
	}
}

// Programs has the listener decide which programs are executed.
func Programs() []Rule {
	return []Rule{{Calls: []Call{{unix.SYS_EXECVE, "execve"}, {unix.SYS_EXECVEAT, "execveat"}}, Action: Notify, Why: "starts a program"}}
}

// nested refuses namespaces in the namespace. clone3 hides its flags behind a
// pointer; ENOSYS makes the C library fall back to clone.
func nested() []Rule {
	return []Rule{
		{Calls: []Call{{unix.SYS_CLONE, "clone"}}, Conds: []Cond{AnySet(0, namespaceFlags)}, Action: Errno(unix.EPERM), Why: "nested namespaces"},
		{Calls: []Call{{unix.SYS_UNSHARE, "unshare"}}, Conds: []Cond{AnySet(0, namespaceFlags|unix.CLONE_NEWTIME)}, Action: Errno(unix.EPERM), Why: "nested namespaces"},
		{Calls: []Call{{unix.SYS_CLONE3, "clone3"}}, Action: Errno(unix.ENOSYS), Why: "flags behind a pointer"},
		{Calls: []Call{{unix.SYS_SETNS, "setns"}}, Action: Errno(unix.EPERM), Why: "other namespaces"},
	}
}

// sockets lets IP, UNIX streams and routing netlink through. UNIX datagrams
// are refused: their destination travels in each message, where a filter
// can't see it, and could name a socket of the host.
func sockets() []Rule {
	socket := []Call{{unix.SYS_SOCKET, "socket"}}
	both := append(socket, Call{unix.SYS_SOCKETPAIR, "socketpair"})
	typed := func(family, kind uint32) []Cond {
		return []Cond{Equal(0, family), MaskedEqual(1, socketType, kind)}
	}
	return []Rule{
		{Calls: both, Conds: typed(unix.AF_UNIX, unix.SOCK_DGRAM), Action: Errno(unix.EACCES), Why: "UNIX datagrams"},
		{Calls: both, Conds: typed(unix.AF_UNIX, unix.SOCK_RAW), Action: Errno(unix.EACCES), Why: "the kernel makes it a datagram socket"},
		{Calls: socket, Conds: typed(unix.AF_INET, unix.SOCK_RAW), Action: Errno(unix.EPERM), Why: "raw IP"},
		{Calls: socket, Conds: typed(unix.AF_INET6, unix.SOCK_RAW), Action: Errno(unix.EPERM), Why: "raw IP"},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_UNIX)}, Action: Allow},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET), Equal(2, protoICMP)}, Action: Errno(unix.EPERM), Why: "ping sockets"},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET6), Equal(2, protoICMPv6)}, Action: Errno(unix.EPERM), Why: "ping sockets"},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET)}, Action: Allow},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET6)}, Action: Allow},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_NETLINK), Equal(2, netlinkRoute)}, Action: Allow},
		{Calls: socket, Action: Errno(unix.EPERM), Why: "other address families"},
	}
}

// WithoutIP refuses IP sockets of any kind, for a guest that has no network
// namespace of its own.
func WithoutIP() []Rule {
	socket := []Call{{unix.SYS_SOCKET, "socket"}}
	return []Rule{
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET)}, Action: Errno(unix.EACCES), Why: "no network"},
		{Calls: socket, Conds: []Cond{Equal(0, unix.AF_INET6)}, Action: Errno(unix.EACCES), Why: "no network"},
	}
}

// WithoutIPC refuses System V and POSIX message queues, semaphores and shared
// memory, for a guest that has no IPC namespace of its own.
func WithoutIPC() []Rule {
	return []Rule{{Calls: []Call{
		{unix.SYS_SHMGET, "shmget"}, {unix.SYS_SHMAT, "shmat"}, {unix.SYS_SHMCTL, "shmctl"},
		{unix.SYS_SEMGET, "semget"}, {unix.SYS_SEMOP, "semop"}, {unix.SYS_SEMCTL, "semctl"}, {unix.SYS_SEMTIMEDOP, "semtimedop"},
		{unix.SYS_MSGGET, "msgget"}, {unix.SYS_MSGSND, "msgsnd"}, {unix.SYS_MSGRCV, "msgrcv"}, {unix.SYS_MSGCTL, "msgctl"},
		{unix.SYS_MQ_OPEN, "mq_open"}, {unix.SYS_MQ_UNLINK, "mq_unlink"},
	}, Action: Errno(unix.EPERM), Why: "IPC with the host"}}
}

// terminal refuses the two ways to type into a terminal's input queue
// (CVE-2017-5226, CVE-2023-1523).
func terminal() []Rule {
	ioctl := []Call{{unix.SYS_IOCTL, "ioctl"}}
	var rules []Rule
	for _, request := range namingRequests {
		rules = append(rules, Rule{Calls: ioctl, Conds: []Cond{Equal(1, request)}, Action: Errno(unix.EPERM), Why: "names a directory behind the supervisor's back"})
	}
	return append(rules, []Rule{
		{Calls: ioctl, Conds: []Cond{Equal(1, unix.TIOCSTI)}, Action: Errno(unix.EPERM), Why: "typing into the terminal"},
		{Calls: ioctl, Conds: []Cond{Equal(1, tiocLinux)}, Action: Errno(unix.EPERM), Why: "pasting into the console"},
	}...)
}

// namingRequests are requests of ioctl(2) by which btrfs makes, copies or
// removes directories by name (linux/btrfs.h): SNAP_CREATE, SUBVOL_CREATE,
// SNAP_DESTROY, SNAP_CREATE_V2, SUBVOL_CREATE_V2, SNAP_DESTROY_V2.
var namingRequests = []uint32{0x50009401, 0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x5000943f}

// modes keeps set-user-ID and set-group-ID programs out of the workspace. shared is what
// becomes of the set-group-ID bit: the listener gives it to directories.
func modes(shared Action) []Rule {
	chmod := append([]Call{{unix.SYS_FCHMOD, "fchmod"}}, chmodLegacy...)
	at := []Call{{unix.SYS_FCHMODAT, "fchmodat"}, {sysFchmodat2, "fchmodat2"}}
	return []Rule{
		{Calls: chmod, Conds: []Cond{AnySet(1, unix.S_ISUID)}, Action: Errno(unix.EPERM), Why: "set-user-ID programs"},
		{Calls: at, Conds: []Cond{AnySet(2, unix.S_ISUID)}, Action: Errno(unix.EPERM), Why: "set-user-ID programs"},
		{Calls: chmod, Conds: []Cond{AnySet(1, unix.S_ISGID)}, Action: shared, Why: "set-group-ID programs"},
		{Calls: at, Conds: []Cond{AnySet(2, unix.S_ISGID)}, Action: shared, Why: "set-group-ID programs"},
	}
}

// refused are the calls no guest needs and the kernel's history advises
// against. Most would fail for want of a capability; this is the second lock.
func refused() []Rule {
	eperm := Errno(unix.EPERM)
	personality := []Call{{unix.SYS_PERSONALITY, "personality"}}
	return []Rule{
		{Calls: personality, Conds: []Cond{Equal(0, 0)}, Action: Allow},
		{Calls: personality, Conds: []Cond{Equal(0, personalityQuery)}, Action: Allow},
		{Calls: personality, Conds: []Cond{Equal(0, addrNoRandomize)}, Action: Allow},
		{Calls: personality, Action: eperm, Why: "other personalities weaken memory protection"},
		{Calls: []Call{{unix.SYS_PTRACE, "ptrace"}}, Conds: []Cond{Equal(0, unix.PTRACE_ATTACH)}, Action: eperm, Why: "ptrace of others"},
		{Calls: []Call{{unix.SYS_PTRACE, "ptrace"}}, Conds: []Cond{Equal(0, ptraceSeize)}, Action: eperm, Why: "ptrace of others"},
		{Calls: mountCalls(), Action: eperm, Why: "mounts"},
		{Calls: processCalls(), Action: eperm, Why: "other processes"},
		{Calls: kernelCalls(), Action: eperm, Why: "the kernel itself"},
		{Calls: machineCalls(), Action: eperm, Why: "the machine"},
		{Calls: machineLegacy, Action: eperm, Why: "the machine, old calls"},
	}
}

func mountCalls() []Call {
	return []Call{
		{unix.SYS_MOUNT, "mount"}, {unix.SYS_UMOUNT2, "umount2"}, {unix.SYS_PIVOT_ROOT, "pivot_root"}, {unix.SYS_CHROOT, "chroot"},
		{unix.SYS_OPEN_TREE, "open_tree"}, {unix.SYS_MOVE_MOUNT, "move_mount"}, {unix.SYS_FSOPEN, "fsopen"}, {unix.SYS_FSCONFIG, "fsconfig"},
		{unix.SYS_FSMOUNT, "fsmount"}, {unix.SYS_FSPICK, "fspick"}, {unix.SYS_MOUNT_SETATTR, "mount_setattr"}, {sysOpenTreeAttr, "open_tree_attr"},
		{unix.SYS_OPEN_BY_HANDLE_AT, "open_by_handle_at"},
	}
}

func processCalls() []Call {
	return []Call{
		{unix.SYS_PROCESS_VM_READV, "process_vm_readv"}, {unix.SYS_PROCESS_VM_WRITEV, "process_vm_writev"}, {unix.SYS_KCMP, "kcmp"},
		{unix.SYS_PIDFD_GETFD, "pidfd_getfd"}, {unix.SYS_PROCESS_MADVISE, "process_madvise"}, {unix.SYS_PROCESS_MRELEASE, "process_mrelease"},
		{unix.SYS_MIGRATE_PAGES, "migrate_pages"}, {unix.SYS_MOVE_PAGES, "move_pages"},
	}
}

func kernelCalls() []Call {
	return []Call{
		{unix.SYS_BPF, "bpf"}, {unix.SYS_PERF_EVENT_OPEN, "perf_event_open"}, {unix.SYS_USERFAULTFD, "userfaultfd"},
		{unix.SYS_IO_URING_SETUP, "io_uring_setup"}, {unix.SYS_IO_URING_ENTER, "io_uring_enter"}, {unix.SYS_IO_URING_REGISTER, "io_uring_register"},
		{unix.SYS_ADD_KEY, "add_key"}, {unix.SYS_REQUEST_KEY, "request_key"}, {unix.SYS_KEYCTL, "keyctl"},
		{unix.SYS_INIT_MODULE, "init_module"}, {unix.SYS_FINIT_MODULE, "finit_module"}, {unix.SYS_DELETE_MODULE, "delete_module"},
		{unix.SYS_KEXEC_LOAD, "kexec_load"}, {unix.SYS_KEXEC_FILE_LOAD, "kexec_file_load"}, {unix.SYS_FANOTIFY_INIT, "fanotify_init"},
		{unix.SYS_LOOKUP_DCOOKIE, "lookup_dcookie"}, {unix.SYS_NFSSERVCTL, "nfsservctl"}, {unix.SYS_SYSLOG, "syslog"}, {unix.SYS_MEMFD_SECRET, "memfd_secret"},
	}
}

func machineCalls() []Call {
	return []Call{
		{unix.SYS_REBOOT, "reboot"}, {unix.SYS_SWAPON, "swapon"}, {unix.SYS_SWAPOFF, "swapoff"}, {unix.SYS_ACCT, "acct"},
		{unix.SYS_QUOTACTL, "quotactl"}, {unix.SYS_QUOTACTL_FD, "quotactl_fd"}, {unix.SYS_SETHOSTNAME, "sethostname"}, {unix.SYS_SETDOMAINNAME, "setdomainname"},
		{unix.SYS_SETTIMEOFDAY, "settimeofday"}, {unix.SYS_CLOCK_SETTIME, "clock_settime"}, {unix.SYS_ADJTIMEX, "adjtimex"},
		{unix.SYS_CLOCK_ADJTIME, "clock_adjtime"}, {unix.SYS_VHANGUP, "vhangup"},
	}
}
