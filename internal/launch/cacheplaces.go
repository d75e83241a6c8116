package launch

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/settings"
)

// cachePlacesName is the file, of Bawn's own state, with the directories that sessions
// have made in the home directory, each ended by a zero byte. Every session holds a
// shared lock on the home directory, whatever its state is kept in: also one without
// private caches may mount a directory that another session has made.
const cachePlacesName = "cache-places"

// cachePlaces makes directories on which private caches are mounted, and removes them
// with the last session. A mount needs a directory of the host; a program of the host
// that found an empty one there would be no worse off without it. In ~/.cache they stay:
// there they disturb nobody, and to make them for each session takes time.
type cachePlaces struct {
	list, home *os.File
	once       sync.Once // of end
}

// holdCachePlaces returns nil where the state can't be had: then nothing is made.
func holdCachePlaces(e *Env) *cachePlaces {
	state, err := settings.StateDir(&e.World)
	if err != nil || os.MkdirAll(state, 0o700) != nil {
		return nil
	}
	list, err := os.OpenFile(filepath.Join(state, cachePlacesName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil
	}
	home, err := os.Open(e.Getenv("HOME"))
	if err == nil {
		err = shareLock(home)
	}
	c := &cachePlaces{list: list, home: home}
	if err != nil {
		c.close()
		return nil
	}
	return c
}

// lockWait is how long a start waits for a session that is removing its directories.
// It is short, since guests can lock the home directory too: then nothing is made.
const lockWait = 300 * time.Millisecond

// shareLock takes a shared lock (flock(2)).
func shareLock(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

func (c *cachePlaces) close() {
	c.list.Close()
	c.home.Close() // it may be nil
}

// make makes a directory and those that lead to it. Each that is to be removed is
// recorded before, so that a killed session leaves none forever.
func (c *cachePlaces) make(dir string) bool {
	if c == nil {
		return false
	}
	var missing []string
	var recorded strings.Builder
	for p := dir; ; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); err == nil || p == "/" {
			break
		}
		missing = append(missing, p)
		if !fspath.Below(p, filepath.Join(c.home.Name(), ".cache")) {
			recorded.WriteString(p + "\x00")
		}
	}
	slices.Reverse(missing)
	if _, err := io.WriteString(c.list, recorded.String()); err != nil {
		return false
	}
	for _, p := range missing {
		if err := os.Mkdir(p, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return false
		}
	}
	return true
}

// end removes the empty directories, if no other session may have a cache there. It
// may be called more than once, and returns when that is done.
func (c *cachePlaces) end() {
	if c != nil {
		c.once.Do(c.remove)
	}
}

func (c *cachePlaces) remove() {
	defer c.close()
	if syscall.Flock(int(c.home.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	text, err := io.ReadAll(io.NewSectionReader(c.list, 0, 1<<20)) // writing has moved the offset
	if err != nil || len(text) == 0 {
		return
	}
	dirs := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // what is deeper first
	for _, dir := range dirs {
		_ = syscall.Rmdir(dir) // it fails where the host has put something there
	}
	_ = c.list.Truncate(0) // else the next session looks at them again
}
