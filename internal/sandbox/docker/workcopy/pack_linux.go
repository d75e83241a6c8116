package workcopy

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A Packer takes a workspace.
type Packer struct {
	To       *tar.Writer
	Prefix   string // of every name, such as "workspace"
	UID, GID int    // of everything, in the container
	Rules    Rules
	Limits   Limits
	Progress func(bytes int64) // of files so far, now and then; nil for nobody

	made  Manifest
	left  []Left
	bytes int64
	told  int64
}

// progressStep is how many bytes lie between two reports.
const progressStep = 32 << 20

// maxDepth bounds how deep directories are nested, each of which is open while
// it is read.
const maxDepth = 200

// Pack writes the directory dir, an open one, with all below it, and does not
// close the stream. What is no file, directory or link, or can't be read, is left
// out and named. It errs where there is more than the limits allow, or a file
// changes while it is read.
func (p *Packer) Pack(dir *os.File) (Manifest, []Left, error) {
	p.made = Manifest{}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, nil, err
	}
	if err := p.header(&tar.Header{Typeflag: tar.TypeDir, Name: p.Prefix + "/", Mode: int64(st.Mode & 0o777)}, &st); err != nil {
		return nil, nil, err
	}
	if err := p.directory(dir, "", 0); err != nil {
		return nil, nil, err
	}
	return p.made, p.left, nil
}

// header writes one.
func (p *Packer) header(h *tar.Header, st *unix.Stat_t) error {
	h.Uid, h.Gid, h.ModTime = p.UID, p.GID, time.Unix(st.Mtim.Unix())
	return p.To.WriteHeader(h)
}

// directory writes what is in one; rel is "" for the workspace itself.
func (p *Packer) directory(dir *os.File, rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%q lies deeper than %d directories; deny it to the session", rel, maxDepth)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		at := path.Join(rel, name)
		if within(p.Rules.Hidden, at) {
			continue
		}
		if err := p.entry(dir, name, at, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one entry of a directory.
func (p *Packer) entry(dir *os.File, name, rel string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil // it has gone meanwhile
	}
	if err != nil {
		return &fs.PathError{Op: "stat", Path: rel, Err: err}
	}
	if len(p.made) >= p.Limits.Entries {
		return fmt.Errorf("the workspace has more than %d files; deny the session what it does not need", p.Limits.Entries)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = p.below(dir, name, rel, depth)
	case unix.S_IFREG:
		err = p.file(dir, name, rel, &st)
	case unix.S_IFLNK:
		err = p.link(dir, name, rel, &st)
	default:
		p.left = append(p.left, Left{rel, "it is no file, directory or link"})
	}
	if errors.Is(err, fs.ErrPermission) {
		p.left = append(p.left, Left{rel, "it can't be read"})
		return nil
	}
	return err
}

// open opens an entry of a directory, and no link.
func open(dir *os.File, name, rel string, flags int) (*os.File, *unix.Stat_t, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: rel, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), rel), &st, nil
}

// below writes a directory with what is in it.
func (p *Packer) below(dir *os.File, name, rel string, depth int) error {
	f, st, err := open(dir, name, rel, unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer f.Close()
	mode := fs.FileMode(st.Mode & 0o777)
	if err := p.header(&tar.Header{Typeflag: tar.TypeDir, Name: path.Join(p.Prefix, rel) + "/", Mode: int64(mode)}, st); err != nil {
		return err
	}
	p.made[rel] = Entry{Kind: Dir, Mode: mode, Stamp: stampOf(st)}
	return p.directory(f, rel, depth+1)
}

// file writes a file.
func (p *Packer) file(dir *os.File, name, rel string, seen *unix.Stat_t) error {
	f, st, err := open(dir, name, rel, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Ino != seen.Ino || st.Dev != seen.Dev {
		return changing(rel)
	}
	if p.bytes += st.Size; p.bytes > p.Limits.Bytes {
		return fmt.Errorf("the workspace has more than %d MiB, at %q; deny the session what it does not need, or allow more", p.Limits.Bytes>>20, rel)
	}
	e := Entry{Kind: File, Mode: fs.FileMode(st.Mode & 0o777), Size: st.Size, Stamp: stampOf(st)}
	if err := p.header(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(p.Prefix, rel), Mode: int64(e.Mode), Size: st.Size}, st); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(p.To, sum), io.LimitReader(f, st.Size))
	if err == nil && n < st.Size {
		err = changing(rel)
	}
	if err == nil {
		var after unix.Stat_t
		if err = unix.Fstat(int(f.Fd()), &after); err == nil && stampOf(&after) != e.Stamp {
			err = changing(rel)
		}
	}
	copy(e.Sum[:], sum.Sum(nil))
	p.made[rel] = e
	p.progress()
	return err
}

func changing(rel string) error {
	return fmt.Errorf("%q changes while it is copied; try again", rel)
}

// link writes a symbolic link as it is.
func (p *Packer) link(dir *os.File, name, rel string, st *unix.Stat_t) error {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(int(dir.Fd()), name, buf[:])
	if err != nil {
		return &fs.PathError{Op: "readlink", Path: rel, Err: err}
	}
	e := Entry{Kind: Link, To: string(buf[:n]), Stamp: stampOf(st)}
	p.made[rel] = e
	return p.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: path.Join(p.Prefix, rel), Linkname: e.To, Mode: 0o777}, st)
}

func stampOf(st *unix.Stat_t) Stamp {
	s := Stamp{Dev: st.Dev, Ino: st.Ino, Size: st.Size}
	s.Change.Sec, s.Change.Nsec = st.Ctim.Unix()
	return s
}

// progress reports, now and then.
func (p *Packer) progress() {
	if p.Progress != nil && p.bytes-p.told >= progressStep {
		p.told = p.bytes
		p.Progress(p.bytes)
	}
}
