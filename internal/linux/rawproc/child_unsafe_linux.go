package rawproc

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vfork forks a child that shares all memory, while the caller sleeps until it
// has executed or ended (clone(2), CLONE_VM and CLONE_VFORK). Copying the page
// tables of a Go program instead takes longer than all else a start needs.
func vfork(flags uintptr) (pid, errno uintptr)

// clone forks a child that calls childMain on the given stack, with its thread
// pointer at tls where the architecture has one, and with self as its goroutine.
func clone(flags, stack, tls, self uintptr) (pid, errno uintptr)

var _ = childMain // called by clone alone

// shared is memory that parent and child both see: a MAP_SHARED mapping made
// before the fork. Addresses in it are equal on both sides.
type shared struct {
	failed int32 // index of the step that failed, plus one
	errno  int32

	slots [maxSlots]uintptr

	// The command to start, filled in by the parent before it sends a request.
	dir   uintptr // NUL-terminated, in the arena
	argv  uintptr
	envv  uintptr
	mark  uintptr           // Mark
	paths [maxPaths]uintptr // candidates for execve, 0-terminated
	flags uint32
	_     uint32

	// Scratch of the child.
	fds  [maxRequestFDs]int32
	tty  int32 // kept from the request with flagTerminal, else 0
	last int32 // the pid of the command with flagLast
	all  int32 // 1: the parent's end ends all processes that this one may signal
	pid  int32
	in   message
	out  message
	poll [2]unix.PollFd
	mask uint64
	sig  [128]byte

	action sigaction
}

const (
	maxPaths      = 64
	maxRequestFDs = 4 // stdin, stdout, stderr, terminal
	maxReady      = 16
)

// message is one packet on the control socket with room for descriptors.
type message struct {
	hdr  unix.Msghdr
	iov  unix.Iovec
	body packet
	ctl  [unix.SizeofCmsghdr + 4*maxReady]byte
}

// packet is all that travels besides descriptors.
type packet struct {
	kind   uint32
	pid    int32
	status int32
	_      int32
}

// Kinds of packet.
const (
	kindReady      = iota + 1 // child: the program has run; carries the descriptors asked for
	kindStart                 // parent: start the command in shared
	kindStarted               // child: pid, or errno in status
	kindStatus                // child: pid changed state, wait status in status
	kindSignal                // parent: send signal status to the process group pid
	kindForeground            // parent: make pid the terminal's foreground process group
	kindOpen                  // parent: go on behind the gate, with descriptors
	kindEndAll                // parent: end all others when this socket closes
	kindSocket                // parent: make a TCP socket of family status; child: carries it, or errno in status
)

// Flags of a request.
const (
	flagTerminal   = 1 << iota // fds[3] becomes the controlling terminal
	flagForeground             // and the command its foreground process group
	flagLast                   // PID 1 ends with this command
)

const (
	exitProgram = 125 // a step failed
	exitExec    = 127
)

// launch holds the child's inputs. It lies in the program's memory.
type launch struct {
	steps *step
	n     int
	sh    *shared
	sock  uintptr
	ready readyFDs
	args  unsafe.Pointer // the command line, in the stack of the process
	nargs int
	alone bool
}

// childMain is the life of the child. It never returns.
//
//go:norace
//go:nocheckptr
func childMain(l *launch) {
	resetSignals(l.sh)
	clearArgs(l.args, l.nargs)
	if l.alone {
		closeAllBut(l.sock)
	}
	runSteps(l.steps, &l.n, l.sh, l.sock)
	sendReady(l.sh, l.sock, &l.ready)
	closeAllBut(l.sock)
	serve(l.sh, l.sock)
}

// sigaction is the kernel's (rt_sigaction(2)).
type sigaction struct{ handler, flags, restorer, mask uintptr }

// resetSignals takes back the handlers of Go's runtime. What is ignored stays
// so. All signals are blocked until serve.
//
//go:nosplit
//go:norace
//go:nocheckptr
func resetSignals(sh *shared) {
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, err := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&sh.action)), 8, 0, 0)
		if err != 0 || sh.action.handler <= 1 { // SIG_DFL, SIG_IGN
			continue
		}
		sh.action = sigaction{}
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&sh.action)), 0, 8, 0, 0)
	}
}

