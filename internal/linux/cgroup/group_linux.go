package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// removeWait is how long Remove tries: a killed process leaves its group only
// when the kernel has taken down its memory.
const removeWait = time.Second

// A Group is one session's control group: one directory in each hierarchy
// that its limits need.
type Group struct {
	name   string
	dirs   []dir
	procs  []*os.File
	limits Limits
}

// Limits returns the limits in force: New's, or lower ones of a group around
// Bawn.
func (g *Group) Limits() Limits { return g.limits }

// A dir is the part of a Group in one hierarchy.
type dir struct {
	version int
	path    string
	has     []string // the controllers it is there for
}

// New makes a group for a session with its limits set, and nobody in it. The
// session's name is part of the directory's name and takes letters, digits, -
// and _, at most 64. Where a controller can't be used the error is an
// [*Unavailable], and nothing is left behind.
func New(session string, l Limits) (*Group, error) {
	if err := errors.Join(checkName(session), l.check()); err != nil {
		return nil, err
	}
	me, err := self()
	if err != nil {
		return nil, err
	}
	trees, err := here()
	if err != nil {
		return nil, err
	}
	g := &Group{name: me.groupName(session), limits: l}
	if err := g.make(trees, l); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	return g, nil
}

// here reads which groups we are in and where they are mounted.
func here() ([]hierarchy, error) { return treesOf("/proc/self/cgroup") }

// treesOf is here for the process whose groups a file of /proc names.
func treesOf(name string) ([]hierarchy, error) {
	own, err := ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("control groups can't be read: %w", err)
	}
	info, err := ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("mounts can't be read: %w", err)
	}
	memberships, err := parseSelf(own)
	if err != nil {
		return nil, err
	}
	mounts, err := parseMounts(info)
	if err != nil {
		return nil, err
	}
	return layout(memberships, mounts), nil
}

func (g *Group) make(trees []hierarchy, l Limits) error {
	places, missing := choose(trees, l.controllers())
	if missing != nil {
		return &Unavailable{Missing: missing}
	}
	for _, p := range places {
		err := g.add(p, l)
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%w; every session needs a name of its own", err)
		}
		if err != nil {
			return &Unavailable{Missing: p.unavailable(err)}
		}
	}
	return nil
}

// add makes g's directory in one hierarchy, sets its limits and opens the
// file through which the guest joins.
func (g *Group) add(p place, l Limits) error {
	below, err := p.bounds()
	if err != nil {
		return err
	}
	d := dir{version: p.version, path: path.Join(p.dir, g.name), has: p.controllers}
	if err := unix.Mkdir(d.path, 0o755); err != nil {
		return fmt.Errorf("mkdir %q: %w", d.path, err)
	}
	g.dirs = append(g.dirs, d)
	if err := d.check(); err != nil {
		return err
	}
	if err := d.set(l.clamp(below)); err != nil {
		return err
	}
	g.limits = g.limits.clamp(below)
	f, err := openCgroup(path.Join(d.path, d.joinFile()), unix.O_WRONLY)
	if err != nil {
		return err
	}
	g.procs = append(g.procs, f)
	return nil
}

// joinFile is the file to which a process writes "0" to join. In version 1
// "tasks" moves only the writing thread, which is all of a forked child. That
// spares the kernel a lock that waits for a grace period (milliseconds).
func (d dir) joinFile() string {
	if d.version == 1 {
		return "tasks"
	}
	return "cgroup.procs"
}

// check makes sure that what we made is a control group (and not a plain
// directory below a mount point that lies), one that processes can join.
func (d dir) check() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(d.path, &fs); err != nil {
		return fmt.Errorf("statfs %q: %w", d.path, err)
	}
	if magic := int64(fs.Type); magic != unix.CGROUP_SUPER_MAGIC && magic != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%q is not in a control group file system", d.path)
	}
	if d.version == 1 {
		return nil
	}
	kind, err := d.read("cgroup.type")
	if err == nil && kind != "domain\n" {
		return fmt.Errorf("%q is of type %q, which takes no processes", d.path, kind)
	}
	return err
}

// set writes the limits of the controllers that d has. Every limit in l was
// asked for or is one of an ancestor, whose controllers d inherits.
func (d dir) set(l Limits) error {
	for _, c := range l.controllers() {
		if d.version == 1 && !slices.Contains(d.has, c) {
			continue
		}
		for _, s := range settings(c, d.version, l) {
			err := d.write(s.file, s.value)
			if err != nil && !(s.optional && errors.Is(err, unix.ENOENT)) {
				return err
			}
		}
	}
	return nil
}

func (d dir) read(file string) (string, error) { return ReadFile(path.Join(d.path, file)) }

// ReadFile reads a whole file that is made up as it is read, such as those of
// proc(5) and cgroups(7). It makes three system calls where os.ReadFile makes
// ten, since it does not offer the file to the poller.
func ReadFile(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	for n := 0; ; {
		got, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", &os.PathError{Op: "read", Path: name, Err: err}
		case got == 0:
			return string(buf[:n]), nil
		}
		if n += max(got, 0); n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

func (d dir) write(file, value string) error {
	return writeCgroup(path.Join(d.path, file), value)
}

func writeCgroup(name, value string) error {
	f, err := openCgroup(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	return nil
}

// openCgroup keeps the file in blocking mode: os.OpenFile would register it
// with the poller, and the child writes to it without Go's runtime.
func openCgroup(name string, flags int) (*os.File, error) {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ProcFiles returns the open files to which a forked child writes "0" to join the
// group, one for each hierarchy. They stay g's and are closed by Remove. The child
// must be single-threaded when it writes. A nil Group has no files.
func (g *Group) ProcFiles() []*os.File {
	if g == nil {
		return nil
	}
	return slices.Clone(g.procs)
}

// OpenProcs opens the files to which a process of any number of threads writes
// "0" to join the group with all of them, one for each hierarchy. They are the
// caller's, who closes them.
func (g *Group) OpenProcs() ([]*os.File, error) {
	var list []*os.File
	for _, d := range g.dirs {
		f, err := openCgroup(path.Join(d.path, "cgroup.procs"), unix.O_WRONLY)
		if err != nil {
			for _, f := range list {
				f.Close()
			}
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// Remove closes g's files and removes its directories, trying up to a second
// where processes are still on their way out. It kills nobody; see Kill.
// Removing a removed group does nothing.
func (g *Group) Remove() error {
	for _, f := range g.procs {
		f.Close()
	}
	g.procs = nil
	deadline := time.Now().Add(removeWait)
	var left []dir
	var errs []error
	for _, d := range g.dirs {
		if err := removeDir(d.path, deadline); err != nil {
			left, errs = append(left, d), append(errs, err)
		}
	}
	g.dirs = left
	return errors.Join(errs...)
}

func removeDir(name string, deadline time.Time) error {
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Rmdir(name)
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			return fmt.Errorf("rmdir %q: %w", name, err)
		}
		time.Sleep(wait)
	}
}
