package supervise

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// To read a thread's umask from /proc costs more than all else that is done to create a
// file: the kernel writes the whole of /proc/TID/status for it. So it is kept until a
// thread of the session calls umask(2), which is held for that alone.

const (
	// maxUmasks bounds the threads whose umask is kept, each with a descriptor.
	maxUmasks = 8
	// umaskCall is how long a call of umask(2) may take once it was let go, if its thread
	// makes no further call that is held. A thread that is stopped for longer may leave the
	// other threads of its process with files of its old umask.
	umaskCall = time.Second
)

// umasks are those of threads of the guest.
type umasks struct {
	lock sync.Mutex
	kept map[uint32]keptUmask
	// calling is the thread whose umask(2) the kernel may not have carried out yet, or 0
	// for several. Until the call returns, or until that time, no umask is kept: threads
	// share it.
	calling uint32
	until   time.Time
}

// keptUmask is that of one thread, whose directory in /proc is open: another thread that
// gets the same ID is not found there.
type keptUmask struct{ proc, mask int }

func newUmasks() *umasks { return &umasks{kept: map[uint32]keptUmask{}} }

// umask returns the caller's.
func (c *call) umask() (int, error) {
	u := c.s.umasks
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.calling == c.TID {
		u.until = time.Time{} // it is back from umask(2)
	}
	if k, ok := u.kept[c.TID]; ok {
		if unix.Faccessat2(k.proc, "cwd", unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return k.mask, c.valid()
		}
		u.drop(c.TID)
	}
	mask, err := c.readUmask()
	if err == nil && time.Now().After(u.until) {
		u.keep(c, mask)
	}
	return mask, err
}

// proc returns the open /proc directory of a thread whose umask is kept.
func (u *umasks) proc(tid uint32) (int, bool) {
	u.lock.Lock()
	defer u.lock.Unlock()
	k, ok := u.kept[tid]
	return k.proc, ok
}

// readUmask asks the kernel.
func (c *call) readUmask() (int, error) {
	text, err := c.status("Umask")
	if err != nil {
		return 0, err
	}
	mask, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0, unix.EACCES
	}
	return int(mask), nil
}

// keep notes what was read. Where it can't, it is read again next time.
func (u *umasks) keep(c *call, mask int) {
	if len(u.kept) >= maxUmasks {
		u.forget()
	}
	proc, err := unix.Open(strings.TrimSuffix(c.proc(""), "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if c.valid() != nil { // the directory may be another thread's
		unix.Close(proc)
		return
	}
	u.kept[c.TID] = keptUmask{proc, mask}
}

func (u *umasks) drop(tid uint32) {
	unix.Close(u.kept[tid].proc)
	delete(u.kept, tid)
}

func (u *umasks) forget() {
	for tid := range u.kept {
		u.drop(tid)
	}
}

// handleUmask lets the kernel carry out umask(2). Its argument is not a pointer, so
// it can't change meanwhile.
func handleUmask(c *call) error {
	u := c.s.umasks
	u.lock.Lock()
	defer u.lock.Unlock()
	u.forget()
	now := time.Now()
	if u.calling != c.TID && now.Before(u.until) {
		u.calling = 0
	} else {
		u.calling = c.TID
	}
	u.until = now.Add(umaskCall)
	if err := c.s.listener.Continue(c.Call); err != nil {
		return err
	}
	return errAnswered
}

// close closes the descriptors.
func (u *umasks) close() {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.forget()
}
