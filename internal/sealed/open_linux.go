package sealed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// Open opens the guest's directory in the sealed directory dir as O_PATH; below its
// Path it can be used like any other directory. Unless the caller is root or has the
// directory open from Create, Open needs a process in a user namespace of its own, and
// fails with EACCES where ordinary users can't make one.
func Open(dir string) (*os.File, error) {
	inside := Inside(dir)
	if f, ok := made.Load(dir); ok {
		if again, err := reopen(f.(*os.File)); err == nil {
			return again, nil
		} // who created it has closed it
	}
	fd, err := unix.Open(inside, openFlags, 0)
	if err == nil {
		return os.NewFile(uintptr(fd), inside), nil
	}
	if err != unix.EACCES {
		return nil, &os.PathError{Op: "open", Path: inside, Err: err}
	}
	f, helperErr := openApart(inside)
	if helperErr != nil {
		return nil, &os.PathError{Op: "open", Path: inside, Err: errors.Join(err, helperErr)}
	}
	return f, nil
}

// reopen opens a directory once more.
func reopen(dir *os.File) (*os.File, error) {
	c, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	control := c.Control(func(d uintptr) { fd, err = unix.FcntlInt(d, unix.F_DUPFD_CLOEXEC, 3) })
	if err = errors.Join(control, err); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), dir.Name()), nil
}

// Reach opens p as O_PATH, and does not follow a link at its end. If p lies in a
// sealed directory, that is opened as by Open, and no link below it is followed:
// the guest makes links there, and modes do not keep root from following them.
func Reach(p string) (*os.File, error) {
	seal, rest, ok := Split(p)
	if !ok || !isSealed(seal) {
		fd, err := unix.Open(p, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: p, Err: err}
		}
		return os.NewFile(uintptr(fd), p), nil
	}
	inside, err := Open(seal)
	if err != nil || rest == "" {
		return inside, err
	}
	defer inside.Close()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(inside.Fd()), rest, &how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p, Err: err}
	}
	return os.NewFile(uintptr(fd), p), nil
}

const openFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// isSealed reports whether dir is a sealed directory.
func isSealed(dir string) bool {
	fi, err := os.Lstat(dir)
	return err == nil && fi.IsDir() && fi.Mode().Perm() == 0
}

// openApart opens inside in a process that has every capability over the
// caller's own files and nothing else, and ends as soon as it has handed the
// directory over.
func openApart(inside string) (*os.File, error) {
	p := &rawproc.Program{}
	file, tree := p.NewSlot(), p.NewSlot()
	p.Call("die with the parent", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0)
	for _, m := range []struct{ file, text string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", fmt.Sprintf("%d %d 1", os.Geteuid(), os.Geteuid())},
		{"/proc/self/gid_map", fmt.Sprintf("%d %d 1", os.Getegid(), os.Getegid())},
	} {
		p.Call("open "+m.file, unix.SYS_OPENAT, unix.AT_FDCWD, m.file, unix.O_WRONLY|unix.O_CLOEXEC).Into(file)
		p.Call("write "+m.file, unix.SYS_WRITE, file, []byte(m.text), len(m.text))
		p.Call("close "+m.file, unix.SYS_CLOSE, file)
	}
	p.Call("open the sealed directory", unix.SYS_OPENAT, unix.AT_FDCWD, inside, openFlags).Into(tree)
	child, err := rawproc.Begin(rawproc.Config{Namespaces: unix.CLONE_NEWUSER, Program: p, Ready: []rawproc.Slot{tree}, Alone: true})
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	if err := child.Wait(); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(child.Ready()[0].Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), inside), nil
}
