// Package copies keeps what sessions on a copy have changed, until a human takes it over
// or discards it. Each session has a directory below Bawn's state directory, in which a
// sealed one (package sealed) holds the upper directory of the overlay that the guest
// saw: no program of the user's comes there by a link.
//
// What is taken over is compared three ways, by package checkpoint: the workspace when
// the session began, as the session has left it, and as it is now. Package undo carries
// it out. A Filter holds back what the host would execute or obey.
package copies

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// Names in a copy's directory.
const (
	recordName = "record.json"
	lockName   = "lock" // held by a living bawn
	layerName  = "layer"
)

// Names in the sealed directory.
const (
	upperName = "upper" // what the guest has changed
	lowerName = "lower" // where the workspace is while the overlay is mounted
)

const maxRecord = 16 << 20

// A Record says what is known of a copy.
type Record struct {
	ID        string          `json:"id"` // of the session
	Name      string          `json:"name,omitempty"`
	Agent     string          `json:"agent,omitempty"`
	Workspace string          `json:"workspace"`
	Started   time.Time       `json:"started"`
	Ended     time.Time       `json:"ended,omitzero"`
	Base      string          `json:"base,omitempty"` // the checkpoint of the workspace when the session began
	Filter    Filter          `json:"filter"`
	Git       []gitstore.Kept `json:"git,omitempty"` // what it has committed
}

// Called is the name by which people speak of the copy.
func (r *Record) Called() string {
	if r.Name != "" {
		return r.Name
	}
	return r.ID[:min(len(r.ID), 8)]
}

// A Copy is open: no other process changes it.
type Copy struct {
	Record
	dir  string
	lock *os.File
}

// Places is the directory of all copies.
func Places(state string) string { return filepath.Join(state, "copies") }

// NameOK reports whether a copy can have this name.
func NameOK(name string) bool {
	return name != "" && len(name) <= 64 && name[0] != '-' && name[0] != '.' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// Create makes an empty copy, whose workspace must be there.
func Create(state string, r Record) (_ *Copy, err error) {
	info, err := os.Stat(r.Workspace)
	if err != nil {
		return nil, err
	}
	c := &Copy{Record: r, dir: filepath.Join(Places(state), r.ID)}
	if err := os.MkdirAll(Places(state), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Discard())
		}
	}()
	if c.lock, err = take(c.dir); err != nil {
		return nil, err
	}
	inside, err := sealed.Create(filepath.Join(c.dir, layerName))
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	for _, name := range []string{upperName, lowerName} {
		if err := os.Mkdir(sealed.Path(inside, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(sealed.Path(inside, upperName), info.Mode().Perm()); err != nil { // the guest's workspace has it
		return nil, err
	}
	return c, c.Note()
}

// ErrRunning says that a session still writes to its copy, or that another bawn takes it
// over.
var ErrRunning = errors.New("its session still runs, or another bawn works on it")

// take takes the lock of a copy.
func take(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrRunning
	}
	return nil, errors.Join(err, f.Close())
}

// Open opens a copy to take it over or discard it. It fails with ErrRunning while its
// session runs.
func Open(state, id string) (*Copy, error) {
	c, err := Peek(state, id)
	if err != nil {
		return nil, err
	}
	if c.lock, err = take(c.dir); err != nil {
		return nil, err
	}
	if again, err := Peek(state, id); err == nil { // as its session has left it
		c.Record = again.Record
	}
	return c, nil
}

// Peek opens a copy to look at it, also while its session runs.
func Peek(state, id string) (*Copy, error) {
	c := &Copy{dir: filepath.Join(Places(state), id)}
	b, err := atomicfile.Read(filepath.Join(c.dir, recordName), maxRecord)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Decode(b, &c.Record); err != nil {
		return nil, fmt.Errorf("read the record of copy %q: %w", id, err)
	}
	if c.ID != id || !filepath.IsAbs(c.Workspace) {
		return nil, fmt.Errorf("the record of copy %q is about another one", id)
	}
	return c, nil
}

// Save keeps the record, and has it on the disk.
func (c *Copy) Save() error {
	b, err := json.Marshal(c.Record)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(c.dir, recordName), append(b, '\n'), 0o600)
}

