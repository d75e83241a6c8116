package supervise

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A refresher covers hidden places anew while a session runs. A mount lies on a
// file, not on a name. Most host programs write a file by renaming another one
// over it. The kernel then removes the mount in every other mount namespace
// (since Linux 3.18), and the guest would see the new file. So the refresher
// watches the directories on the way to each place, enters the guest's
// namespaces and covers files that have become visible. A file that is shown in
// another form is hidden then.
//
// Between the rename and the new cover the guest can open the new file: for
// some 0.2 ms, for several on a busy machine. A guest that tries without a
// pause succeeds in that time again and again; one that merely looks later
// does not. Changes that another machine makes on a network file system are
// not told at all (inotify(7)).
type refresher struct {
	root    int      // O_PATH of the guest's root
	mount   *os.File // the guest's mount namespace
	user    int      // the user namespace that owns it
	places  []string
	again   map[string]string // with what places are covered, if not with something empty
	private map[uint64]bool   // devices of the session's own file systems
	guest   Lived

	nudges  *nudges             // tell of changes first, and where inotify is used up
	lasting <-chan time.Time    // tells that inotify is worth its end
	lasts   bool                // it has told
	events  *os.File            // inotify
	inotify int                 // its descriptor
	dirs    map[string]int      // O_PATH of directories, in the guest, by path
	absent  map[string]error    // why one place at least did not find a directory
	names   map[string][]string // which names count, by directory
	watched map[int32][]string  // directories by watch
	ends    map[string]bool     // where places are, links resolved
	through map[string]bool     // directories and links on the way to one
	stop    atomic.Bool
	lock    sync.Mutex // guards events while it is replaced, and hit
	hit     []sandbox.Hit
	wake    chan struct{} // closed by close
	done    chan struct{}
}

// RuleHidden is the rule by which a session ends whose hidden places can't be
// kept hidden.
const RuleHidden = "isolation:hidden"

// run looks at every place once and then whenever something on the way to one
// has changed. It ends the guest if that fails.
func (k *refresher) run() {
	defer close(k.done)
	defer k.leave()
	defer func() { k.nudges.end() }()
	var err error
	if k.user, err = unix.IoctlRetInt(int(k.mount.Fd()), unix.NS_GET_USERNS); err != nil {
		k.end(fmt.Errorf("find the guest's user namespace: %w", err))
		return
	}
	defer unix.Close(k.user)
	if n, err := newNudges(); err == nil {
		k.nudges, k.lasting = n, time.After(UntilInotify)
	}
	for !k.stop.Load() {
		err := k.look()
		if err == nil {
			err = k.await()
		}
		if err != nil {
			k.end(err)
			return
		}
	}
}

// close ends the refresher. It may not be called twice.
func (k *refresher) close() {
	k.stop.Store(true)
	close(k.wake)
	k.lock.Lock()
	if k.events != nil {
		k.events.SetReadDeadline(time.Unix(1, 0)) // wakes await; the reader closes it
	}
	k.lock.Unlock()
	<-k.done
}

// end ends the guest for err, unless it is ending anyway.
func (k *refresher) end(err error) {
	select {
	case <-k.guest.Done():
		return
	default:
	}
	if k.stop.Load() {
		return
	}
	k.lock.Lock()
	k.hit = []sandbox.Hit{{
		Rule: RuleHidden, Killed: true,
		Reason: "a place that is hidden from the session was about to become visible, and could not be covered again: " + err.Error(),
		Remedy: "start the session again; where a limit of inotify is named, raise fs.inotify.max_user_instances or max_user_watches",
	}}
	k.lock.Unlock()
	k.guest.End()
}

// hits returns why the refresher has ended the guest, if it has.
func (k *refresher) hits() []sandbox.Hit {
	k.lock.Lock()
	defer k.lock.Unlock()
	return slices.Clone(k.hit)
}

// UntilInotify is how long signals tell a session of changes, before inotify does.
// The kernel ends an instance of inotify after a grace period of 4 to 20 ms, and
// the process that exits waits for it. A short session avoids that. A longer one
// uses inotify, because that does not wake it for names that do not count.
var UntilInotify = time.Second // another in tests

