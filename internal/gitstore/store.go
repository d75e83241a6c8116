package gitstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/protect"
)

// Place is where a session's private git directories are, below Bawn's state
// directory. Nothing else says so.
func Place(state, session string) string { return filepath.Join(Places(state), session) }

// Places is the directory of the private git directories of all sessions.
func Places(state string) string { return filepath.Join(state, "git") }

// Names in a session's place.
const (
	recordName = "record" // what Recover goes by
	lockName   = "lock"   // held by a living bawn
	baseName   = "index." // begins the copy of a unit's index as both sides had it
)

// maxRecord bounds what Recover reads.
const maxRecord = 64 << 20

// A record is the state of a session on disk: enough to publish the guest's work
// after bawn was killed.
type record struct {
	Session string     `json:"session"`
	Repo    Repository `json:"repository"`
	Git     string     `json:"git"`
	Started time.Time  `json:"started"`
	Names   Names      `json:"names"`
	Units   []*unit    `json:"units"`
	Copy    bool       `json:"copy,omitempty"` // the session works on a copy
}

// A unit is one git directory and the private one over it: the repository's, or a
// submodule's below it.
type unit struct {
	Host     string            `json:"host"`            // common git directory
	Rel      string            `json:"rel"`             // "." or the worktree's, below Host
	Private  string            `json:"private"`         // below the session's private directory, "." for itself
	WorkTree string            `json:"work_tree"`       // "" where the configuration says
	Tree     bool              `json:"tree,omitempty"`  // a linked worktree in the workspace: it has no refs of its own
	Added    bool              `json:"added,omitempty"` // a submodule or, with Tree, a worktree that the guest has added
	Objects  []bawn.GitObjects `json:"objects"`
	Size     int               `json:"size"` // digits of an object ID
	Partial  bool              `json:"partial,omitempty"`
	Fold     bool              `json:"fold,omitempty"`
	Sparse   bool              `json:"sparse,omitempty"`
	Start    refs              `json:"start"`          // the host's when the session started
	Base     refs              `json:"base"`           // as both sides had them last
	Made     refs              `json:"made,omitempty"` // refs that the session has created here, and the human has not touched since
	Head     string            `json:"head"`           // the same of HEAD
	Open     string            `json:"open,omitempty"` // digest of the rebase or merge that the host had open, and the guest has too
	Beside   refs              `json:"beside,omitempty"`
	Stash    []string          `json:"stash,omitempty"`   // as the guest had it last
	Stashed  []string          `json:"stashed,omitempty"` // IDs of those that are the human's
	Dropped  []string          `json:"dropped,omitempty"` // those of them that the guest has dropped
	Apart    map[string]string `json:"apart,omitempty"`   // paths at which the indexes differ, and the last common entry
	Pin      string            `json:"pin,omitempty"`     // what the pin is at
	Pins     []string          `json:"pins,omitempty"`    // and was at
	// Follows are the branches whose upstream the session has written.
	Follows map[string]following `json:"follows,omitempty"`
	// Tracks are refs of remotes that the session has set, and what to.
	Tracks refs `json:"tracks,omitempty"`

	n       int // which of the units
	host    *os.Root
	private *os.Root
	seen    [2]stamp // of the indexes of both sides when they were the same as the base
	told    map[string]bool
	large   map[string]bool // objects of git-lfs that were looked at
	last    []byte          // the index that both sides had, as git lists it, or nil
	deleted int
	filters []string        // of the host's configuration
	config  stamp           // of the configuration that filters were read from
	tags    map[string]bool // of those that the guest has in a submodule which it has added, what is published
	// followed is the guest's configuration when what its branches follow was published.
	followed stamp
}

// gitDir is the unit's own git directory on the host.
func (u *unit) gitDir() string { return filepath.Join(u.Host, u.Rel) }

// A Store is the private git directory of one session. Its methods may be called
// from any goroutine.
type Store struct {
	record
	dir       string
	guest     *guestDir // nil until it is open
	lock      *os.File
	git       *hostGit
	untrusted func() (Untrusted, error)
	mu        sync.Mutex
	confined  Untrusted // once it was needed
	report    Report
	idle      time.Duration // idleTime
	saved     []byte
	pinned    bool
	again     bool         // it was loaded: publications of an earlier bawn are not in the report
	set       *protect.Set // of Names, once it was needed
}

// Names are the session's protected names, which are not published.
type Names struct {
	Extra  []string `json:"extra,omitempty"`  // protected beside those of package protect
	Opened []string `json:"opened,omitempty"` // names of its table that the user has opened for the project
	None   bool     `json:"none,omitempty"`   // no name is protected
	// Project says that no checkout of the repository holds a home directory: names of
	// logins count at its top alone (protect.Login).
	Project bool `json:"project,omitempty"`
}

