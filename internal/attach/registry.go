package attach

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
)

// Names in a session's directory. Only these are ever removed.
const (
	sessionsName = "sessions"
	entryName    = "session.json"
	newEntryName = "session.json.new"
	socketName   = "attach.sock"
	keyName      = "attach.sock.key" // what viewers say first: hosts connect to sockets in their guests' stead, and not on behalf of their human
	logName      = "output.log"
	olderLogName = "output.log.1"
)

// maxKey is how many bytes of a key are read.
const maxKey = 1024

// maxEntry is how many bytes of a session.json are read: argument lists are
// longer than one would think.
const maxEntry = 4 << 20

// A State says whether a session runs, has ended or is dead. The zero State is
// invalid.
type State string

// The states. A dead session's host was killed, or the machine stopped.
const (
	Running State = "running"
	Ended   State = "ended"
	Dead    State = "dead"
)

// An Entry describes a session of the registry.
type Entry struct {
	ID        string   `json:"id"`
	Parent    string   `json:"parent,omitempty"`
	Agent     string   `json:"agent"`
	Argv      []string `json:"argv"`
	Dir       string   `json:"dir,omitempty"`
	Workspace string   `json:"workspace"`
	Provider  string   `json:"provider"`
	Mode      string   `json:"mode"`
	Network   string   `json:"network"`
	Zones     []string `json:"zones,omitempty"`          // of a split session
	InPart    []string `json:"enforcedInPart,omitempty"` // attributes of which the machine gives less than was asked for

	Started  time.Time `json:"started"`
	PID      int       `json:"pid"`            // of the host
	Copy     string    `json:"copy,omitempty"` // it works on this copy of the workspace
	Terminal bool      `json:"terminal"`       // the guest has one
	Hosted   bool      `json:"hosted"`         // can be attached to
	Viewers  int       `json:"viewers"`

	Ended time.Time `json:"ended,omitzero"` // of a dead one: when it was found
	Exit  *int      `json:"exit,omitempty"` // nil of a dead one

	// State is determined by the reader of the entry, and is not part of the
	// file.
	State State `json:"state"`
}

// A Place is a session's directory, as seen by its host.
type Place struct {
	dir   string
	lock  int // the directory itself, locked
	entry Entry
}

// Register enters a session that begins now into the registry below dir, which
// is made if it is not there. It fails where the ID is taken.
func Register(dir string, e Entry) (*Place, error) {
	if !validID(e.ID) {
		return nil, fmt.Errorf("%q is no session's ID; want letters and digits", e.ID)
	}
	p := &Place{dir: filepath.Join(dir, sessionsName, e.ID), lock: -1, entry: e}
	err := os.Mkdir(p.dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(p.dir), 0o700); err == nil {
			err = os.Mkdir(p.dir, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("enter the session into the registry: %w", err)
	}
	if err := p.begin(); err != nil {
		p.Remove()
		return nil, fmt.Errorf("enter the session into the registry: %w", err)
	}
	return p, nil
}

// validID reports whether id can be the name of a session's directory.
func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// begin takes the lock before it writes the entry. A free lock without an entry
// therefore means that the session is still being entered.
func (p *Place) begin() error {
	fd, err := openFile(p.dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	p.lock = fd
	if err := flock(fd, unix.LOCK_EX); err != nil {
		return err
	}
	return writeFile(p.path(entryName), unix.O_EXCL, p.entry)
}

// openFile is open(2) without what package os does for files that may wait: it
// stands on the path of every session's start.
func openFile(path string, flags int) (int, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// flock is flock(2), also where signals arrive.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeFile makes a file of an entry.
func writeFile(path string, flags int, e Entry) error {
	fd, err := openFile(path, unix.O_WRONLY|unix.O_CREAT|flags)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, appendEntry(nil, &e))
	return errors.Join(err, unix.Close(fd))
}

func (p *Place) path(name string) string { return filepath.Join(p.dir, name) }

// writeKey makes the file of a session's key, which dies with its host.
func writeKey(path, key string) error {
	fd, err := openFile(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(key))
	return errors.Join(err, unix.Close(fd))
}

// Update changes the registry's entry of the session.
func (p *Place) Update(change func(*Entry)) error {
	change(&p.entry)
	return replaceEntry(p.dir, p.entry)
}

// replaceEntry replaces the entry as a whole. It need not outlive the machine:
// no session does.
func replaceEntry(dir string, e Entry) error {
	next := filepath.Join(dir, newEntryName)
	if err := writeFile(next, unix.O_TRUNC, e); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, entryName))
}

// Remove takes a session out of the registry that was not hosted, and so left
// nothing there but that it was.
func (p *Place) Remove() {
	_ = unix.Unlink(p.path(entryName)) // Sweep finds what could not be removed
	_ = unix.Rmdir(p.dir)
	p.release()
}

