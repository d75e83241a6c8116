package learn

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func open(t *testing.T) (*Store, *clock) {
	t.Helper()
	c := &clock{start}
	s, err := Open(filepath.Join(t.TempDir(), "learned.json"), c.now)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func say(t *testing.T, s *Store, v bawn.Verdict, scope bawn.Scope, by string) {
	t.Helper()
	if err := s.Answer([]string{"make test"}, bawn.Answer{Verdict: v, Scope: scope, By: by}); err != nil {
		t.Fatal(err)
	}
}

func TestConfidence(t *testing.T) {
	s, _ := open(t)
	for n, want := range []float64{2.0 / 3, 3.0 / 4, 0.8, 5.0 / 6, 6.0 / 7} {
		say(t, s, bawn.Allow, bawn.Once, "ann")
		v, sure, ok := s.Recall("make test")
		if !ok || v != bawn.Allow || sure < want-1e-9 || sure > want+1e-9 {
			t.Errorf("after %d answers: %v %v %v, want allow %v", n+1, v, sure, ok, want)
		}
	}
	say(t, s, bawn.Deny, bawn.Once, "ann")
	if v, sure, _ := s.Recall("make test"); v != bawn.Allow || sure != 6.0/8 {
		t.Errorf("after a no: %v %v", v, sure)
	}
}

func TestUnknownShapeIsDenied(t *testing.T) {
	s, _ := open(t)
	if v, sure, ok := s.Recall("x"); v != bawn.Deny || sure != 0 || ok {
		t.Errorf("%v %v %v", v, sure, ok)
	}
	if v, sure := (Lesson{}).Confidence(start); v != bawn.Deny || sure != 0.5 {
		t.Errorf("the zero lesson says %v %v", v, sure)
	}
}

func TestAlwaysAndNever(t *testing.T) {
	s, _ := open(t)
	say(t, s, bawn.Allow, bawn.Always, "ann")
	if v, sure, _ := s.Recall("make test"); v != bawn.Allow || sure != 1 {
		t.Errorf("always: %v %v", v, sure)
	}
	say(t, s, bawn.Deny, bawn.Always, "ann")
	if v, sure, _ := s.Recall("make test"); v != bawn.Deny || sure != 1 {
		t.Errorf("never: %v %v", v, sure)
	}
	say(t, s, bawn.Allow, bawn.Once, "ann")
	if _, sure, _ := s.Recall("make test"); sure >= 0.85 {
		t.Errorf("a changed mind is %v sure", sure)
	}
}

// TestOnlyAHumanTeaches: what has no author, is no answer, or holds for one
// session only leaves nothing.
func TestOnlyAHumanTeaches(t *testing.T) {
	s, _ := open(t)
	for range 10 {
		say(t, s, bawn.Allow, bawn.Always, "")
		say(t, s, bawn.Ask, bawn.Always, "ann")
		say(t, s, 7, bawn.Always, "ann")
		say(t, s, bawn.Allow, bawn.ForSession, "ann")
		if err := s.Answer(nil, bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Always, By: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Lessons(); len(got) != 0 {
		t.Errorf("learned %v", got)
	}
}

func TestAnswersAge(t *testing.T) {
	s, c := open(t)
	for range 6 {
		say(t, s, bawn.Allow, bawn.Once, "ann")
	}
	sureAt := func(age time.Duration) float64 {
		c.t = start.Add(age)
		_, sure, _ := s.Recall("make test")
		return sure
	}
	fresh, graced, old := sureAt(0), sureAt(Grace), sureAt(Grace+3*HalfLife)
	if fresh != graced || old >= 0.85 || old <= 0.5 || sureAt(-time.Hour) != fresh {
		t.Errorf("fresh %v, after the grace %v, old %v", fresh, graced, old)
	}
}

func TestStoreOutlivesTheProcess(t *testing.T) {
	s, c := open(t)
	say(t, s, bawn.Allow, bawn.Always, "ann")
	again, err := Open(s.path, c.now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Lessons(), again.Lessons()); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(s.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestForget(t *testing.T) {
	s, _ := open(t)
	for _, shape := range []string{"make test", "make lint", "npm run x"} {
		if err := s.Answer([]string{shape}, bawn.Answer{Verdict: bawn.Allow, By: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		prefix string
		want   int
	}{{"nothing", 0}, {"make ", 2}, {"", 1}, {"", 0}} {
		if n, err := s.Forget(step.prefix); n != step.want || err != nil {
			t.Errorf("forget %q: %d %v, want %d", step.prefix, n, err, step.want)
		}
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "{", "an object": "{}", "no shape": `[{"allow":1}]`, "a negative count": `[{"shape":"x","allow":-1}]`,
		"a word": `[{"shape":"x","fixed":"maybe"}]`, "too large": `[{"shape":"x","allow":1e999}]`,
		"twice": `[{"shape":"x"},{"shape":"x"}]`, "an unknown key": `[{"shape":"x","sure":1}]`, "more behind": "[] []", "a control character": `[{"shape":"x\n"}]`,
	} {
		path := filepath.Join(t.TempDir(), "learned.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, time.Now); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.TempDir(), time.Now); err == nil {
		t.Error("a directory is accepted")
	}
}

// TestWhatCantBeWrittenIsNotLearned: the store says the same after a failure
// as it will after a restart.
func TestWhatCantBeWrittenIsNotLearned(t *testing.T) {
	s, _ := open(t)
	say(t, s, bawn.Allow, bawn.Always, "ann")
	s.path = filepath.Join(t.TempDir(), "absent", "learned.json")
	if err := s.Answer([]string{"x"}, bawn.Answer{Verdict: bawn.Allow, By: "ann"}); err == nil {
		t.Error("no error")
	}
	if _, err := s.Forget(""); err == nil {
		t.Error("no error")
	}
	if got := s.Lessons(); len(got) != 1 || got[0].Shape != "make test" {
		t.Errorf("%v", got)
	}
}

func TestStoreIsBounded(t *testing.T) {
	s, c := open(t)
	for i := range MaxShapes + 1 {
		s.lessons[strings.Repeat("x", i+1)] = Lesson{Shape: strings.Repeat("x", i+1), Last: start.Add(time.Duration(i))}
	}
	c.t = start.Add(time.Hour)
	say(t, s, bawn.Allow, bawn.Once, "ann")
	if _, _, ok := s.Recall("x"); len(s.lessons) != MaxShapes || ok {
		t.Errorf("%d shapes; the oldest is there: %v", len(s.lessons), ok)
	}
}

// FuzzLoad: a file is refused, or what it says can be recalled and is written
// as it was read.
func FuzzLoad(f *testing.F) {
	f.Add(`[{"shape":"make test","allow":5,"deny":0.5,"fixed":"allow","last":"2026-01-02T03:04:05Z"}]`)
	f.Add(`[{"shape":"x"},{"shape":"x"}]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, data string) {
		s := &Store{now: func() time.Time { return start }, lessons: map[string]Lesson{}}
		if s.load([]byte(data)) != nil {
			return
		}
		for _, l := range s.list() {
			if v, sure, ok := s.Recall(l.Shape); !ok || v == bawn.Ask || v > bawn.Allow || !(sure >= 0 && sure <= 1) {
				t.Fatalf("%+v: %v %v %v", l, v, sure, ok)
			}
		}
		text, err := json.Marshal(s.list())
		again := &Store{lessons: map[string]Lesson{}}
		if err != nil || again.load(text) != nil || len(again.lessons) != len(s.lessons) {
			t.Fatalf("written as %s: %v", text, err)
		}
	})
}
