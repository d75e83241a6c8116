package supervise

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// programs hold the programs of a guest, and see how they end. A nil one holds none.
type programs struct {
	*sandbox.Programs
	ep, wake int // epoll(7), and what ends the wait; -1 where no end is watched

	mu      sync.Mutex
	running map[int]int // processes that are watched, by their pidfd
	watched map[int]bool
}

// maxWatched bounds the processes whose end is waited for, each with a descriptor.
const maxWatched = 4096

func newPrograms(p *sandbox.Programs) *programs {
	if p == nil {
		return nil
	}
	held := &programs{Programs: p, ep: -1, wake: -1, running: map[int]int{}, watched: map[int]bool{}}
	if p.Ended == nil {
		return held
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	wake, err2 := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil && err2 == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	if err != nil || err2 != nil { // then nobody is told of an end
		unix.Close(ep)
		unix.Close(wake)
		return held
	}
	held.ep, held.wake = ep, wake
	go held.watch()
	return held
}

func (p *programs) rule(program sandbox.Program) sandbox.ProgramRule {
	if p.Rule == nil {
		return sandbox.ProgramRule{}
	}
	return p.Rule(program)
}

// starts tells of a program that a thread is about to become, and watches its process.
func (p *programs) starts(tid int, program sandbox.Program) {
	if p.Started == nil {
		return
	}
	program.PID = tid
	fd, err := unix.PidfdOpen(tid, 0)
	if err != nil { // not the first thread of its process
		if program.PID = field(tid, "Tgid:"); program.PID > 0 {
			fd, err = unix.PidfdOpen(program.PID, 0)
		}
	}
	if err != nil {
		p.Started(program)
		return
	}
	info := pidfdInfo{mask: infoPID}
	if info.read(fd) {
		program.Parent = int(info.ppid)
	} else {
		program.Parent = field(program.PID, "PPid:")
	}
	p.Started(program)
	if !p.add(fd, program.PID) {
		unix.Close(fd)
	}
}

// add watches a process, unless it is watched already.
func (p *programs) add(fd, pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ep < 0 || p.watched[pid] || len(p.running) >= maxWatched {
		return false
	}
	if unix.EpollCtl(p.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}) != nil {
		return false
	}
	p.running[fd], p.watched[pid] = pid, true
	return true
}

// watch tells of ends until close.
func (p *programs) watch() {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(p.ep, events, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == p.wake {
				p.shut()
				return
			}
			p.ended(int(e.Fd), e.Events)
		}
	}
}

// ended tells of the end of one process. The kernel says how it ended once its parent
// has asked (since Linux 6.15), which it tells as EPOLLHUP.
func (p *programs) ended(fd int, events uint32) {
	info := pidfdInfo{mask: infoExit}
	reads := info.read(fd)
	var code *int
	switch {
	case reads && info.mask&infoExit != 0:
		code = new(int)
		*code = exitCode(unix.WaitStatus(info.exit))
	case reads && events&unix.EPOLLHUP == 0:
		_ = unix.EpollCtl(p.ep, unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Fd: int32(fd)}) // EPOLLHUP alone
		return
	}
	p.mu.Lock()
	pid := p.running[fd]
	delete(p.running, fd)
	delete(p.watched, pid)
	p.mu.Unlock()
	unix.Close(fd)
	p.Ended(pid, code)
}

// exitCode is that of a shell.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// close ends the wait.
func (p *programs) close() {
	if p != nil && p.wake >= 0 {
		_, _ = unix.Write(p.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it has room
	}
}

// shut closes the remaining watches.
func (p *programs) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for fd := range p.running {
		unix.Close(fd)
	}
	unix.Close(p.ep)
	unix.Close(p.wake)
	p.ep, p.running = -1, nil
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h.
type pidfdInfo struct {
	mask, cgroup    uint64
	pid, tgid, ppid uint32
	ids             [8]uint32
	exit            int32
}

const (
	getInfo  = 0xc0<<24 | uintptr(unsafe.Sizeof(pidfdInfo{}))<<16 | 0xff<<8 | 11 // PIDFD_GET_INFO
	infoPID  = 1 << 0
	infoExit = 1 << 3
)

// read asks the kernel, which knows this since Linux 6.13.
func (i *pidfdInfo) read(fd int) bool {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getInfo, uintptr(unsafe.Pointer(i)))
	return errno == 0
}

// field is a number of a process' status file, or 0.
func field(pid int, name string) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"+name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.Atoi(string(bytes.TrimSpace(line)))
	return n
}
