package supervise

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// openRequest is one open(2) for writing.
type openRequest struct {
	path  string // absolute
	flags int
	mode  uint32
	links int  // followed so far
	own   bool // of a descriptor that the caller may write already
}

func handleOpen(c *call) error {
	return c.open(unix.AT_FDCWD, c.Args[0], int(int32(c.Args[1])), uint32(c.Args[2]))
}

func handleOpenat(c *call) error {
	return c.open(int32(c.Args[0]), c.Args[1], int(int32(c.Args[2])), uint32(c.Args[3]))
}

func handleCreat(c *call) error {
	return c.open(unix.AT_FDCWD, c.Args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, uint32(c.Args[1]))
}

// keptFlags are those of the caller's flags that decide which file is opened
// and how; set-ID bits of the mode are dropped as chmod's are.
const keptFlags = unix.O_ACCMODE | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK | unix.O_SYNC | unix.O_DSYNC |
	unix.O_DIRECT | unix.O_NOATIME | unix.O_LARGEFILE | unix.O_ASYNC

func (c *call) open(dirfd int32, addr uint64, flags int, mode uint32) error {
	if fd, ok := c.fastCreate(dirfd, addr, flags, mode); ok {
		return c.give(fd, flags&unix.O_CLOEXEC != 0)
	}
	abs, err := c.path(dirfd, addr)
	if err != nil {
		return err
	}
	if flags&(unix.O_CREAT|unix.O_DIRECTORY) == unix.O_CREAT|unix.O_DIRECTORY {
		return unix.EINVAL // open(2), since Linux 6.4
	}
	fd, err := c.openAt(openRequest{path: abs, flags: flags, mode: mode & 0o1777})
	if err != nil {
		return c.ofMounts(abs, err)
	}
	return c.give(fd, flags&unix.O_CLOEXEC != 0)
}

// checkSpelled refuses a protected name also if it is a link: a program of the
// host executes its target.
func (c *call) checkSpelled(abs string) error {
	if r, rule := c.s.names.ByName(layout.OpOpen, path.Clean(abs), false); r == layout.RulingDeny && !c.inPrivateGit(abs) {
		return c.denied(layout.OpOpen, abs, rule)
	}
	return nil
}

// inPrivateGit reports whether the existing part of a path ends in a private
// git directory, links followed.
func (c *call) inPrivateGit(abs string) bool {
	for dir := path.Dir(path.Clean(abs)); ; dir = path.Dir(dir) {
		fd, err := c.openPath(dir, 0)
		if err == nil {
			defer unix.Close(fd)
			return c.s.git.holds(fd)
		}
		if err != unix.ENOENT || dir == "/" {
			return false
		}
	}
}

// give answers with a descriptor, which is the caller's from then on.
func (c *call) give(fd int, cloexec bool) error {
	if err := c.s.listener.ReturnFD(c.Call, fd, cloexec); err != nil {
		return err
	}
	return errAnswered
}

// openAt follows the caller's path link by link and opens the file there, or
// creates it. Links are followed here because /proc's own ones must be
// understood as the caller's, not as this process's.
func (c *call) openAt(r openRequest) (int, error) {
	for range maxLinks {
		var err error
		if r.path, err = c.expand(r.path); err != nil {
			return -1, err
		}
		if n, ok := c.descriptorPath(r.path); ok {
			return c.reopenDescriptor(n, r)
		}
		if err := c.checkSpelled(r.path); err != nil {
			return -1, err
		}
		if r.flags&unix.O_CREAT == 0 {
			return c.openExisting(r)
		}
		next, fd, err := c.openOrCreate(r)
		if err != nil || next == "" {
			return fd, err
		}
		r.path = next
	}
	return -1, unix.ELOOP
}

