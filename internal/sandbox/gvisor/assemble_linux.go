package gvisor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A tree is a part of the host's files that nothing shows yet.
type tree struct {
	mount
	fd    int // of open_tree(2), or -1 for what is made anew
	layer int // of a copy, likewise
}

// What hidden places are covered with: entries of a read-only file system, so
// that their owner, who is the guest, can't open them up.
const (
	covers    = scratch + "/covers"
	coverDir  = covers + "/dir"
	coverFile = covers + "/file"
)

// assemble makes the guest's root at rootAt, in a tmpfs that covers /tmp in this
// mount namespace, and returns a path of runsc that holds there. Everything that
// is shown is opened first: it may lie below /tmp.
func assemble(a *launch) (runsc string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return "", at("keep mounts to ourselves", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return "", at("mount /proc", err)
	}
	engine, err := unix.Open(a.Runsc, unix.O_PATH, 0) // stays open for runsc
	if err != nil {
		return "", at("open runsc", err)
	}
	trees, err := openAll(a)
	if err != nil {
		return "", err
	}
	if err := layOut(); err != nil {
		return "", err
	}
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return "", at(t.Kind+" "+t.Target, err)
		}
	}
	if a.Resolver != nil {
		if err := a.Resolver.show(); err != nil {
			return "", at("show "+a.Resolver.Target, err)
		}
	}
	return fdPath(engine), nil
}

// show puts the file in its place.
func (r *Resolver) show() error {
	source := scratch + "/resolv.conf"
	if err := os.WriteFile(source, []byte(r.Text), 0o644); err != nil {
		return err
	}
	m := mount{Mount: layout.Mount{Kind: layout.KindBindRO, Source: source, Target: r.Target, File: true, Make: r.Make}}
	fd, err := m.open()
	if err != nil {
		return err
	}
	t := tree{m, fd, -1}
	return t.attach()
}

// openAll opens every source, before anything is covered.
func openAll(a *launch) ([]tree, error) {
	var list []tree
	for _, m := range a.Mounts {
		t := tree{m, -1, -1}
		if m.Source != "" {
			var err error
			if t.fd, err = m.open(); err != nil {
				return nil, at("open "+m.Source, err)
			}
		}
		if m.Kind == layout.KindCopy {
			layer := mount{Mount: layout.Mount{Kind: layout.KindBind, Source: m.Layer}, Dev: m.LayerDev, Ino: m.LayerIno}
			var err error
			if t.layer, err = layer.open(); err != nil {
				return nil, at("open "+m.Layer, err)
			}
		}
		list = append(list, t)
	}
	self := mount{Mount: layout.Mount{Kind: layout.KindBindRO, Source: a.Program, Target: program, File: true, Make: []string{program}}}
	fd, err := self.open()
	if err != nil {
		return nil, at("open "+a.Program, err)
	}
	return append(list, tree{self, fd, -1}), nil
}

// open clones a part of the host's tree, as the plan saw it, with the flags that
// it is to have.
func (m *mount) open() (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	if m.Ino != 0 && (st.Dev != m.Dev || st.Ino != m.Ino) {
		return -1, errors.Join(errors.New("something else is there than when the session was planned"), unix.Close(fd))
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.Kind != layout.KindBind {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// layOut makes the places of the launcher's own.
func layOut() error {
	if err := unix.Mount("tmpfs", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
		return at("mount "+scratch, err)
	}
	for _, dir := range []string{stateAt, bundle, rootAt, covers, copyAt} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return at("make "+dir, err)
		}
	}
	if err := unix.Mount("tmpfs", covers, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=700"); err != nil {
		return at("mount "+covers, err)
	}
	err := errors.Join(unix.Mkdir(coverDir, 0), unix.Mknod(coverFile, unix.S_IFREG, 0))
	if err == nil {
		err = unix.Mount("", covers, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	return at("make covers", err)
}

// attach shows a tree in the guest's root, or makes it there.
func (t *tree) attach() error {
	to := rootAt
	if t.Target != "/" {
		to += t.Target
	}
	inner := len(t.Make) > 0 && below(t.Make[0], t.Target)
	if !inner {
		if err := t.makePlaces(); err != nil {
			return err
		}
	}
	switch t.Kind {
	case layout.KindTmpfs:
		if err := unix.Mount("tmpfs", to, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options(t.SizeMB, t.Mode)); err != nil {
			return err
		}
		if inner {
			return t.makePlaces()
		}
		return nil
	case layout.KindHideDir:
		return unix.Mount(coverDir, to, "", unix.MS_BIND, "")
	case layout.KindHide:
		return unix.Mount(coverFile, to, "", unix.MS_BIND, "")
	case layout.KindRoot, layout.KindBind, layout.KindBindRO:
		defer unix.Close(t.fd)
		return unix.MoveMount(t.fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
	case layout.KindCopy:
		return t.overlay(to)
	}
	return fmt.Errorf("BUG(bawn): a mount of kind %q", t.Kind)
}

// makePlaces makes what the target needs, which lies below a tmpfs.
func (t *tree) makePlaces() error {
	for i, p := range t.Make {
		var err error
		if i == len(t.Make)-1 && (t.File || t.Kind == layout.KindHide) {
			err = unix.Mknod(rootAt+p, unix.S_IFREG|0o644, 0)
		} else {
			err = unix.Mkdir(rootAt+p, 0o755)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %q: %w", path.Clean(p), err)
		}
	}
	return nil
}

// options are those of a tmpfs of the host's kernel.
func options(sizeMB int64, mode uint32) string {
	list := []string{fmt.Sprintf("mode=%o", mode), "nr_inodes=1m"}
	if sizeMB > 0 {
		list = append(list, fmt.Sprintf("size=%dm", sizeMB))
	}
	return strings.Join(list, ",")
}