// End says how the session ended, and releases it: its output remains until
// Sweep finds it old.
func (p *Place) End(code int, at time.Time) error {
	defer p.release()
	_ = unix.Unlink(p.path(socketName)) // a session that nobody can attach to has no socket
	_ = unix.Unlink(p.path(keyName))    // the same
	return p.Update(func(e *Entry) { e.Ended, e.Exit, e.Viewers = at, &code, 0 })
}

func (p *Place) release() {
	if p.lock >= 0 {
		unix.Close(p.lock)
		p.lock = -1
	}
}

// remove removes a session's directory, by the names that can be in it.
func remove(dir string) {
	for _, name := range []string{socketName, keyName, logName, olderLogName, newEntryName, entryName} {
		_ = unix.Unlink(filepath.Join(dir, name)) // most of them are not there
	}
	_ = unix.Rmdir(dir) // a foreign file there keeps it
}

// List returns the sessions of the registry below dir, the oldest first. An
// unreadable one is left out: it has gone meanwhile, or is being entered.
func List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(filepath.Join(dir, sessionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the registry of sessions: %w", err)
	}
	var entries []Entry
	for _, n := range names {
		if e, err := read(filepath.Join(dir, sessionsName, n.Name())); err == nil && e.ID == n.Name() {
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Started.Compare(b.Started) })
	return entries, nil
}

// read reads one session's entry and finds out its state. The lock is looked at
// first: an entry that says nothing of an end, below a lock that was free
// before it was read, will never say more.
func read(dir string) (Entry, error) {
	held, err := locked(dir)
	if err != nil {
		return Entry{}, err
	}
	data, err := atomicfile.Read(filepath.Join(dir, entryName), maxEntry)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, err
	}
	switch {
	case held:
		e.State = Running
	case e.Exit == nil:
		e.State, e.Viewers = Dead, 0
	default:
		e.State = Ended
	}
	return e, nil
}

// Lives reports whether a session's host lives: a look at its lock, and at
// nothing else of the registry.
func Lives(dir, id string) (bool, error) {
	if !validID(id) {
		return false, nil
	}
	held, err := locked(filepath.Join(dir, sessionsName, id))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return held, err
}

// locked reports whether the session's host lives. Readers don't get into each
// other's way: they share the lock.
func locked(dir string) (bool, error) {
	fd, err := openFile(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	err = flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// A NotFoundError says that no session, or more than one, has an ID like that.
type NotFoundError struct {
	ID      string
	Matches []string // the IDs that begin so
}

func (e *NotFoundError) Error() string {
	switch {
	case len(e.Matches) > 0:
		return fmt.Sprintf("%d sessions begin with %q: %s", len(e.Matches), e.ID, strings.Join(e.Matches, ", "))
	case e.ID == "":
		return "no session runs"
	}
	return fmt.Sprintf("no session %q", e.ID)
}

// Find returns the session of that ID, or else the only one whose ID begins so.
// It returns a *NotFoundError where there is not exactly one.
func Find(entries []Entry, id string) (Entry, error) {
	var found []Entry
	for _, e := range entries {
		if e.ID == id {
			return e, nil
		}
		if strings.HasPrefix(e.ID, id) {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	err := &NotFoundError{ID: id}
	for _, e := range found {
		err.Matches = append(err.Matches, e.ID)
	}
	return Entry{}, err
}

// Kept is how long the output of a hosted session is kept after its end.
const Kept = 24 * time.Hour

// abandoned is how old a directory without an entry is that nobody will ever
// finish.
const abandoned = 10 * time.Second

// Sweep removes the leftovers of ended sessions: at once those of a dead one
// that was not hosted, later any output. Call it after List, so that dead
// sessions have been reported.
func Sweep(dir string, now time.Time) {
	names, err := os.ReadDir(filepath.Join(dir, sessionsName))
	if err != nil {
		return // the directory does not exist, or List has reported the error
	}
	for _, n := range names {
		if validID(n.Name()) {
			sweep(filepath.Join(dir, sessionsName, n.Name()), now)
		}
	}
}

func sweep(dir string, now time.Time) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	// A shared lock keeps a host out that is about to begin, and does not look
	// like one to those who list.
	fd, err := openFile(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil {
		return
	}
	e, err := read(dir)
	switch {
	case err != nil:
		if now.Sub(info.ModTime()) > abandoned {
			remove(dir)
		}
	case e.State == Dead && !e.Hosted, !e.Ended.IsZero() && now.Sub(e.Ended) > Kept:
		remove(dir)
	case e.State == Dead && e.Ended.IsZero():
		e.Ended = now
		_ = unix.Unlink(filepath.Join(dir, socketName)) // there may be none
		_ = unix.Unlink(filepath.Join(dir, keyName))    // the same
		_ = replaceEntry(dir, e)                        // then the next one reports it once more
	}
}
