package hookcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// Bounds of what is kept of answers for the sessions of bare agents: how long
// one holds, how many there are, and how large one is, in bytes.
const (
	answerHolds = 12 * time.Hour
	maxAnswers  = 1000
	maxAnswer   = 4 << 10
)

// hookAnswers keeps answers "for this session" of agents whose hooks are a
// process for each call: a file for each, which its owner alone may read, in a
// directory that holds nothing else.
type hookAnswers struct {
	dir string
	now func() time.Time
}

var _ asking.Kept = hookAnswers{}

// answersName is the directory's name, below that of Bawn's state.
const answersName = "hook-answers"

// keptAnswer is what such a file holds.
type keptAnswer struct {
	Key     string       `json:"key"` // the file's own name: a copy elsewhere answers nothing
	Verdict bawn.Verdict `json:"verdict"`
	By      string       `json:"by"`
	Why     string       `json:"why,omitempty"`
	At      time.Time    `json:"at"`
}

// Recall reads an answer. An answer that is too old, in the future, open to others
// or unreadable does not count: the human is asked again.
func (h hookAnswers) Recall(key string) (bawn.Answer, bool) {
	name := filepath.Join(h.dir, key)
	for _, path := range []string{h.dir, name} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm()&0o077 != 0 || !ownedByUs(info) {
			return bawn.Answer{}, false
		}
	}
	text, err := atomicfile.Read(name, maxAnswer)
	if err != nil {
		return bawn.Answer{}, false
	}
	var k keptAnswer
	if json.Unmarshal(text, &k) != nil || k.Key != key || k.Verdict == bawn.Ask {
		return bawn.Answer{}, false
	}
	if age := h.now().Sub(k.At); age < 0 || age >= answerHolds {
		return bawn.Answer{}, false
	}
	return bawn.Answer{Verdict: k.Verdict, Scope: bawn.ForSession, By: k.By, Why: k.Why, At: k.At}, true
}

// Keep writes an answer, and removes those that hold no more.
func (h hookAnswers) Keep(key string, a bawn.Answer) error {
	if err := os.Mkdir(h.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	left, err := h.forget()
	if err != nil {
		return err
	}
	if left >= maxAnswers {
		return fmt.Errorf("%d answers are kept already; they are forgotten after %v", left, answerHolds)
	}
	text, err := json.Marshal(keptAnswer{key, a.Verdict, a.By, a.Why, h.now()})
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(h.dir, key), text, 0o600)
}

// forget removes what holds no more, by the times of the files, and says how
// many are left.
func (h hookAnswers) forget() (left int, err error) {
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || h.now().Sub(info.ModTime()) < answerHolds {
			left++
			continue
		}
		_ = root.Remove(e.Name()) // another hook may have
	}
	return left, err
}

// ownedByUs reports whether a file is of the user that runs this.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
