package sealed

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

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
	return f[0], nil
}

// together is how many directories one process opens at most.
const together = 16

// Ahead opens the sealed directories on the way to paths, as many as it can in one
// process. Until done is called, Open and Reach find them open. What Ahead can't open
// they open for themselves, and say why that fails.
func Ahead(paths []string) (done func()) {
	seals := map[string]bool{}
	for _, p := range paths {
		dir, _, ok := Split(p)
		if _, open := made.Load(dir); ok && !open && isSealed(dir) && unix.Access(Inside(dir), unix.F_OK) == unix.EACCES {
			seals[dir] = true
		}
	}
	held := map[string]*os.File{}
	for dirs := range slices.Chunk(slices.Sorted(maps.Keys(seals)), together) {
		within := make([]string, len(dirs))
		for i, dir := range dirs {
			within[i] = Inside(dir)
		}
		files, err := openApart(within...)
		if err != nil {
			continue
		}
		for i, f := range files {
			if _, open := made.LoadOrStore(dirs[i], f); open {
				f.Close()
			} else {
				held[dirs[i]] = f
			}
		}
	}
	return func() {
		for dir, f := range held {
			made.CompareAndDelete(dir, f)
			f.Close()
		}
	}
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

// openApart opens directories in a process that has every capability over the
// caller's own files and nothing else, and ends as soon as it has handed the
// directories over: all of them, or none. They are at most as many as together.
func openApart(inside ...string) ([]*os.File, error) {
	p := &rawproc.Program{}
	file := p.NewSlot()
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
	var trees []rawproc.Slot
	for _, dir := range inside {
		tree := p.NewSlot()
		p.Call("open the sealed directory", unix.SYS_OPENAT, unix.AT_FDCWD, dir, openFlags).Into(tree)
		trees = append(trees, tree)
	}
	child, err := rawproc.Begin(rawproc.Config{Namespaces: unix.CLONE_NEWUSER, Program: p, Ready: trees, Alone: true})
	if err != nil {
		return nil, err
	}
	defer child.Kill()
	if err := child.Wait(); err != nil {
		return nil, err
	}
	files := make([]*os.File, 0, len(inside))
	for i, f := range child.Ready() {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(fd), inside[i]))
	}
	return files, nil
}
