package checkpoint

import (
	"cmp"
	"crypto/rand"
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
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// A Checkpoint is one moment of a workspace.
type Checkpoint struct {
	ID      string `json:"id"` // sorts by time
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Workspace is the directory whose store it is in: the first root where a record
	// does not say.
	Workspace string    `json:"workspace,omitempty"`
	When      time.Time `json:"when"`
	Copy      string    `json:"copy,omitempty"` // the session on a copy whose base it is, or which is taken over
	Why       Why       `json:"why"`
	Roots     []Root    `json:"roots"` // the workspace first
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
	BeforeApply Why = "apply" // of a session on a copy
	AtCopy      Why = "copy"  // of a session on a copy, before its guest runs
)

// A Root is one directory of a checkpoint, with all below it, or a single file in it.
type Root struct {
	Path      string       `json:"path"`
	File      string       `json:"file,omitempty"` // the name of the one file that counts
	Mode      uint32       `json:"mode"`           // of the directory itself
	Tree      Digest       `json:"tree"`
	Files     int          `json:"files"`
	Bytes     int64        `json:"bytes"` // of their contents
	Uncovered []Uncovering `json:"uncovered,omitempty"`
}

// Top is the directory, or the one file.
func (r *Root) Top() string { return filepath.Join(r.Path, r.File) }

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
	return when.UTC().Format("20060102-150405.000000") + "-" + strings.ToLower(rand.Text()[:4])
}

// List returns the checkpoints there are, the oldest first. Names that are not
// valid are left out. It doesn't need the store to be open.
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
	c.Workspace = cmp.Or(c.Workspace, c.Roots[0].Path)
	for _, r := range c.Roots {
		if !filepath.IsAbs(r.Path) || filepath.Clean(r.Path) != r.Path || r.File != "" && !nameOK(r.File) {
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
	if len(b) >= maxRecord {
		return fmt.Errorf("it has %d bytes: want less than %d", len(b), maxRecord)
	}
	return replace(recordPath(s.dir, c.ID), append(b, '\n'))
}

// replace writes a file as a whole. It is not on the disk yet, which a guest's
// start does not wait for: sync does that later.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*") // mode 0600
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

// fsync is a variable for tests that take thousands of checkpoints.
var fsync = unix.Fsync

// syncFile writes a file or directory to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(fsync(int(f.Fd())), f.Close())
}