// Options are what Prepare needs besides the repository.
type Options struct {
	State   string // Bawn's state directory
	Session string
	Path    string // PATH, where git is looked for
	Names   Names
	// Beside are real directories outside of the workspace that the session may write:
	// work in linked worktrees there is published, too.
	Beside []string
	// Copy says that the session works on a copy of the workspace: nothing of the host's
	// moves. What the guest has committed is kept beside, at the session's end.
	Copy bool
	// Untrusted starts what reads the private git directory for the host; see
	// Confined. It is called once, when it is first needed.
	Untrusted func(View) (Untrusted, error)
}

// Dirs are the directories for a sandbox.
func (s *Store) Dirs() []bawn.GitDir {
	if len(s.Units) == 0 {
		return nil
	}
	d := bawn.GitDir{Path: s.Repo.Common, Private: s.guest.real(privateName)}
	for _, u := range s.Units {
		d.Objects = append(d.Objects, u.Objects...)
	}
	return []bawn.GitDir{d}
}

// MadePool is where the private directories of repositories are that the guest
// makes.
func (s *Store) MadePool() string { return s.guest.real(madeName) }

// open opens the directories of every unit.
func (s *Store) open() error {
	top, err := os.OpenRoot(s.guest.at(privateName))
	if err != nil {
		return err
	}
	defer top.Close()
	for i, u := range s.Units {
		if u.n, u.told = i, map[string]bool{}; u.Beside == nil { // a record without any
			u.Beside = refs{}
		}
		if u.Tree {
			u.shares(s.Units[0])
		}
		if u.host, err = os.OpenRoot(u.Host); err != nil {
			return err
		}
		if u.private, err = top.OpenRoot(u.Private); err != nil { // the guest may have left a link there
			return err
		}
	}
	return nil
}

// shut closes them, the guest's directory and the lock.
func (s *Store) shut() {
	for _, u := range s.Units {
		if u.host != nil {
			u.host.Close()
		}
		if u.private != nil {
			u.private.Close()
		}
	}
	s.guest.close()
	if s.lock != nil {
		s.lock.Close()
	}
}

// save writes the record, where it has changed.
func (s *Store) save() error {
	text, err := json.Marshal(s.record)
	if err != nil {
		return fmt.Errorf("keep the record of the private git directory: %w", err)
	}
	if string(text) == string(s.saved) {
		return nil
	}
	// It outlives bawn, and need not outlive the machine: a start waits for this.
	file := filepath.Join(s.dir, recordName)
	err = os.WriteFile(file+".new", text, 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("keep the record of the private git directory: %w", err)
	}
	s.saved = text
	return nil
}

// load reads the record of the session whose place is dir.
func load(dir string) (*Store, error) {
	text, err := atomicfile.Read(filepath.Join(dir, recordName), maxRecord)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, idle: idleTime, again: true}
	if err := json.Unmarshal(text, &s.record); err != nil {
		return nil, fmt.Errorf("%q: %w", filepath.Join(dir, recordName), err)
	}
	if s.Session != filepath.Base(dir) {
		return nil, fmt.Errorf("%q is no record of this session", filepath.Join(dir, recordName))
	}
	return s, nil
}

// takeSoon is take with retries: another bawn that looks for ended sessions holds
// each lock for a moment.
func takeSoon(dir string) (f *os.File, err error) {
	for range retries {
		if f, err = take(dir); !errors.Is(err, errAlive) {
			break
		}
		time.Sleep(retryAfter)
	}
	return f, err
}

// take takes the lock by which others know that this session is alive. It errs
// with errAlive where it is.
func take(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// basePath is where a unit's index is kept as both sides had it last.
func (s *Store) basePath(u *unit) string { return filepath.Join(s.dir, fmt.Sprint(baseName, u.n)) }

// A Report is for the human.
type Report struct {
	Session   string   // whose it is, where it was killed
	Published int      // changes that the repository has now
	Kept      []Kept   // of the guest's, which lie beside
	Questions []string // changes that were not made without the human
	Problems  []string // what could not be done
	Made      []string // repositories that the guest has made, which the host does not have
	Held      string   // why nothing is published for now; "" where all is
	Private   string   // where the private directory is, if it is kept
}

// A Kept is a value of the guest's that did not become that of its ref.
type Kept struct {
	Ref    string `json:"ref"`    // the value that the guest has set
	Beside string `json:"beside"` // where its value is
	Why    string `json:"why"`
	Undo   bool   `json:"undo,omitempty"` // it is the human's former value, not the guest's
}

// Quiet reports whether the human has nothing to do.
func (r *Report) Quiet() bool {
	return len(r.Kept) == 0 && len(r.Questions) == 0 && len(r.Problems) == 0 && len(r.Made) == 0 && r.Private == ""
}

// missing reports whether an error says that there is no such file.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