// leave is forget at the end, for which nothing of the session waits.
func (k *refresher) leave() {
	k.lock.Lock()
	if k.events != nil {
		go k.events.Close()
		k.events = nil
	}
	k.lock.Unlock()
	k.forget()
}

// forget closes the descriptors of the last look.
func (k *refresher) forget() {
	k.lock.Lock()
	if k.events != nil {
		k.events.Close()
		k.events = nil
	}
	k.lock.Unlock()
	k.nudges.forget()
	for _, fd := range k.dirs {
		unix.Close(fd)
	}
	k.dirs, k.absent, k.names, k.watched = map[string]int{}, map[string]error{}, map[string][]string{}, map[int32][]string{}
	k.ends, k.through = map[string]bool{}, map[string]bool{}
}

// open starts with no watches: of signals for a while, and where inotify's
// instances are used up.
func (k *refresher) open() error {
	k.forget()
	if k.nudges != nil && !k.lasts {
		return nil
	}
	k.lasts = false
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == unix.EMFILE && k.nudges != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch directories: %w (a limit of inotify)", err)
	}
	k.nudges.end()
	k.nudges = nil
	k.lock.Lock()
	defer k.lock.Unlock()
	k.events = os.NewFile(uintptr(fd), "inotify")
	k.inotify = fd // File.Fd would make it blocking
	if k.stop.Load() {
		k.events.SetReadDeadline(time.Unix(1, 0))
	}
	return nil
}

// look watches the way to every place and covers visible files. An existing
// watch reports what changes meanwhile.
func (k *refresher) look() error {
	err := k.lookOnce()
	if errors.Is(err, errUsedUp) {
		if k.nudges, err = newNudges(); err == nil {
			err = k.lookOnce()
		}
	}
	return err
}

// errUsedUp says that this user may watch no more by inotify.
var errUsedUp = errors.New("no watch of inotify is left; raise fs.inotify.max_user_watches")

func (k *refresher) lookOnce() error {
	if err := k.open(); err != nil {
		return err
	}
	for _, p := range k.places {
		if k.stop.Load() { // no place is kept any longer
			return nil
		}
		if err := k.place(p); err != nil && !k.stop.Load() {
			return err
		}
	}
	return nil
}

// maxTurns is how often a place may turn out to be another one, because of
// links that change, before that is taken for an attempt.
const maxTurns = 16

// place covers what p leads to. Few places have a link on the way, so that is
// asked only where the plain way ends at something else than a directory.
func (k *refresher) place(p string) error {
	k.ends[p] = true
	dir, err := k.approach(p)
	if err == nil {
		err = k.cover(dir, p)
	}
	if err == errLink || err == unix.ENOTDIR || err == unix.ELOOP {
		err = k.follow(p)
	}
	return ended(err)
}

// follow is place by way of links, which are watched as well.
func (k *refresher) follow(p string) error {
	links, end := layout.Follow(p)
	for range maxTurns {
		k.ends[end] = true
		for _, l := range links {
			k.through[l] = true
			if _, err := k.approach(l); ended(err) != nil {
				return err
			}
		}
		dir, err := k.approach(end)
		again, same := layout.Follow(p)
		switch {
		case same != end || !slices.Equal(again, links):
			links, end = again, same
			continue
		case err == nil:
			err = k.cover(dir, end)
		}
		if err != errLink {
			return err
		}
		links, end = layout.Follow(p)
	}
	return fmt.Errorf("%q leads somewhere else each time", p)
}

// errLink says that a symbolic link lies at a place.
var errLink = errors.New("a link")

// ended drops the errors that say that nothing is at a place, or nothing that
// the guest could reach either.
func ended(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || err == unix.EACCES {
		return nil
	}
	return err
}

