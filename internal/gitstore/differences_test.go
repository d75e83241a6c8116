package gitstore

import (
	"slices"
	"strings"
	"testing"
)

// said is what differs, for people: "NAME FROM TO" with names of commits.
func (w *world) said(list []RefChange) string {
	w.t.Helper()
	var out []string
	for _, c := range list {
		line := c.Name + " " + c.From + " > " + c.To
		for _, name := range []string{"first", "second"} {
			line = strings.ReplaceAll(line, strings.TrimSpace(w.host("rev-parse", name)), name)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// What a session has changed in git is listed, and what the human does later is not.
func TestDifferences(t *testing.T) {
	w := newWorld(t, newHost(t))
	w.host("tag", "first")
	before := w.snapshot()
	w.edit("f", "a\n")
	w.guest("commit", "-qam", "one")
	w.guest("checkout", "-qb", "fix")
	w.guest("tag", "second")
	w.edit("f", "stashed\n")
	w.guest("stash")
	w.guest("update-ref", "refs/notes/x", "second")
	w.quiet()
	after := w.snapshot()
	w.host("branch", "later")
	w.host("stash", "drop", "-q")

	list, err := Differences(w.repo.Common, before, after)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(c RefChange) bool { return c.Name == stashRef })
	if i < 0 || list[i].From != "" || !strings.HasPrefix(list[i].To, "1, the newest ") {
		t.Fatalf("the stack of stashes: %+v", list)
	}
	const want = "HEAD ref: refs/heads/main > ref: refs/heads/fix; refs/heads/fix  > second; refs/heads/main first > second; refs/notes/x  > second; refs/tags/second  > second"
	if got := w.said(slices.Delete(list, i, i+1)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if list, err = Differences(w.repo.Common, after, nil); err != nil || !strings.Contains(w.said(list), "refs/heads/later  > second") {
		t.Errorf("up to now: %+v, %v", list, err)
	}
	if list, err = Differences(w.repo.Common, after, after); err != nil || len(list) > 0 {
		t.Errorf("nothing has changed: %+v, %v", list, err)
	}
	if _, err = Differences(w.repo.Common, []byte("{"), nil); err == nil {
		t.Error("a broken checkpoint is compared")
	}
}