// NoteCommits notes what a session has committed whose bawn was killed. Without a copy of
// that session it does nothing.
func NoteCommits(state, session string, commits []gitstore.Kept) error {
	c, err := Open(state, session)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(commits) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	c.Git = commits
	return c.Save()
}

// Note keeps the record where it outlives this process, and need not outlive the machine:
// a start waits for it.
func (c *Copy) Note() error {
	b, err := json.Marshal(c.Record)
	file := filepath.Join(c.dir, recordName)
	if err == nil {
		err = os.WriteFile(file+".new", append(b, '\n'), 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Layer is the directory from which a sandbox makes the overlay.
func (c *Copy) Layer() string { return sealed.Inside(filepath.Join(c.dir, layerName)) }

// upper opens what the guest has changed.
func (c *Copy) upper() (*os.File, error) {
	inside, err := sealed.Open(filepath.Join(c.dir, layerName))
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	at := sealed.Path(inside, upperName)
	if info, err := os.Lstat(at); err == nil && info.Mode().Perm()&0o700 != 0o700 && c.lock != nil { // the guest has closed its workspace
		if err := os.Chmod(at, info.Mode().Perm()|0o700); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Openat(int(inside.Fd()), upperName, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), upperName), nil
}

// maxCounted bounds what Changed counts.
const maxCounted = 100_000

// Changed counts the names in the layer that are no directories: files that are new,
// different or gone. any says whether there is something at all.
func (c *Copy) Changed() (n int, any bool, err error) {
	top, err := c.upper()
	if err != nil {
		return 0, true, err
	}
	defer top.Close()
	root, err := os.OpenRoot(sealed.Path(top)) // a guest that runs makes links of directories
	if err != nil {
		return 0, true, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			any = true
			return fs.SkipDir // the guest has closed it, or just removed it
		}
		any = any || p != "."
		if !d.IsDir() {
			n++
		}
		if n >= maxCounted {
			return fs.SkipAll
		}
		return nil
	})
	return n, any, err
}

// Close lets others have the copy.
func (c *Copy) Close() {
	if c.lock != nil {
		c.lock.Close()
		c.lock = nil
	}
}

// Discard removes the copy with all that its session has changed. Its lock must be held.
func (c *Copy) Discard() error {
	err := errors.Join(sealed.Remove(filepath.Join(c.dir, layerName)), os.RemoveAll(c.dir))
	c.Close()
	return err
}

// ForgetBase removes the checkpoint that the copy was begun from, unless another copy goes
// on from this one.
func (c *Copy) ForgetBase(state string, wait time.Duration) error {
	if c.Base == "" {
		return nil
	}
	others, err := List(state, c.Workspace)
	if err != nil || slices.ContainsFunc(others, func(r Record) bool { return r.Base == c.Base && r.ID != c.ID }) {
		return err
	}
	s, err := checkpoint.Open(checkpoint.Place(state, c.Workspace), wait)
	if err != nil {
		return err
	}
	return errors.Join(s.Forget(c.Base), s.Close())
}

// List returns the copies of a workspace, or all for "", the oldest first. One that can't
// be read is left out.
func List(state, workspace string) ([]Record, error) {
	dirs, err := os.ReadDir(Places(state))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []Record
	for _, d := range dirs {
		if c, err := Peek(state, d.Name()); err == nil && (workspace == "" || c.Workspace == workspace) {
			list = append(list, c.Record)
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return a.Started.Compare(b.Started) })
	return list, nil
}

// Find returns the copies that a name stands for: a copy's name, its ID, or at least
// four characters of the ID.
func Find(list []Record, name string) (found []Record) {
	const least = 4
	for _, r := range list {
		if r.ID == name || r.Name != "" && r.Name == name {
			return []Record{r}
		}
		if len(name) >= least && strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	return found
}
