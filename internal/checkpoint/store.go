package checkpoint

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// Names in a store.
const (
	packsName   = "packs"
	recordsName = "records"
	lockName    = "lock"
	indexName   = "index-" // and the beginning of its root's digest
)

// Place is the directory of a workspace's store, below Bawn's state directory.
func Place(state, workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(state, "checkpoints", fmt.Sprintf("%x", sum[:12]))
}

// Places is the directory of all stores.
func Places(state string) string { return filepath.Join(state, "checkpoints") }

// A Store holds the checkpoints of one workspace. Its methods may be called from
// any goroutine; of several processes, one at a time has it open.
type Store struct {
	dir  string
	lock *os.File

	mu    sync.Mutex
	packs []*pack // nil until they are needed
	open  bool    // packs are read
	last  struct {
		pack   *pack
		offset uint64
		frame  []byte
	}
}

// ErrBusy says that another process has the store open.
var ErrBusy = errors.New("another process uses the checkpoints of this workspace")

// Open opens the store in a directory, which it makes with mode 0700. It waits for
// another process that has it, at most so long, and then returns ErrBusy.
func Open(dir string, wait time.Duration) (*Store, error) {
	for _, d := range []string{dir, filepath.Join(dir, packsName), filepath.Join(dir, recordsName)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f, wait); err != nil {
		f.Close()
		return nil, err
	}
	return &Store{dir: dir, lock: f}, nil
}

// lock waits at most so long.
func lock(f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(until) {
			return ErrBusy
		}
	}
}

// Close lets others have the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		p.close()
	}
	s.packs = nil
	return s.lock.Close()
}

// load opens the packs. What a killed process has begun is removed, and a
// damaged pack is put aside: its objects are missed where they are needed.
func (s *Store) load() error {
	if s.open {
		return nil
	}
	list, err := os.ReadDir(filepath.Join(s.dir, packsName))
	if err != nil {
		return err
	}
	for _, e := range list {
		path := filepath.Join(s.dir, packsName, e.Name())
		if strings.HasPrefix(e.Name(), "new-") {
			_ = os.Remove(path) // nobody writes it: the lock is ours
			continue
		}
		p, err := openPack(path)
		if errors.Is(err, errPack) { // away, so that no index counts on it
			if err := os.Rename(path, filepath.Join(s.dir, "damaged-"+e.Name())); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.packs = append(s.packs, p)
	}
	s.open = true
	return nil
}

// has reports whether the store holds an object.
func (s *Store) has(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, ok := s.find(d)
	return ok
}

func (s *Store) find(d Digest) (*pack, place, bool) {
	for _, p := range slices.Backward(s.packs) {
		if l, ok := p.find(d); ok {
			return p, l, true
		}
	}
	return nil, place{}, false
}

// errMissing is the reason why an object can't be had.
var errMissing = errors.New("the store of checkpoints does not have it, or has it damaged")

// get returns an object, checked against its digest.
func (s *Store) get(d Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	p, l, ok := s.find(d)
	if !ok {
		return nil, fmt.Errorf("object %.12s: %w", d, errMissing)
	}
	if s.last.pack != p || s.last.offset != l.offset || s.last.frame == nil {
		frame, err := p.open(l)
		if err != nil {
			return nil, fmt.Errorf("object %.12s: %w: %w", d, errMissing, err)
		}
		s.last.pack, s.last.offset, s.last.frame = p, l.offset, frame
	}
	if uint64(l.at)+uint64(l.length) > uint64(len(s.last.frame)) {
		return nil, fmt.Errorf("object %.12s: %w", d, errMissing)
	}
	b := bytes.Clone(s.last.frame[l.at : l.at+l.length])
	if sha256.Sum256(b) != d {
		return nil, fmt.Errorf("object %.12s: %w", d, errMissing)
	}
	return b, nil
}

// tree returns the entries of a tree.
func (s *Store) tree(d Digest) ([]Entry, error) {
	b, err := s.get(d)
	if err != nil {
		return nil, err
	}
	return decodeTree(b)
}

// add makes a new pack one of the store's.
func (s *Store) add(p *pack) {
	if p != nil {
		s.mu.Lock()
		s.packs = append(s.packs, p)
		s.mu.Unlock()
	}
}

// generation names the packs there are: an index says for which of them it holds.
func (s *Store) generation() (Digest, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, packsName)) // sorted
	if err != nil {
		return Digest{}, err
	}
	h := sha256.New()
	for _, e := range list {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), "new-") {
			continue
		}
		fmt.Fprintf(h, "%s %d\n", e.Name(), info.Size())
	}
	return Digest(h.Sum(nil)), nil
}