// clearArgs empties the command line that /proc/1/cmdline shows: the guest may
// read that, and it need not know the flags of the one who started it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func clearArgs(args unsafe.Pointer, n int) {
	for i := range n {
		*(*byte)(unsafe.Add(args, i)) = 0
	}
}

// readyFDs are the slots whose descriptors go to the parent once the program
// has run.
type readyFDs struct {
	n    int32
	slot [maxReady]Slot
}

//go:nosplit
//go:norace
//go:nocheckptr
func exit(code uintptr) {
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}

// runSteps carries the program out. It ends the process at the first failure.
// Their number grows while a step waits for the rest of them.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runSteps(steps *step, n *int, sh *shared, sock uintptr) {
	var a [6]uintptr
	for i := 0; i < *n; i++ {
		s := (*step)(unsafe.Add(unsafe.Pointer(steps), uintptr(i)*unsafe.Sizeof(step{})))
		for j := 0; j < 6; j++ {
			a[j] = s.args[j]
			if s.slots&(1<<j) != 0 {
				a[j] = sh.slots[a[j]&(maxSlots-1)]
			}
		}
		if s.gate != nil {
			pass(s.gate, i, sh, sock)
			continue
		}
		r, _, err := syscall.RawSyscall6(s.nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if err != 0 && err != syscall.Errno(s.ignore[0]) && err != syscall.Errno(s.ignore[1]) {
			fail(sh, i, int32(err))
		}
		if s.out >= 0 {
			sh.slots[s.out&(maxSlots-1)] = r
		}
		if s.store != nil {
			*(*int32)(s.store) = int32(r)
		}
		if s.expect != nil && (uint64(s.stat.Dev) != s.expect.Dev || s.stat.Ino != s.expect.Ino) {
			fail(sh, i, int32(unix.ESTALE))
		}
		if s.answer != nil && s.answer.errno != 0 {
			fail(sh, i, -s.answer.errno)
		}
	}
}

//go:nosplit
//go:norace
//go:nocheckptr
func fail(sh *shared, i int, errno int32) {
	sh.failed, sh.errno = int32(i+1), errno
	exit(exitProgram)
}

// send writes one packet, with nfds descriptors already laid out in ctl.
//
//go:nosplit
//go:norace
//go:nocheckptr
func send(sh *shared, sock uintptr, kind uint32, pid, status int32) {
	sh.out.body.kind, sh.out.body.pid, sh.out.body.status = kind, pid, status
	_, _, err := syscall.RawSyscall6(unix.SYS_SENDMSG, sock, uintptr(unsafe.Pointer(&sh.out.hdr)), unix.MSG_NOSIGNAL, 0, 0, 0)
	if err != 0 { // the parent is gone
		leave(sh, exitProgram)
	}
}

// confined reports whether no signal of this process reaches its parent, so that a
// signal to all stays among its own.
//
//go:nosplit
//go:norace
//go:nocheckptr
func confined() bool {
	parent, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
	_, _, err := syscall.RawSyscall(unix.SYS_KILL, parent, 0, 0)
	return err != 0
}

// leave ends the process and, if it was told to, all others.
//
//go:nosplit
//go:norace
//go:nocheckptr
func leave(sh *shared, code uintptr) {
	if sh.all != 0 {
		syscall.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
	}
	exit(code)
}

//go:nosplit
//go:norace
//go:nocheckptr
func sendReady(sh *shared, sock uintptr, ready *readyFDs) {
	for i := int32(0); i < ready.n; i++ {
		enclose(sh, i, sh.slots[ready.slot[i&(maxReady-1)]&(maxSlots-1)])
	}
	send(sh, sock, kindReady, 0, 0)
	sh.out.hdr.SetControllen(0)
}

// enclose puts fd at place i of the descriptors that the next packet carries.
//
//go:nosplit
//go:norace
//go:nocheckptr
func enclose(sh *shared, i int32, fd uintptr) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&sh.out.ctl[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_RIGHTS
	h.SetLen(unix.SizeofCmsghdr + 4*int(i+1))
	*(*int32)(unsafe.Add(unsafe.Pointer(&sh.out.ctl[unix.SizeofCmsghdr]), 4*uintptr(i&(maxReady-1)))) = int32(fd)
	sh.out.hdr.SetControllen(unix.SizeofCmsghdr + 8*int((i+2)/2))
}

