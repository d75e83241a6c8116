package undo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/checkpoint"
)

type world struct {
	t        *testing.T
	state, w string
}

func newWorld(t *testing.T) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, filepath.Join(dir, "state"), filepath.Join(dir, "w")}
	if err := os.Mkdir(w.w, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) put(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.w, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) begin(session string) *Taker {
	w.t.Helper()
	k := Begin(Options{State: w.state, Workspace: w.w, Roots: []string{w.w}, Session: session})
	k.Keep()
	if err := k.Ready(); err != nil || !k.Covered() {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) list() string {
	w.t.Helper()
	list, err := checkpoint.List(checkpoint.Place(w.state, w.w))
	if err != nil {
		w.t.Fatal(err)
	}
	var words []string
	for _, c := range list {
		words = append(words, c.Session+" "+string(c.Why))
	}
	return strings.Join(words, ", ")
}

func (w *world) end(k *Taker) *Ending {
	w.t.Helper()
	k.Ended()
	e, err := k.End()
	if err != nil {
		w.t.Fatal(err)
	}
	if again, err := k.End(); again != nil || err != nil {
		w.t.Errorf("a second end: %v, %v", again, err)
	}
	return e
}

// TestTaker follows sessions, with their clock, through what they may do.
func TestTaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("a", "one")
		k := w.begin("s")
		k.Run()
		synctest.Wait()
		time.Sleep(3 * every) // nothing changes
		synctest.Wait()
		if got := w.list(); got != "s start" {
			t.Errorf("idle: %s", got)
		}
		w.put("a", "two, longer")
		time.Sleep(every + time.Second)
		synctest.Wait()
		w.put("a", "three, longer still")
		k.Prompt()
		synctest.Wait()
		time.Sleep(time.Second) // the IDs sort by time
		w.put("a", "four, which is about to be destroyed")
		if err := k.Before(t.Context()); err != nil || !k.Covered() {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.put("a", "five")
		w.put("b", "new")
		if e := w.end(k); e == nil || e.Changed != 2 || e.Lost != 1 || e.String() != "2 files changed" {
			t.Errorf("%+v", e)
		}
		if got := w.list(); got != "s start, s time, s prompt, s destruction, s end" {
			t.Errorf("%s", got)
		}
	})
}

// TestNothingChanged: a session that has changed nothing leaves no checkpoint, and
// neither does one that never began.
func TestNothingChanged(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	k := w.begin("s")
	k.Run()
	if e := w.end(k); e != nil {
		t.Errorf("%+v", e)
	}
	k = w.begin("never")
	if e, err := k.End(); e != nil || err != nil {
		t.Error(e, err)
	}
	k = Begin(Options{State: w.state, Workspace: w.w, Roots: []string{w.w}, Session: "not planned"})
	if e, err := k.End(); e != nil || err != nil {
		t.Error(e, err)
	}
	if got := w.list(); got != "" {
		t.Errorf("%s", got)
	}
	var none *Taker // of a session without checkpoints
	none.Keep()
	none.Run()
	none.Prompt()
	none.Ended()
	if e, err := none.End(); none.Covered() || none.Ready() != nil || e != nil || err != nil || none.Before(t.Context()) == nil {
		t.Error("a session without checkpoints has some")
	}
}