// A Checkpoint is one moment of a workspace.
type Checkpoint struct {
	ID      string    `json:"id"` // sorts by time
	Session string    `json:"session,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	When    time.Time `json:"when"`
	Why     Why       `json:"why"`
	Roots   []Root    `json:"roots"` // the workspace first
	// Git is the state of the workspace's repository, as gitstore has written it.
	Git json.RawMessage `json:"git,omitempty"`
}

// Why says on which occasion a checkpoint was taken.
type Why string

// The occasions.
const (
	AtStart     Why = "start"       // of a session, before its guest runs
	AtEnd       Why = "end"         // of a session, after its guest
	AtPrompt    Why = "prompt"      // the human has given the agent a task
	AtTime      Why = "time"        // some minutes have passed and something has changed
	Destruction Why = "destruction" // a command is about to run that destroys
	BeforeUndo  Why = "undo"
)

// A Root is one directory of a checkpoint, with all below it.
type Root struct {
	Path      string       `json:"path"`
	Mode      uint32       `json:"mode"` // of the directory itself
	Tree      Digest       `json:"tree"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"` // of their contents
	Uncovered []Uncovering `json:"uncovered,omitempty"`
}

// An Uncovering is a place that a checkpoint does not have, and why.
type Uncovering struct {
	Path string `json:"path"` // absolute
	Size int64  `json:"size"`
	Why  string `json:"why"`
}

// maxRecord bounds a record, in bytes.
const maxRecord = 64 << 20

// newID returns a name that sorts by time.
func newID(when time.Time) string {
	return when.UTC().Format("20060102-150405.000") + "-" + strings.ToLower(rand.Text()[:4])
}

// List returns the checkpoints there are, the oldest first. What can't be read as
// one is left out. It doesn't need the store to be open.
func List(dir string) ([]Checkpoint, error) {
	files, err := os.ReadDir(filepath.Join(dir, recordsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []Checkpoint
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		c, err := readRecord(dir, id)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errRecord) {
			continue // pruned meanwhile, or damaged
		}
		if err != nil {
			return nil, err
		}
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Checkpoint) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

var errRecord = errors.New("the record of a checkpoint is damaged")

func recordPath(dir, id string) string { return filepath.Join(dir, recordsName, id+".json") }

func readRecord(dir, id string) (*Checkpoint, error) {
	b, err := atomicfile.Read(recordPath(dir, id), maxRecord)
	if err != nil {
		return nil, err
	}
	return decodeRecord(b, id)
}

func decodeRecord(b []byte, id string) (*Checkpoint, error) {
	var c Checkpoint
	if err := strictjson.Decode(b, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if c.ID != id || len(c.Roots) == 0 {
		return nil, errRecord
	}
	for _, r := range c.Roots {
		if !filepath.IsAbs(r.Path) || filepath.Clean(r.Path) != r.Path {
			return nil, errRecord
		}
	}
	return &c, nil
}

func (s *Store) writeRecord(c *Checkpoint) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replace(recordPath(s.dir, c.ID), append(b, '\n'))
}

// replace writes a file as a whole. It is not on the disk yet, which a guest's
// start does not wait for: sync does that later.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// syncFile has a file on the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