// openOrCreate handles O_CREAT. It returns the target of a link that has to
// be followed instead.
func (c *call) openOrCreate(r openRequest) (next string, fd int, err error) {
	p, err := c.place(r.path)
	if err == errNoName {
		if r.flags&unix.O_EXCL != 0 {
			return "", -1, unix.EEXIST
		}
		return "", -1, unix.EISDIR
	}
	if err != nil {
		return c.viaLink(r.path, err)
	}
	defer p.close()
	if p.slash {
		return "", -1, unix.EISDIR
	}
	st, err := p.stat()
	switch {
	case err == unix.ENOENT:
		fd, err := c.create(p, r)
		if err == unix.EEXIST && r.flags&unix.O_EXCL == 0 {
			return r.path, -1, nil // somebody was faster: look again
		}
		return "", fd, err
	case err != nil:
		return "", -1, err
	case r.flags&unix.O_EXCL != 0:
		return "", -1, unix.EEXIST
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return c.followed(p, r)
	}
	fd, err = c.openPlace(p, r)
	return "", fd, err
}

func (c *call) followed(p place, r openRequest) (string, int, error) {
	target, ok := p.link()
	if r.flags&unix.O_NOFOLLOW != 0 || !ok {
		return "", -1, unix.ELOOP
	}
	return target, -1, nil
}

// viaLink explains why a directory could not be resolved: through one of
// /proc's links, which are not followed for writing.
func (c *call) viaLink(abs string, err error) (string, int, error) {
	if err == unix.ELOOP && strings.HasPrefix(path.Clean(abs), "/proc/") {
		return "", -1, unix.EACCES
	}
	return "", -1, err
}

