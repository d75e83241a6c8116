package hooksetup

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// recordName is the file in Setup.State that says what was written.
const recordName = "init.json"

// most is how long a settings file, and the record of all, may be in bytes.
const (
	most       = 1 << 20
	mostRecord = 64 << 20
)

// A record is what undoes edits.
type record struct {
	Version int                `json:"version"`
	Files   map[string]written `json:"files"`
	Done    []Deed             `json:"done,omitempty"`
}

// A Deed is what was done beside files, which takes another program to undo.
type Deed struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// written is what was done to one file.
type written struct {
	By     []string `json:"by"`               // Setup.by
	Before *string  `json:"before,omitempty"` // the file as it was; nil for none
	After  string   `json:"after"`            // digest of what was written
	Dirs   []string `json:"dirs,omitempty"`   // that were made for it, the innermost first
}

func (w written) before() []byte {
	if w.Before == nil {
		return nil
	}
	return []byte(*w.Before)
}

// only reports whether nobody else has written the file.
func (w written) only(by string) bool { return len(w.By) == 1 && w.By[0] == by }

// digest is of a file's content; "" is that of no file.
func digest(text []byte) string {
	if text == nil {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text))
}

func (s Setup) recordPath() string { return filepath.Join(s.State, recordName) }

// readRecord reads the record; none is an empty one.
func (s Setup) readRecord() (record, error) {
	text, err := atomicfile.Read(s.recordPath(), mostRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return record{}, err
	}
	return s.parseRecord(text)
}

func (s Setup) parseRecord(text []byte) (record, error) {
	r := record{Version: 1}
	if text != nil {
		if err := strictjson.Decode(text, &r); err != nil {
			return record{}, fmt.Errorf("%q: %w; move it away to start anew, and then undo takes out only what is bawn's own", s.recordPath(), err)
		}
	}
	if r.Version != 1 {
		return record{}, fmt.Errorf("%q: its version is %d; want 1: it was written by a newer bawn", s.recordPath(), r.Version)
	}
	if r.Files == nil {
		r.Files = map[string]written{}
	}
	return r, nil
}

// update changes the record.
func (s Setup) update(change func(*record)) error {
	if err := os.MkdirAll(s.State, 0o700); err != nil {
		return err
	}
	return atomicfile.Update(s.recordPath(), own, mostRecord, func(old []byte) ([]byte, error) {
		r, err := s.parseRecord(old)
		if err != nil {
			return nil, err
		}
		change(&r)
		text, err := json.MarshalIndent(r, "", " ")
		return append(text, '\n'), err
	})
}

// note changes what the record says of one file.
func (s Setup) note(path string, change func(w written, known bool) (written, bool)) error {
	return s.update(func(r *record) {
		w, known := r.Files[path]
		if w, keep := change(w, known); keep {
			r.Files[path] = w
		} else {
			delete(r.Files, path)
		}
	})
}

// Note remembers what was done, for an undo.
func (s Setup) Note(d Deed) error {
	return s.update(func(r *record) {
		if !slices.Contains(r.Done, d) {
			r.Done = append(r.Done, d)
		}
	})
}

// Forget is the opposite of Note.
func (s Setup) Forget(d Deed) error {
	return s.update(func(r *record) { r.Done = slices.DeleteFunc(r.Done, func(o Deed) bool { return o == d }) })
}

// Noted are the deeds that Note remembers.
func (s Setup) Noted() ([]Deed, error) {
	r, err := s.readRecord()
	return r.Done, err
}

// noteWrite says what will be written, before it is.
func (s Setup) noteWrite(e Edit, by string, dirs []string) error {
	return s.note(e.Path, func(w written, _ bool) (written, bool) {
		if !slices.Contains(w.By, by) {
			w.By = append(w.By, by)
		}
		w.Before, w.After = nil, digest(e.New)
		if e.before != nil {
			text := string(e.before)
			w.Before = &text
		}
		w.Dirs = append(dirs, w.Dirs...)
		return w, true
	})
}

// noteUndo says what has been undone, after it was.
func (s Setup) noteUndo(e Edit, by string) (dirs []string, err error) {
	err = s.note(e.Path, func(w written, _ bool) (written, bool) {
		w.By = slices.DeleteFunc(w.By, func(b string) bool { return b == by })
		w.After = digest(e.New)
		if len(w.By) == 0 {
			dirs = w.Dirs
		}
		return w, len(w.By) > 0
	})
	return dirs, err
}