// TestNotKept: where the store can't be written the session is not covered.
func TestNotKept(t *testing.T) {
	w := newWorld(t)
	w.put("a", "one")
	if err := os.WriteFile(w.state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := Begin(Options{State: w.state, Workspace: w.w, Roots: []string{w.w}, Session: "s"})
	k.Keep()
	if k.Ready() == nil || k.Covered() || k.Uncovered() != nil {
		t.Error("it is covered")
	}
	k.Run()
	if k.Before(t.Context()) == nil {
		t.Error("it is kept before it is destroyed")
	}
	k.Ended()
	if e, err := k.End(); e != nil || err != nil {
		t.Error(e, err)
	}
}

func TestChoose(t *testing.T) {
	root := func(n byte) []checkpoint.Root { return []checkpoint.Root{{Path: "/w", Tree: checkpoint.Digest{n}}} }
	list := []checkpoint.Checkpoint{
		{ID: "1", Session: "aaaaa", Why: checkpoint.AtStart, Roots: root(1)},
		{ID: "2", Session: "aaaaa", Why: checkpoint.AtTime, Roots: root(2)},
		{ID: "3", Session: "aaaaa", Why: checkpoint.AtEnd, Roots: root(3)},
		{ID: "4", Session: "abbbb", Why: checkpoint.AtStart, Roots: root(3)}, // killed
		{ID: "5", Why: checkpoint.BeforeUndo, Roots: root(4)},
		{ID: "6", Session: "acccc", Why: checkpoint.AtStart, Roots: root(5)},
		{ID: "7", Session: "acccc", Why: checkpoint.AtEnd, Roots: root(5)},
		{ID: "20aab", Roots: root(5)}, {ID: "20aac", Roots: root(5)},
	}
	for name, want := range map[string]string{
		"": "4 to 5 of abbbb, killed", "aaaaa": "1 to 3 of aaaaa", "aaaa": "1 to 3 of aaaaa", "2": "2 to 3 of aaaaa", "5": "5 to ? of ", "abbb": "4 to 5 of abbbb, killed",
		"a": "error", "aaa": "error", "abb": "error", "20aa": "error", "20aab": "20aab to ? of ", "9": "error", "acccc": "6 to 7 of acccc",
	} {
		got := "error"
		if x, err := Choose(list, name); err == nil {
			after := "?"
			if x.After != nil {
				after = x.After.ID
			}
			got = x.To.ID + " to " + after + " of " + x.Session
			if x.Killed {
				got += ", killed"
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if _, err := Choose(list[5:], ""); err == nil {
		t.Error("a session that has changed nothing is taken back")
	}
	list = append(list, checkpoint.Checkpoint{ID: "8", Session: "adddd", Why: checkpoint.BeforeApply, Roots: root(5)}, checkpoint.Checkpoint{ID: "9", Session: "adddd", Why: checkpoint.AtEnd, Roots: root(6)})
	if x, err := Choose(list, ""); err != nil || x.To.ID != "8" || x.After == nil || x.After.ID != "9" {
		t.Errorf("after an apply: %+v, %v", x, err)
	}
}

func TestDestroys(t *testing.T) {
	for line, want := range map[string]bool{
		"rm -rf x": true, "cd x && /bin/rm y": true, "echo x > y": true, "git reset --hard": true, "ls -l": false, "cat harm rmx": false, "go test ./...": false,
	} {
		if got := Destroys(bawn.Event{Kind: "command", Resource: line}); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	if !Destroys(bawn.Event{Kind: "filesystem", Operation: "delete", Resource: "/x"}) || Destroys(bawn.Event{Kind: "network", Resource: "rm"}) {
		t.Error("other actions")
	}
}

func TestConsent(t *testing.T) {
	w := newWorld(t)
	c, err := ReadConsent(w.state, w.w)
	if err != nil {
		t.Fatal(err)
	}
	list := []checkpoint.Uncovering{{Path: w.w + "/a/large"}, {Path: w.w + "/b"}}
	if len(c.ReadOnly(list)) != 2 || len(c.Untold(list)) != 2 || len(c.Untold(list)) != 0 {
		t.Errorf("%+v", c)
	}
	c.Allow(w.w+"/a", w.w+"/a/large")
	if err := c.Write(w.state); err != nil {
		t.Fatal(err)
	}
	if c, err = ReadConsent(w.state, w.w); err != nil || len(c.Paths) != 1 || len(c.ReadOnly(list)) != 1 || len(c.Told) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(checkpoint.Place(w.state, w.w), consentName), []byte(`{"workspace":"/other","paths":["/"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = ReadConsent(w.state, w.w); err == nil || len(c.ReadOnly(list)) != 2 {
		t.Errorf("another workspace's consent holds: %+v", c)
	}
}