// create makes a new file and opens it.
func (c *call) create(p place, r openRequest) (int, error) {
	v := c.ruleAt(layout.OpOpen, p, false)
	switch v.ruling {
	case layout.RulingGit:
		if err := c.makeGit(p, r.mode, false); err != nil {
			return -1, err
		}
		return unix.Openat(p.dir, p.name, r.flags&keptFlags|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	case layout.RulingDeny:
		return -1, c.denied(layout.OpOpen, p.abs, v.rule)
	}
	if err := c.withUmask(); err != nil {
		return -1, err
	}
	fd, err := unix.Openat(p.dir, p.name, r.flags&keptFlags|unix.O_CREAT|unix.O_EXCL|unix.O_NOCTTY|unix.O_CLOEXEC, r.mode) // O_EXCL follows no link
	return c.settled(fd, err, v, p.abs, p.unlink)
}

// settled is settle for a descriptor that was just opened.
func (c *call) settled(fd int, err error, v verdict, abs string, undo func() error) (int, error) {
	if err != nil {
		return -1, err
	}
	if err := c.settle(v, layout.OpOpen, abs, undo); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openPlace opens what exists at a place and is no link.
func (c *call) openPlace(p place, r openRequest) (int, error) {
	fd, err := unix.Openat(p.dir, p.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return c.openFile(fd, r)
}

// openExisting handles an open without O_CREAT.
func (c *call) openExisting(r openRequest) (int, error) {
	fd, err := c.openPath(r.path, uint64(r.flags&(unix.O_NOFOLLOW|unix.O_DIRECTORY)))
	if err == unix.ENOENT || err == unix.ELOOP {
		p, perr := c.place(r.path)
		if perr != nil {
			_, _, err = c.viaLink(r.path, err)
			return -1, err
		}
		defer p.close()
		if target, ok := p.link(); ok && r.flags&unix.O_NOFOLLOW == 0 && r.links < maxLinks {
			r.path, r.links = target, r.links+1
			return c.openAt(r)
		}
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return c.openFile(fd, r)
}

// openFile opens the file of an O_PATH descriptor for the caller, after
// checking its kind and place.
func (c *call) openFile(fd int, r openRequest) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	abs, err := realPath(fd)
	if err != nil {
		return -1, err
	}
	flags := r.flags&keptFlags | unix.O_NOCTTY
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.openTemporary(fd, r)
	case unix.S_IFCHR:
		return c.openDevice(fd, uint64(st.Rdev), flags)
	case unix.S_IFIFO:
		if path.IsAbs(abs) && !r.own {
			if _, err := c.check(layout.OpOpen, place{dir: fd, abs: abs}); err != nil {
				return -1, err
			}
			if _, below := c.s.names.Relative(abs); !below && !c.s.sockets.private[st.Dev] {
				return -1, unix.EACCES // of the host: a read-only mount lets writes to it through
			}
		}
		return c.openFIFO(fd, flags)
	case unix.S_IFLNK:
		return -1, unix.ELOOP
	case unix.S_IFSOCK:
		return -1, unix.ENXIO
	}
	if path.IsAbs(abs) && isProc(fd) {
		return -1, unix.EACCES // a file of /proc opened by another process would act on that one
	}
	v, err := c.check(layout.OpOpen, place{dir: fd, abs: abs})
	if err != nil {
		return -1, err
	}
	own, err := c.apart(fd, abs, &st, r)
	if err != nil {
		return -1, err
	}
	if own != fd {
		defer unix.Close(own)
	}
	got, err := reopen(own, flags, 0)
	return c.settled(got, err, v, abs, func() error { return nil })
}

func isProc(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) != nil || fs.Type == unix.PROC_SUPER_MAGIC
}

// openTemporary handles O_TMPFILE, the one way to open a directory for writing.
func (c *call) openTemporary(fd int, r openRequest) (int, error) {
	if r.flags&unix.O_TMPFILE != unix.O_TMPFILE {
		return -1, unix.EISDIR
	}
	if err := c.withUmask(); err != nil {
		return -1, err
	}
	return reopen(fd, r.flags&(keptFlags|unix.O_EXCL)|unix.O_TMPFILE, r.mode)
}

// Device numbers, from the kernel's Documentation/admin-guide/devices.txt.
var (
	deviceTTY     = unix.Mkdev(5, 0)
	deviceMinimal = []uint64{unix.Mkdev(1, 3), unix.Mkdev(1, 5), unix.Mkdev(1, 7), unix.Mkdev(1, 8), unix.Mkdev(1, 9), unix.Mkdev(5, 2), deviceTTY}
)

// givenDevices are the numbers of the devices that a session has: the minimal
// set, and those that its plan names.
func givenDevices(p *layout.Plan) map[uint64]bool {
	given := map[uint64]bool{}
	for _, d := range deviceMinimal {
		given[d] = true
	}
	names := slices.Clone(p.Landlock.Writable)
	for _, m := range p.Mounts {
		for _, d := range m.Devices {
			names = append(names, "/dev/"+d)
		}
	}
	for _, name := range names {
		var st unix.Stat_t
		if layout.Below(name, "/dev") && unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
			given[uint64(st.Rdev)] = true
		}
	}
	return given
}

// ownTerminal reports whether dev is the terminal that controls the caller.
// Where /dev/pts is the host's, the others are those of other programs.
func (c *call) ownTerminal(dev uint64) bool {
	nr, err := c.terminal()
	return err == nil && dev == unix.Mkdev(136, uint32(nr))
}

// isTerminal reports whether dev is the guest's side of a pseudo-terminal.
func isTerminal(dev uint64) bool { return unix.Major(dev) >= 136 && unix.Major(dev) <= 143 }

// openDevice opens a device of the guest's /dev, and only those that the session
// was given: this process may open more than the guest, wherever a node lies.
// /dev/tty means the caller's terminal, so it is replaced by that terminal's own
// device.
func (c *call) openDevice(fd int, dev uint64, flags int) (int, error) {
	if !c.s.devices[dev] && !isTerminal(dev) || isTerminal(dev) && c.s.names.Only != nil && !c.ownTerminal(dev) {
		return -1, unix.EACCES
	}
	if dev != deviceTTY {
		return reopen(fd, flags&^unix.O_TRUNC, 0)
	}
	nr, err := c.terminal()
	if err != nil {
		return -1, err
	}
	pts, err := c.openPath("/dev/pts/"+strconv.Itoa(nr), 0)
	if err != nil {
		return -1, unix.ENXIO
	}
	defer unix.Close(pts)
	return reopen(pts, flags&^unix.O_TRUNC, 0)
}

