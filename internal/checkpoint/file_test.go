package checkpoint

import (
	"os"
	"slices"
	"testing"
	"time"
)

// TestSingleFile has one file of a directory in a checkpoint, and then takes it back.
// What lies beside it is neither kept nor touched.
func TestSingleFile(t *testing.T) {
	w := newWorld(t)
	w.file("etc/app.conf", "the human's")
	w.file("etc/other", "not looked at")
	w.file("src/main.go", "package main")
	take := func(why Why) (*Store, *Taking, *Checkpoint) {
		t.Helper()
		s := w.store()
		t.Cleanup(func() { s.Close() })
		taking, err := s.Scan(Options{Session: "s", Why: why, Roots: []string{w.path("src")}, Files: []string{w.path("etc/app.conf")}})
		w.must(err)
		t.Cleanup(taking.Close)
		c, err := taking.Keep(nil)
		w.must(err)
		w.must(taking.Finish())
		return s, taking, c
	}
	s, taking, start := take(AtStart)
	taking.Close()
	w.must(s.Close())
	if root := start.Roots[1]; root.Top() != w.path("etc/app.conf") || root.Files != 1 || root.Bytes != 11 {
		t.Fatalf("%+v", root)
	}
	for name, destroy := range map[string]func(){
		"overwritten": func() { w.file("etc/app.conf", "the guest's") },
		"removed":     func() { w.must(os.Remove(w.path("etc/app.conf"))) },
		"its mode":    func() { w.must(os.Chmod(w.path("etc/app.conf"), 0)) },
	} {
		destroy()
		w.file("etc/other", name)
		w.must(os.Chmod(w.path("etc"), 0o711))
		s, taking, now := take(BeforeUndo)
		list, err := s.Compare(start, now, nil)
		w.must(err)
		if len(list) != 1 || list[0].Path != w.path("etc/app.conf") {
			t.Errorf("%s: %+v", name, list)
		}
		u := &Undo{To: start}
		w.must(taking.Plan(u))
		done, err := u.Apply()
		w.must(err)
		taking.Close()
		_, err = s.Prune(Limits{}, time.Now())
		w.must(err)
		w.must(s.Close())
		info, err := os.Stat(w.path("etc/app.conf"))
		w.must(err)
		if done != 1 || w.read("etc/app.conf") != "the human's" || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %d done, %q, %v", name, done, w.read("etc/app.conf"), info.Mode())
		}
		if dir, err := os.Stat(w.path("etc")); err != nil || dir.Mode().Perm() != 0o711 || w.read("etc/other") != name {
			t.Errorf("%s: what lies beside it has changed", name)
		}
	}
	names, err := os.ReadDir(w.path("etc"))
	w.must(err)
	if !slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "other" }) || len(names) != 2 {
		t.Errorf("%v", names)
	}
}
