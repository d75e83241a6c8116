package supervise

import (
	"bytes"
	"errors"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/notify"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A supervisor decides the calls by which a guest names files, opens them for
// writing, and connects UNIX sockets. It carries out itself what it allows:
// another thread could change a call that was checked and then left to the
// kernel. It works with the guest's own rights: on the guest's mounts, with its
// umask, and without a capability.
type supervisor struct {
	listener  *notify.Listener
	root      int // O_PATH of the guest's root
	names     *layout.Protector
	git       *gitMounts
	pool      *gitPool // nil for none
	links     *linkRule
	sockets   *sockets
	umasks    *umasks
	targets   []string // where something is mounted in the guest
	devices   map[uint64]bool
	knownDirs map[dirID]knownDir // nil where every call takes the slow path
	linked    fileSet            // files whose further names the guest has made
	fileSize  int64              // bytes of the largest file, or 0
	uid, gid  int                // who the guest is on the host, where that is not the caller
	onDenial  func(sandbox.Denial)
	programs  *programs // nil where none is held
	wait      sync.WaitGroup
	stop      chan struct{} // closed when the session ends
	later     atomic.Int32  // calls that wait, at most maxLater
	idle      chan detached // to threads that have answered one
}

// maxLater is how many calls may wait at a time, each on a thread.
// More fail with EAGAIN.
const maxLater = 256

// buffers are a thread's scratch memory.
type buffers struct {
	path   [unix.PathMax]byte
	status [2048]byte
}

// call is one supervised call with its arguments.
type call struct {
	*notify.Call
	s   *supervisor
	buf *buffers
}

// handlers answer by system call number; see table.
type handler func(*call) error

// done is the result of a handler that has answered by itself.
var errAnswered = errors.New("answered")

// run serves the listener until the guest has ended. It locks its thread,
// gives that thread's capabilities and umask up, and never gives the thread
// back to the runtime.
func (s *supervisor) run() {
	s.wait.Add(1)
	go onOwnThread(func() {
		defer s.wait.Done()
		defer s.sockets.close()
		defer s.umasks.close()
		defer s.programs.close()
		if err := s.restrictThread(); err != nil {
			s.listener.Close() // every supervised call fails from now on
			return
		}
		var n notify.Call
		buf := new(buffers)
		for {
			err := s.listener.Receive(&n)
			if err == unix.ENOENT {
				continue // killed while it waited
			}
			if err != nil {
				return
			}
			s.answer(&call{Call: &n, s: s, buf: buf})
		}
	})
}

// onOwnThread calls f on a thread that is never returned to the runtime and is
// not the process's first. The first thread determines how others identify the
// process and who may signal it (kill(2), proc(5)).
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	taken := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(taken)
		f()
	}()
	<-taken // until then no other goroutine uses this thread
	runtime.UnlockOSThread()
}

// restrictThread makes the calling thread the guest's user, and drops the
// capabilities that a guest has not: root's, which would override file modes. It
// also gives the thread a umask of its own.
func (s *supervisor) restrictThread() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if s.uid != unix.Geteuid() || s.gid != unix.Getegid() {
		if err := becomeThread(s.uid, s.gid); err != nil {
			return err
		}
	}
	h := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(h, &(&[2]unix.CapUserData{})[0])
}

// becomeThread makes another user of the calling thread alone, without further
// groups. The C library's functions of these names change every thread.
func becomeThread(uid, gid int) error {
	u, g := uintptr(uid), uintptr(gid)
	for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, g, g, g}, {unix.SYS_SETRESUID, u, u, u}} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}

// answer decides one call.
func (s *supervisor) answer(c *call) {
	h := table[c.Nr]
	err := error(unix.ENOSYS)
	if h != nil {
		err = h(c)
	}
	c.reply(err)
}

// reply answers with err unless the handler did.
func (c *call) reply(err error) {
	var errno unix.Errno
	switch {
	case err == errAnswered:
	case err == nil:
		c.s.listener.Return(c.Call, 0)
	case errors.As(err, &errno):
		c.s.listener.Fail(c.Call, errno)
	default:
		c.s.listener.Fail(c.Call, unix.EACCES)
	}
}

