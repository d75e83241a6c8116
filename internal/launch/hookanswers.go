package launch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// Limits of kept answers for the sessions of unsandboxed agents: how long one holds,
// how many there are, and how large one is, in bytes.
const (
	answerHolds = 12 * time.Hour
	maxAnswers  = 1000
	maxAnswer   = 4 << 10
)

// HookAnswers keeps answers "for this session" of agents that start a process
// for each hook call. Each is a file that only its owner can read, in a
// directory that holds nothing else.
type HookAnswers struct {
	Dir string
	Now func() time.Time
}

var _ asking.KeptOnce = HookAnswers{}

// NewHookAnswers keeps answers below the directory of Bawn's state.
func NewHookAnswers(state string) HookAnswers {
	return HookAnswers{filepath.Join(state, "hook-answers"), func() time.Time { return time.Now().UTC() }}
}

// HookSession is Bawn's own name for a session of an unsandboxed agent's, the same in each of
// its calls.
func HookSession(agent, session string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + session))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:len(NewSessionID())])
}

// hookKeyName is the file of which the secrets of unsandboxed agents' sessions are made.
const hookKeyName = "hook-key"

// HookSecret proves to the relay that questions belong to one session of an
// unsandboxed agent, though each hook call and each moved command is its own process.
// Equal questions asked at once are then one question.
func HookSecret(state, session string) (string, error) {
	key, err := OwnSecret(filepath.Join(state, hookKeyName))
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(session))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// asksFor has the session's questions put as those of an unsandboxed agent's session, whose
// hook has moved a command here: the human's answers for it hold for all of them.
func (l *Launch) asksFor(e *Env, dir string, o *asking.Options) error {
	secret, err := HookSecret(dir, l.For)
	if err != nil {
		return err
	}
	o.Session, o.Kept = l.For, NewHookAnswers(dir)
	o.Relay = RelayAs(e, dir, link.Options{Session: l.For, Secret: secret})
	return nil
}

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
func (h HookAnswers) Recall(key string) (bawn.Answer, bool) {
	name := filepath.Join(h.Dir, key)
	for _, path := range []string{h.Dir, name} {
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
	if age := h.Now().Sub(k.At); age < 0 || age >= answerHolds {
		return bawn.Answer{}, false
	}
	return bawn.Answer{Verdict: k.Verdict, Scope: bawn.ForSession, By: k.By, Why: k.Why, At: k.At}, true
}

// Keep writes an answer, and removes those that hold no more.
func (h HookAnswers) Keep(key string, a bawn.Answer) error {
	if err := os.Mkdir(h.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	left, err := h.forget()
	if err != nil {
		return err
	}
	if left >= maxAnswers {
		return fmt.Errorf("%d answers are kept already; they are forgotten after %v", left, answerHolds)
	}
	text, err := json.Marshal(keptAnswer{key, a.Verdict, a.By, a.Why, h.Now()})
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(h.Dir, key), text, 0o600)
}

// onceHolds is how long an answer waits for its one use.
const onceHolds = 2 * time.Minute

// once is the key of an answer for one use.
func once(key string) string { return key + ".once" }

// KeepOnce keeps an answer for one use.
func (h HookAnswers) KeepOnce(key string, a bawn.Answer) error { return h.Keep(once(key), a) }

// Spend takes an answer that was kept for one use: only one of several processes
// gets it.
func (h HookAnswers) Spend(key string) (bawn.Answer, bool) {
	a, ok := h.Recall(once(key))
	if !ok || os.Remove(filepath.Join(h.Dir, once(key))) != nil || h.Now().Sub(a.At) >= onceHolds {
		return bawn.Answer{}, false
	}
	a.Scope = bawn.Once
	return a, true
}

// forget removes what holds no more, by the times of the files, and says how
// many are left.
func (h HookAnswers) forget() (left int, err error) {
	root, err := os.OpenRoot(h.Dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || h.Now().Sub(info.ModTime()) < answerHolds {
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
