package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/sigcatch"
)

// nudges tell a refresher that something has changed in a directory, by a signal:
// F_NOTIFY of fcntl(2). Unlike inotify it ends without cost and has no limit of
// instances (fs.inotify.max_user_instances is often 128, and each lasting session
// takes one). It does not say what has changed, so each name that counts is
// looked at.
type nudges struct {
	signals chan os.Signal
	release func() // signals
	dirs    []int  // the watched directories, for as long as it is open
}

// nudgeEvents are changes of names, which inotify is asked for too, again and
// again: DN_CREATE, DN_DELETE, DN_RENAME, DN_MULTISHOT of linux/fcntl.h. That
// the directory itself is moved is told of its parent.
const nudgeEvents = 0x4 | 0x8 | 0x10 | 0x80000000

// nudgePause bounds how much looking a busy directory causes.
const nudgePause = time.Millisecond

// newNudges errs where the kernel has no F_NOTIFY, or fs.dir-notify-enable is 0.
func newNudges() (*nudges, error) {
	n := &nudges{signals: make(chan os.Signal, 1)}
	if err := n.watch("/", "/"); err != nil {
		n.forget()
		return nil, err
	}
	var err error
	if n.release, err = sigcatch.Also(unix.SIGIO, n.signals); err != nil { // nothing else of this process is caught
		signal.Notify(n.signals, unix.SIGIO)
		n.release = func() { signal.Stop(n.signals) }
	}
	return n, nil
}

// watch has changes in the directory told that link leads to. The signal is for
// the process: by default it is for the thread that asks, which may end.
func (n *nudges) watch(p, link string) error {
	fd, err := unix.Open(link, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.EACCES && unix.Access(link, unix.W_OK) != nil {
		return nil // this user's programs can rename nothing here
	}
	if err == nil {
		n.dirs = append(n.dirs, fd)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, os.Getpid())
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, nudgeEvents)
	}
	if err != nil {
		return fmt.Errorf("watch %q by signals: %w", p, err)
	}
	return nil
}

// awaitNudge is await for nudges. Most of them are about names that do not
// count, of which a home directory has many, and each is told to every session.
func (k *refresher) awaitNudge() error {
	for {
		select {
		case <-k.nudges.signals:
		case <-k.wake:
			return nil
		case <-k.lasting:
			k.lasts = true
			return nil
		}
		if again, err := k.review(); again || err != nil {
			return err
		}
		time.Sleep(nudgePause)
	}
}

// review covers the file at a place, and reports whether something on the way
// to one has changed.
func (k *refresher) review() (again bool, err error) {
	for dir, names := range k.names {
		for _, name := range names {
			p := path.Join(dir, name)
			if k.ends[p] {
				err = k.cover(k.dirs[dir], p)
			}
			switch {
			case err == errLink:
				return true, nil
			case err != nil:
				return false, err
			case k.ends[p] && !k.through[p]:
			case !k.same(k.dirs[dir], name, p):
				return true, nil
			}
		}
	}
	return false, nil
}

// same reports whether a name leads to the directory that is open for it, whose
// number nothing else has as long as it is open, or still to nothing. A
// directory that was made while the places were looked at, one after the other,
// is not the same for those that came first.
func (k *refresher) same(dir int, name, p string) bool {
	var now, was unix.Stat_t
	err := unix.Fstatat(dir, name, &now, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	fd, open := k.dirs[p]
	if !open || k.absent[p] != nil {
		return err == unix.ENOENT || err == unix.EACCES
	}
	return err == nil && unix.Fstat(fd, &was) == nil && now.Dev == was.Dev && now.Ino == was.Ino
}

// forget watches nothing any more. It may be called for nil.
func (n *nudges) forget() {
	if n == nil {
		return
	}
	for _, fd := range n.dirs {
		unix.Close(fd)
	}
	n.dirs = nil
}

// end releases the signal. It may be called for nil.
func (n *nudges) end() {
	if n != nil {
		n.release()
	}
}