// detach lets a call that may block be answered later, from a thread of its
// own with the same few rights. It errs with EAGAIN if too many wait already.
func (c *call) detach(f func(*call) error) error {
	if c.s.later.Add(1) > maxLater {
		c.s.later.Add(-1)
		return unix.EAGAIN
	}
	n := *c.Call
	d := detached{&call{Call: &n, s: c.s}, f}
	select {
	case c.s.idle <- d:
	default:
		c.s.wait.Add(1)
		go onOwnThread(d.run)
	}
	return errAnswered
}

// idleThread is how long a thread waits for a further call: to make one costs
// more than most calls do.
const idleThread = time.Second

// detached is a call and what answers it.
type detached struct {
	*call
	f func(*call) error
}

// run answers d, and further calls as they come, on a thread of its own.
func (d detached) run() {
	s := d.s
	defer s.wait.Done()
	restricted := s.restrictThread()
	buf := new(buffers)
	for more := true; more; {
		err := restricted
		if d.buf = buf; err == nil {
			err = d.f(d.call)
		}
		d.reply(err)
		s.later.Add(-1)
		if restricted != nil {
			return // another thread may succeed
		}
		d, more = s.next()
	}
}

// next waits for a call to be answered later. It reports false if no call has
// come for a while, or none will.
func (s *supervisor) next() (detached, bool) {
	over := time.NewTimer(idleThread)
	defer over.Stop()
	select {
	case d := <-s.idle:
		return d, true
	case <-over.C:
	case <-s.stop:
	}
	return detached{}, false
}

// str reads a NUL-terminated string of the caller, at most PATH_MAX bytes.
func (c *call) str(addr uint64) (string, error) {
	buf := c.buf.path[:]
	n := 0
	for n < len(buf) {
		// A page at a time: the string may end just before an unmapped one.
		chunk := min(len(buf)-n, 4096-int((addr+uint64(n))%4096))
		got, err := c.read(addr+uint64(n), buf[n:n+chunk])
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(buf[n:n+got], 0); i >= 0 {
			return string(buf[:n+i]), c.valid()
		}
		n += got
	}
	return "", unix.ENAMETOOLONG
}

// read copies the caller's memory.
func (c *call) read(addr uint64, buf []byte) (int, error) {
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := unix.ProcessVMReadv(int(c.TID), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}, 0)
	if err != nil || n == 0 {
		return 0, unix.EFAULT
	}
	return n, nil
}

// valid errs if the caller is gone, so that the data may be another's.
func (c *call) valid() error {
	if !c.s.listener.Valid(c.Call) {
		return unix.ENOENT
	}
	return nil
}

// proc is a path in the caller's /proc directory, as this process sees it.
func (c *call) proc(name string) string {
	return "/proc/" + strconv.FormatUint(uint64(c.TID), 10) + "/" + name
}

// status returns a field of the caller's /proc/TID/status.
func (c *call) status(field string) (string, error) {
	fd, err := unix.Open(c.proc("status"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", unix.ENOENT
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, c.buf.status[:])
	if err != nil || n <= 0 {
		return "", unix.ENOENT
	}
	for line := range strings.Lines(string(c.buf.status[:n])) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v), c.valid()
		}
	}
	return "", unix.ENOENT
}

// withUmask makes the caller's umask this thread's.
func (c *call) withUmask() error {
	mask, err := c.umask()
	if err == nil {
		unix.Umask(mask)
	}
	return err
}

// base is the absolute path against which the caller's relative paths count.
func (c *call) base(dirfd int32) (string, error) {
	link := c.proc("cwd")
	if dirfd != unix.AT_FDCWD {
		link = c.proc("fd/" + strconv.Itoa(int(dirfd)))
	}
	p, err := os.Readlink(link)
	if err != nil {
		return "", unix.EBADF
	}
	if !path.IsAbs(p) {
		return "", unix.ENOTDIR
	}
	return p, c.valid()
}