// approach watches every directory on the way to p and returns the last one,
// as the guest sees it. It errs with the errno by which the way ends earlier.
func (k *refresher) approach(p string) (dir int, err error) {
	at := "/"
	for rest := strings.TrimPrefix(p, "/"); ; {
		name, more, deeper := strings.Cut(rest, "/")
		fd, err := k.dir(at)
		if err == nil {
			err = k.watch(at, fd, name)
		}
		if err != nil || !deeper {
			return fd, err
		}
		at, rest = path.Join(at, name), more
		k.through[at] = true
	}
}

// dir opens a directory of the guest, following no link; its parent has been
// opened before. What one place did not find is not looked for again.
func (k *refresher) dir(p string) (int, error) {
	if fd, ok := k.dirs[p]; ok {
		return fd, nil
	}
	if k.absent[p] == unix.ENOENT { // if it comes now, that is told: its parent is watched
		return -1, unix.ENOENT
	}
	in, name := k.root, "."
	if p != "/" {
		in, name = k.dirs[path.Dir(p)], path.Base(p)
	}
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		k.absent[p] = err
		return fd, err
	}
	k.dirs[p] = fd
	return fd, nil
}

const refresherEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// watch has changes of name in a directory told. In the session's own file
// systems no program of the host changes anything.
func (k *refresher) watch(p string, fd int, name string) error {
	if slices.Contains(k.names[p], name) {
		return nil
	}
	k.names[p] = append(k.names[p], name)
	if len(k.names[p]) > 1 || k.isPrivate(fd) {
		return nil
	}
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	if k.nudges != nil {
		return k.nudges.watch(p, link)
	}
	wd, err := unix.InotifyAddWatch(k.inotify, link, refresherEvents)
	if err == unix.EACCES && unix.Access(link, unix.W_OK) != nil {
		return nil // this user's programs can rename nothing here
	}
	if err == unix.ENOSPC {
		err = errUsedUp
	}
	if err != nil {
		return fmt.Errorf("watch %q: %w", p, err)
	}
	k.watched[int32(wd)] = append(k.watched[int32(wd)], p)
	return nil
}

// isPrivate reports whether a directory lies in a file system of the session.
func (k *refresher) isPrivate(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && k.private[st.Dev]
}

// cover hides a place in the guest's directory dir, if something is there that
// no mount lies on. It errs with errLink where that is a link.
func (k *refresher) cover(dir int, p string) error {
	for range maxTurns {
		var st unix.Statx_t
		err := unix.Statx(dir, path.Base(p), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE, &st)
		switch kind := st.Mode & unix.S_IFMT; {
		case err != nil:
			return ended(err)
		case st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 || k.isPrivate(dir):
			return nil
		case kind == unix.S_IFLNK:
			return errLink
		default:
			err = k.attach(dir, p, uint32(kind))
		}
		// It may have been replaced since. If not, it is covered: look again.
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EISDIR) {
			return fmt.Errorf("hide %q: %w", p, err)
		}
	}
	return fmt.Errorf("hide %q: it is replaced again and again", p)
}

// attach mounts the cover from inside, on a file of that kind. The file is opened
// before, as its name may be another's a moment later: a cover on a link would
// leave the link's target uncovered. No path of the host's is followed there: the
// directory is open, and p's last name is its entry, link or not.
func (k *refresher) attach(dir int, p string, kind uint32) error {
	place, err := unix.Openat(dir, path.Base(p), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err := unix.Fstat(place, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != kind {
		return unix.ENOENT // what was seen there
	}
	with := layout.HiddenFile
	if kind == unix.S_IFDIR {
		with = layout.HiddenDir
	} else if file := k.again[p]; file != "" {
		with = file
	}
	prog := &rawproc.Program{}
	tree := prog.NewSlot()
	prog.Call("enter the guest's user namespace", unix.SYS_SETNS, k.user, unix.CLONE_NEWUSER)
	prog.Call("enter the guest's mount namespace", unix.SYS_SETNS, int(k.mount.Fd()), unix.CLONE_NEWNS)
	prog.Call("clone "+with, unix.SYS_OPEN_TREE, unix.AT_FDCWD, with, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW).Into(tree)
	prog.Call("cover the place", unix.SYS_MOVE_MOUNT, tree, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return rawproc.Apart(prog)
}