// closeAllBut closes every descriptor above 2 except sock: the parent's open
// files are not for the child, and its end of the control socket least of all.
//
//go:nosplit
//go:norace
//go:nocheckptr
func closeAllBut(sock uintptr) {
	_, _, err := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, sock+1, uintptr(^uint32(0)), 0)
	if err == 0 && sock > 3 {
		_, _, err = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, sock-1, 0)
	}
	if err != 0 {
		exit(exitProgram)
	}
}

// serve is the life of PID 1: it starts the parent's commands, reaps ended
// processes, and ends when the parent's end of the socket closes.
//
//go:nosplit
//go:norace
//go:nocheckptr
func serve(sh *shared, sock uintptr) {
	sh.mask = 1 << (unix.SIGCHLD - 1)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&sh.mask)), 0, 8, 0, 0)
	sigfd, _, err := syscall.RawSyscall6(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&sh.mask)), 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK, 0, 0)
	if err != 0 {
		exit(exitProgram)
	}
	sh.poll[0].Fd, sh.poll[0].Events = int32(sock), unix.POLLIN
	sh.poll[1].Fd, sh.poll[1].Events = int32(sigfd), unix.POLLIN
	for {
		_, _, err := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&sh.poll[0])), 2, 0, 0, 0, 0)
		if err != 0 && err != unix.EINTR {
			exit(exitProgram)
		}
		if sh.poll[1].Revents != 0 {
			syscall.RawSyscall(unix.SYS_READ, sigfd, uintptr(unsafe.Pointer(&sh.sig[0])), uintptr(len(sh.sig)))
			reap(sh, sock)
		}
		if sh.poll[0].Revents != 0 {
			request(sh, sock)
		}
	}
}

// reap reports every child that ended or stopped.
//
//go:nosplit
//go:norace
//go:nocheckptr
func reap(sh *shared, sock uintptr) {
	for {
		var status uint32
		pid, _, err := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), unix.WNOHANG|unix.WUNTRACED, 0, 0, 0)
		if err == unix.EINTR {
			continue
		}
		if err != 0 || pid == 0 {
			return
		}
		send(sh, sock, kindStatus, int32(pid), int32(status))
		if int32(pid) == sh.last && status&0xff != 0x7f { // ended, not stopped (wait(2))
			exit(0)
		}
	}
}

// request receives one packet and starts the command in shared. End of file
// means that the parent is gone.
//
//go:nosplit
//go:norace
//go:nocheckptr
func request(sh *shared, sock uintptr) {
	sh.in.hdr.SetControllen(len(sh.in.ctl))
	n, _, err := syscall.RawSyscall6(unix.SYS_RECVMSG, sock, uintptr(unsafe.Pointer(&sh.in.hdr)), unix.MSG_CMSG_CLOEXEC, 0, 0, 0)
	if err == unix.EINTR {
		return
	}
	if err != 0 || n != unsafe.Sizeof(packet{}) {
		leave(sh, 0)
	}
	switch sh.in.body.kind {
	case kindEndAll:
		if confined() {
			sh.all = 1
		}
	case kindStart:
		start(sh, sock)
	case kindSignal:
		syscall.RawSyscall(unix.SYS_KILL, uintptr(-int(sh.in.body.pid)), uintptr(sh.in.body.status), 0)
	case kindForeground:
		syscall.RawSyscall(unix.SYS_IOCTL, uintptr(sh.tty), unix.TIOCSPGRP, uintptr(unsafe.Pointer(&sh.in.body.pid)))
	case kindSocket:
		makeSocket(sh, sock, uintptr(sh.in.body.status))
	default:
		exit(exitProgram)
	}
}

