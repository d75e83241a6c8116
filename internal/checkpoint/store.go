package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
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
// any goroutine. Only one process at a time may have it open.
type Store struct {
	dir  string
	self unix.Stat_t // of dir
	lock *os.File

	taking sync.RWMutex // held for reading while a checkpoint is taken; Prune writes

	mu    sync.Mutex
	packs []*pack  // nil until they are needed
	open  bool     // packs are read
	last  struct { // the frame that was opened last
		pack   *pack
		offset uint64
		stored uint32 // a frame of an empty file has the next one's offset
		frame  []byte
	}
}

// ErrBusy says that another process has the store open.
var ErrBusy = errors.New("another process uses the checkpoints of this workspace")

// Open opens the store in a directory, which it makes with mode 0700. It waits at
// most so long for another process that has it open, and then returns ErrBusy.
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
	s := &Store{dir: dir, lock: f}
	if err := unix.Stat(dir, &s.self); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
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

// Prefixes of names that are no packs.
const (
	newPrefix     = "new-"     // being written
	damagedPrefix = "damaged-" // until the next Prune
)

// load opens the packs. Leftovers of a killed process are removed, and a
// damaged pack is put aside: its objects are missed when they are needed.
func (s *Store) load() error {
	if s.open {
		return nil
	}
	for _, dir := range []string{"", recordsName, packsName} {
		if err := s.clean(dir, newPrefix); err != nil {
			return err
		}
	}
	list, err := s.packNames()
	if err != nil {
		return err
	}
	var packs []*pack
	for _, id := range list {
		path := filepath.Join(s.dir, packsName, id.name)
		p, err := openPack(path)
		if errors.Is(err, errPack) { // away, so that no index counts on it
			err = os.Rename(path, filepath.Join(s.dir, packsName, damagedPrefix+id.name))
		} else if err == nil {
			packs = append(packs, p)
		}
		if err != nil {
			for _, p := range packs {
				p.close()
			}
			return err
		}
	}
	s.packs, s.open = packs, true
	return nil
}

// clean removes files of a directory of the store, by their prefix. No other
// process writes them: the lock is held.
func (s *Store) clean(dir, prefix string) error {
	list, err := os.ReadDir(filepath.Join(s.dir, dir))
	for _, e := range list {
		if strings.HasPrefix(e.Name(), prefix) {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, dir, e.Name())))
		}
	}
	return err
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
	if s.last.pack != p || s.last.offset != l.offset || s.last.stored != l.stored || s.last.frame == nil {
		frame, err := p.open(l)
		if errors.Is(err, errPack) {
			return nil, fmt.Errorf("object %.12s: %w: %w", d, errMissing, err)
		}
		if err != nil {
			return nil, fmt.Errorf("object %.12s: %w", d, err)
		}
		s.last.pack, s.last.offset, s.last.stored, s.last.frame = p, l.offset, l.stored, frame
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

// add makes a new pack one of the store's.
func (s *Store) add(p *pack) {
	if p != nil {
		s.mu.Lock()
		s.packs = append(s.packs, p)
		s.mu.Unlock()
	}
}

// A packID tells a pack from another of the same name.
type packID struct {
	name string
	size int64
}

// packNames returns the packs there are, sorted by name.
func (s *Store) packNames() ([]packID, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, packsName))
	if err != nil {
		return nil, err
	}
	var ids []packID
	for _, e := range list {
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), damagedPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		ids = append(ids, packID{e.Name(), info.Size()})
	}
	return ids, nil
}
