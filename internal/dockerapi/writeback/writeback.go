// Package writeback writes what a container has changed in a copy of a guest's directory into
// the directory itself. It runs in the guest's sandbox, as the guest: what the guest can't
// write a container can't, by the same walls.
package writeback

import (
	"archive/tar"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Argument is the first word by which a program of Bawn's becomes the writer; the
// directory is the second one.
const Argument = "@writeback"

// Records of the entries of a stream.
const (
	Gone = "BAWN.gone" // not empty: the name is to be removed
	Was  = "BAWN.was"  // what the name was when it was compared, as of Stamp
)

// An Answer is one line of the writer's: an entry that it could not write, and at the end
// that it has come through.
type Answer struct {
	Path  []byte `json:"path,omitempty"` // may be no UTF-8
	Error string `json:"error,omitempty"`
	Done  bool   `json:"done,omitempty"`
}

// Stamp says what a name is, so that a change of it is noticed; "-" where nothing is.
func Stamp(size int64, changed time.Time, mode fs.FileMode) string {
	if mode.IsDir() {
		return "dir"
	}
	return fmt.Sprint(size, " ", changed.UnixNano(), " ", uint32(mode.Type()))
}

// Beside begins the names under which files are written before they get their own.
const Beside = ".bawn-"

// Nothing is the Stamp of a name that is not there.
const Nothing = "-"

// Main writes the tar stream in into a directory, tells out what it could not, and
// returns the exit code.
func Main(dir string, in io.Reader, out io.Writer) int {
	root, err := os.OpenRoot(dir)
	if err != nil {
		_ = json.NewEncoder(out).Encode(Answer{Error: err.Error()})
		return 1
	}
	defer root.Close()
	answers := json.NewEncoder(out)
	for stream := tar.NewReader(in); ; {
		h, err := stream.Next()
		if errors.Is(err, io.EOF) {
			err = answers.Encode(Answer{Done: true})
		} else if err == nil {
			if cannot := write(root, h, stream); cannot != nil {
				err = answers.Encode(Answer{Path: []byte(h.Name), Error: reason(cannot)})
			}
			if err == nil {
				continue
			}
		}
		if err != nil {
			return 1
		}
		return 0
	}
}

// reason is err without paths, which the caller knows.
func reason(err error) string {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err.Error()
	case errors.As(err, &l):
		return l.Err.Error()
	}
	return err.Error()
}

// write does what one entry says.
func write(root *os.Root, h *tar.Header, from io.Reader) error {
	name := path.Clean(h.Name)
	if !filepath.IsLocal(name) || name == "." {
		return errors.New("the name can't be one")
	}
	if err := parents(root, name); err != nil {
		return err
	}
	is, err := root.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was := Nothing
	if err == nil {
		was = Stamp(is.Size(), is.ModTime(), is.Mode())
	}
	switch {
	case h.PAXRecords[Was] != was:
		return errors.New("the session has changed it meanwhile")
	case h.PAXRecords[Gone] != "":
		return root.Remove(name)
	case h.Typeflag == tar.TypeDir:
		return directory(root, name, h, is)
	}
	return put(root, name, h, from, is)
}

// parents refuses a name that is reached through a link: it would be another place.
func parents(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if is, err := root.Lstat(name[:i]); err != nil {
			return err
		} else if !is.IsDir() {
			return errors.New("what it lies in is no directory any more")
		}
	}
	return nil
}

const perm = fs.ModePerm // no set-id bits, and no sticky one

func directory(root *os.Root, name string, h *tar.Header, is fs.FileInfo) error {
	mode := h.FileInfo().Mode() & perm
	if is != nil && !is.IsDir() {
		if err := root.Remove(name); err != nil {
			return err
		}
		is = nil
	}
	if is == nil {
		if err := root.Mkdir(name, mode|0o700); err != nil { // files come into it
			return err
		}
	}
	return root.Chmod(name, mode|0o700)
}

// put makes a file or a link beside the name, and then gives it the name.
func put(root *os.Root, name string, h *tar.Header, from io.Reader, is fs.FileInfo) (err error) {
	beside := path.Join(path.Dir(name), Beside+strings.ToLower(rand.Text()[:12]))
	defer func() {
		if err != nil {
			_ = root.Remove(beside) // it may not be there
		}
	}()
	switch h.Typeflag {
	case tar.TypeSymlink:
		err = root.Symlink(h.Linkname, beside)
	case tar.TypeReg:
		err = file(root, beside, h, from)
	case tar.TypeLink: // a second name of a file that came before
		var other *os.File
		if other, err = root.Open(path.Clean(h.Linkname)); err == nil {
			err = file(root, beside, h, other)
			other.Close()
		}
	default:
		return errors.New("it is neither a file nor a directory nor a link")
	}
	if err == nil && is != nil && is.IsDir() {
		err = root.Remove(name)
	}
	if err == nil {
		err = root.Rename(beside, name)
	}
	return err
}

func file(root *os.Root, name string, h *tar.Header, from io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err = errors.Join(err, f.Chmod(h.FileInfo().Mode()&perm), f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime)
}