// terminal returns the number of the caller's controlling terminal, field 7
// of /proc/PID/stat (proc_pid_stat(5)).
func (c *call) terminal() (int, error) {
	text, err := os.ReadFile(c.proc("stat"))
	if err != nil {
		return 0, unix.ENXIO
	}
	_, rest, _ := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 5 {
		return 0, unix.ENXIO
	}
	dev, err := strconv.ParseUint(fields[4], 10, 32)
	const ptsMajor = 136
	if err != nil || unix.Major(dev) != ptsMajor {
		return 0, unix.ENXIO
	}
	return int(unix.Minor(dev)), c.valid()
}

// openFIFO waits for a reader as the kernel would, without holding up other
// callers: an open with O_NONBLOCK fails until there is one.
func (c *call) openFIFO(fd, flags int) (int, error) {
	flags &^= unix.O_TRUNC
	got, err := reopen(fd, flags|unix.O_NONBLOCK, 0)
	if err == unix.ENXIO && flags&unix.O_NONBLOCK == 0 {
		dup, derr := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if derr != nil {
			return -1, derr
		}
		err = c.detach(func(later *call) error { return later.awaitReader(dup, flags) })
		if err != errAnswered {
			unix.Close(dup)
		}
		return -1, err
	}
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		err = unix.SetNonblock(got, false)
	}
	return got, err
}

// awaitReader opens a FIFO once somebody reads it, or gives up when the
// caller is gone.
func (c *call) awaitReader(fd, flags int) error {
	defer unix.Close(fd)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		got, err := reopen(fd, flags|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.SetNonblock(got, false)
			return c.give(got, c.wantsCloexec())
		}
		if err != unix.ENXIO || !c.s.listener.Valid(c.Call) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-c.s.stop:
			return unix.EINTR
		}
	}
}

// wantsCloexec reads O_CLOEXEC out of the caller's arguments.
func (c *call) wantsCloexec() bool {
	if c.Nr == unix.SYS_OPENAT {
		return c.Args[2]&unix.O_CLOEXEC != 0
	}
	return c.Args[1]&unix.O_CLOEXEC != 0 // open(2); creat(2) makes no sense on a FIFO it did not make
}

// reopenDescriptor opens the caller's descriptor n again. A descriptor it got
// from outside for reading stays for reading: the kernel would judge a new open
// by the host's mount, not by the guest's.
func (c *call) reopenDescriptor(n int, r openRequest) (int, error) {
	if r.flags&unix.O_EXCL != 0 && r.flags&unix.O_CREAT != 0 {
		return -1, unix.EEXIST
	}
	// One copy, of which all else is asked: the number may mean something else
	// a moment later.
	held, err := c.socket(n)
	if err != nil {
		return -1, unix.ENOENT
	}
	defer unix.Close(held)
	fd, err := reopen(held, unix.O_PATH, 0)
	if err != nil {
		return -1, unix.ENOENT
	}
	defer unix.Close(fd)
	flags, err := unix.FcntlInt(uintptr(held), unix.F_GETFL, 0)
	r.own = err == nil && flags&unix.O_PATH == 0 && flags&unix.O_ACCMODE != unix.O_RDONLY
	if !r.own && !c.inGuest(fd) {
		return -1, unix.EACCES
	}
	return c.openFile(fd, r)
}

// inGuest reports whether a descriptor's path leads to the same file on the
// guest's own mounts.
func (c *call) inGuest(fd int) bool {
	abs, err := realPath(fd)
	if err != nil || !path.IsAbs(abs) {
		return err == nil // pipes, terminals and the like have no mount
	}
	own, err := c.openPath(abs, unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(own)
	var a, b unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_MNT_ID
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, want, &a) != nil || unix.Statx(own, "", unix.AT_EMPTY_PATH, want, &b) != nil {
		return false
	}
	return a.Ino == b.Ino && a.Mnt_id == b.Mnt_id
}
