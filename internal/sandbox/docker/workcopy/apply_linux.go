package workcopy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// temporary begins the names of files that are not whole yet. It is not a
// protected name, and is too long to occur by chance.
const temporary = ".incoming-from-engine-"

// A meanwhile says that the host's side has changed something, and what.
type meanwhile struct{ what string }

func (m *meanwhile) Error() string { return m.what + " on this machine meanwhile" }

// Apply carries steps out below root, the workspace as an open directory, with
// files' bytes from the stream that they were read from. What can't be done is
// left as it is, and named; each file is either the old one or the new.
func Apply(root *os.File, stream io.ReaderAt, steps []Step) (done int, left []Left) {
	for _, s := range steps {
		if err := apply(root, stream, s); err != nil {
			left = append(left, Left{s.Path, err.Error()})
			continue
		}
		done++
	}
	return done, left
}

func apply(root *os.File, stream io.ReaderAt, s Step) error {
	parent, err := directory(root, path.Dir(s.Path))
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	name := path.Base(s.Path)
	switch s.Change {
	case Remove:
		return remove(parent, name, s.Was)
	case Make:
		return makeDir(parent, name, s.To)
	case Put, PutLink:
		return put(parent, name, stream, s)
	}
	return fmt.Errorf("BUG(bawn): change %d", s.Change)
}

// directory opens one below root, through no link (openat2(2)).
func directory(root *os.File, rel string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(root.Fd()), rel, &how)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return -1, &meanwhile{"its directory is not there, or another one,"}
	}
	return fd, err
}

// unchanged wants a name to be what was taken, or nothing where nothing was.
func unchanged(parent int, name string, was Entry) error {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT) && was.Kind == 0:
		return nil
	case errors.Is(err, unix.ENOENT):
		return &meanwhile{"it was removed"}
	case err != nil:
		return err
	case was.Kind == 0:
		return &meanwhile{"it was made"}
	case was.Kind == Dir:
		if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Ino != was.Stamp.Ino || st.Dev != was.Stamp.Dev {
			return &meanwhile{"it was replaced"}
		}
		return nil
	case stampOf(&st) != was.Stamp:
		return &meanwhile{"it was changed"}
	}
	return nil
}

// remove removes what was taken.
func remove(parent int, name string, was Entry) error {
	if err := unchanged(parent, name, was); err != nil {
		return err
	}
	flags := 0
	if was.Kind == Dir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(parent, name, flags)
	if errors.Is(err, unix.ENOTEMPTY) {
		return errors.New("the directory holds something that stays")
	}
	return err
}

// makeDir makes a directory. An existing one is accepted.
func makeDir(parent int, name string, to Returned) error {
	err := unix.Mkdirat(parent, name, uint32(to.Mode|0o700))
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return &meanwhile{"something else was made"}
	}
	return nil
}

// put makes a file or a link beside the name, and gives it the name at last.
func put(parent int, name string, stream io.ReaderAt, s Step) error {
	if err := unchanged(parent, name, s.Was); err != nil {
		return err
	}
	tmp := temporary + rand.Text()
	var err error
	if s.Change == PutLink {
		err = unix.Symlinkat(s.To.To, parent, tmp)
	} else {
		err = write(parent, tmp, stream, s.To)
	}
	if err == nil && s.Was.Kind != 0 {
		err = inherit(parent, tmp, name)
	}
	if err == nil {
		err = entitle(parent, tmp, name, s.Was)
	}
	if err != nil {
		return errors.Join(err, ignoreAbsent(unix.Unlinkat(parent, tmp, 0)))
	}
	return nil
}

// inherit gives a new file the owner of the one that it replaces, where who asks is
// somebody else who may: root.
func inherit(parent int, tmp, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if os.Geteuid() != 0 || st.Uid == 0 && st.Gid == 0 {
		return nil
	}
	return unix.Fchownat(parent, tmp, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// entitle gives a finished file its name, over nothing else than what was taken.
func entitle(parent int, tmp, name string, was Entry) error {
	if err := unchanged(parent, name, was); err != nil { // again, now with the bytes
		return err
	}
	if was.Kind != 0 {
		return unix.Renameat(parent, tmp, parent, name)
	}
	err := unix.Renameat2(parent, tmp, parent, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return &meanwhile{"it was made"}
	}
	return err
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write makes a file of bytes of the stream.
func write(parent int, name string, stream io.ReaderAt, to Returned) error {
	fd, err := unix.Openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	n, err := io.Copy(f, io.NewSectionReader(stream, to.Offset, to.Size))
	if err == nil && n != to.Size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Chmod(to.Mode)
	}
	if err == nil && !to.Time.IsZero() {
		err = os.Chtimes(fmt.Sprintf("/proc/self/fd/%d", fd), to.Time, to.Time)
	}
	return errors.Join(err, f.Close())
}
