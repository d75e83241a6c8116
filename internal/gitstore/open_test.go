package gitstore

import (
	"strings"
	"testing"
)

// begun has a merge, a rebase or a cherry-pick of the human's stop at a conflict.
func begun(t *testing.T, args ...string) *world {
	ws := newHost(t)
	run(t, ws, human(), "git", "checkout", "-q", "side")
	write(t, ws+"/f", "side's\n")
	run(t, ws, human(), "git", "commit", "-qam", "side's")
	if out, err := tryRun(ws, human(), append([]string{"git"}, args...)...); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	return newWorld(t, ws)
}

// TestGuestFinishes: what the human has begun and the guest finishes, or gives up, is
// so on both sides.
func TestGuestFinishes(t *testing.T) {
	for _, begin := range [][]string{{"merge", "main"}, {"rebase", "main"}, {"cherry-pick", "main"}} {
		for _, end := range []string{"--continue", "--abort"} {
			t.Run(begin[0]+end, func(t *testing.T) {
				w := begun(t, begin...)
				before, saw, files := w.snapshot(), w.humanSees(), w.files()
				if r := w.sync(); r.Published > 0 {
					t.Fatalf("nothing is done yet: %+v", r)
				}
				if end == "--continue" {
					w.edit("f", "solved\n")
					w.guest("add", "f")
				}
				w.guest(begin[0], end)
				w.quiet()
				w.agree()
				if out := w.host("status"); strings.Contains(out, "merging") || strings.Contains(out, "rebas") || strings.Contains(out, "cherry") {
					t.Errorf("still open: %s", out)
				}
				if r := w.close(); !r.Quiet() {
					t.Errorf("%+v", r)
				}
				files()
				w.apply(w.plan(before, nil))
				if got := w.humanSees(); got != saw {
					t.Errorf("after the undo\n%s\nbefore\n%s", got, saw)
				}
			})
		}
	}
}

// TestGuestDoesNotFinish: what the human has gone on with, or begun since, stays open.
func TestGuestDoesNotFinish(t *testing.T) {
	for name, human := range map[string]func(w *world){
		"gone on with":    func(w *world) { w.host("checkout", "--theirs", "f"); write(t, w.ws+"/.git/MERGE_MSG", "mine\n") },
		"nothing changed": func(*world) {},
	} {
		w := begun(t, "merge", "main")
		human(w)
		w.guest("reset", "-q", "--hard")
		r := w.sync()
		_, err := tryRun(w.ws, nil, "test", "-e", ".git/MERGE_HEAD")
		if open := err == nil; open != (name == "gone on with") || open != (r.Held != "") {
			t.Errorf("%s: open: %t, %+v", name, open, r)
		}
	}
}