// makeSocket answers with a TCP socket of this network namespace, or with an
// error. The parent connects it.
//
//go:nosplit
//go:norace
//go:nocheckptr
func makeSocket(sh *shared, sock, family uintptr) {
	fd, _, err := syscall.RawSyscall(unix.SYS_SOCKET, family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != 0 {
		send(sh, sock, kindSocket, 0, int32(err))
		return
	}
	enclose(sh, 0, fd)
	send(sh, sock, kindSocket, 0, 0)
	sh.out.hdr.SetControllen(0)
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
}

// start forks the command in shared and answers with its pid or its error.
//
//go:nosplit
//go:norace
//go:nocheckptr
func start(sh *shared, sock uintptr) {
	nfds := receivedFDs(sh)
	if nfds < 3 {
		exit(exitProgram)
	}
	if sh.flags&flagTerminal != 0 {
		sh.tty = sh.fds[3]
		syscall.RawSyscall(unix.SYS_IOCTL, uintptr(sh.tty), unix.TIOCSCTTY, 0)
		nfds = 3
	}
	sh.errno = 0
	pid, err := vfork(unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD))
	if err == 0 && pid == 0 {
		command(sh)
	}
	if err != 0 {
		sh.errno = int32(err)
	}
	if err == 0 && sh.errno == 0 && sh.flags&flagLast != 0 {
		sh.last = int32(pid)
	}
	for i := int32(0); i < nfds; i++ {
		syscall.RawSyscall(unix.SYS_CLOSE, uintptr(sh.fds[i&3]), 0, 0)
	}
	send(sh, sock, kindStarted, int32(pid), sh.errno)
}

// receivedFDs copies the descriptors of a request to sh.fds.
//
//go:nosplit
//go:norace
//go:nocheckptr
func receivedFDs(sh *shared) int32 {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&sh.in.ctl[0]))
	if sh.in.hdr.Controllen < unix.SizeofCmsghdr || h.Type != unix.SCM_RIGHTS {
		exit(exitProgram)
	}
	n := int32(uintptr(h.Len)-unix.SizeofCmsghdr) / 4
	if n > maxRequestFDs {
		exit(exitProgram)
	}
	for i := int32(0); i < n; i++ {
		sh.fds[i&3] = *(*int32)(unsafe.Add(unsafe.Pointer(&sh.in.ctl[unix.SizeofCmsghdr]), 4*uintptr(i)))
	}
	return n
}

// command is the forked child on its way to exec. It leaves its error in
// shared: its parent sleeps until it has executed or ended (CLONE_VFORK).
//
//go:nosplit
//go:norace
//go:nocheckptr
func command(sh *shared) {
	syscall.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
	if sh.flags&flagForeground != 0 {
		foreground(sh)
	}
	for i := uintptr(0); i < 3; i++ {
		if _, _, err := syscall.RawSyscall(unix.SYS_DUP3, uintptr(sh.fds[i]), i, 0); err != 0 {
			sh.errno = int32(err)
			exit(exitExec)
		}
	}
	if _, _, err := syscall.RawSyscall(unix.SYS_CHDIR, sh.dir, 0, 0); err != 0 {
		sh.errno = int32(err)
		exit(exitExec)
	}
	sh.mask = 0
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&sh.mask)), 0, 8, 0, 0)
	execute(sh)
	exit(exitExec)
}

// foreground makes the caller the terminal's foreground process group.
// SIGTTOU is blocked meanwhile: a background process may not ask otherwise.
//
//go:nosplit
//go:norace
//go:nocheckptr
func foreground(sh *shared) {
	sh.mask = 1 << (unix.SIGTTOU - 1)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&sh.mask)), 0, 8, 0, 0)
	pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	sh.pid = int32(pid)
	syscall.RawSyscall(unix.SYS_IOCTL, uintptr(sh.tty), unix.TIOCSPGRP, uintptr(unsafe.Pointer(&sh.pid)))
}

// execute tries the candidates as execvp(3) does: on to the next one where a
// file is absent, and EACCES is remembered.
//
//go:nosplit
//go:norace
//go:nocheckptr
func execute(sh *shared) {
	var denied bool
	for i := 0; i < maxPaths && sh.paths[i] != 0; i++ {
		sh.errno = 0 // sent to the parent if this one succeeds
		_, _, err := syscall.RawSyscall6(unix.SYS_EXECVE, sh.paths[i], sh.argv, sh.envv, 0, 0, sh.mark)
		sh.errno = int32(err)
		if err == unix.EACCES {
			denied = true
		} else if err != unix.ENOENT && err != unix.ENOTDIR {
			return
		}
	}
	if denied {
		sh.errno = int32(unix.EACCES)
	}
}
