package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// TestHookAnswers keeps answers for a while, for their owner, under their key.
func TestHookAnswers(t *testing.T) {
	now := time.Now()
	h := HookAnswers{filepath.Join(t.TempDir(), "answers"), func() time.Time { return now }}
	key, other := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	recall := func(what string, key string, want bool) {
		t.Helper()
		if a, ok := h.Recall(key); ok != want || ok && (a.Verdict != bawn.Allow || a.Scope != bawn.ForSession || a.By != "ann") {
			t.Errorf("%s: %+v, %t", what, a, ok)
		}
	}
	recall("before", key, false)
	if err := h.Keep(key, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	recall("after", key, true)
	recall("another", other, false)
	file := filepath.Join(h.Dir, key)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(filepath.Join(h.Dir, other), string(text), 0o600)
	recall("a copy under another key", other, false)
	for what, bad := range map[string]string{
		"cut off": string(text[:len(text)/2]), "nothing": "", "a question": strings.Replace(string(text), "allow", "ask", 1), "too long": string(text) + strings.Repeat(" ", maxAnswer),
	} {
		rewrite(file, bad, 0o600)
		recall(what, key, false)
	}
	rewrite(file, string(text), 0o640)
	recall("open to a group", key, false)
	rewrite(file, string(text), 0o600)
	recall("as it was", key, true)
	if err := os.Chmod(h.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	recall("in an open directory", key, false)
	if err := os.Chmod(h.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(h.Dir, other), file); err != nil {
		t.Fatal(err)
	}
	recall("a link", key, false)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	rewrite(file, string(text), 0o600)
	now = now.Add(-time.Second)
	recall("from the future", key, false)
	now = now.Add(answerHolds)
	recall("at its end", key, true)
	now = now.Add(time.Second)
	recall("too old", key, false)
}

// TestHookAnswersForget removes what holds no more, and keeps no more than there
// may be.
func TestHookAnswersForget(t *testing.T) {
	now := time.Now()
	h := HookAnswers{filepath.Join(t.TempDir(), "answers"), func() time.Time { return now }}
	keep := func(key string) error { return h.Keep(key, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.ForSession}) }
	for i := range maxAnswers {
		if err := os.MkdirAll(h.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.Dir, strings.Repeat("a", i%60+1)+strings.Repeat("b", i/60)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep("x"); err == nil || !strings.Contains(err.Error(), "1000 answers") {
		t.Errorf("one too many: %v", err)
	}
	now = now.Add(answerHolds + time.Minute)
	if err := keep("y"); err != nil {
		t.Errorf("later: %v", err)
	}
	var names []string
	files, _ := os.ReadDir(h.Dir)
	for _, f := range files {
		names = append(names, f.Name())
	}
	if d := cmp.Diff([]string{"y"}, names); d != "" {
		t.Error(d)
	}
}
