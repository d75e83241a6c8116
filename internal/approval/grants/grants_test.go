package grants

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

var when = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func rule(pattern string, v bawn.Verdict) bawn.Rule {
	return bawn.Rule{ID: "x", Kind: bawn.Command, Pattern: pattern, Verdict: v, Priority: 12, Match: []string{pattern}}
}

func add(t *testing.T, f *File, by string, rules ...bawn.Rule) []bawn.Rule {
	t.Helper()
	kept, err := f.Add(rules, by, when)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func rules(t *testing.T, f *File) []bawn.Rule {
	t.Helper()
	got, err := f.Rules()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What is kept is read back as it was, and the later answer about the same
// stands alone.
func TestKept(t *testing.T) {
	f := In(t.TempDir() + "/state")
	if got := rules(t, f); got != nil {
		t.Fatalf("before: %+v", got)
	}
	kept := add(t, f, "terminal", rule("git push", bawn.Allow), rule("npm publish", bawn.Deny))
	if diff := cmp.Diff(kept, rules(t, f)); diff != "" {
		t.Errorf("(-kept +read)\n%s", diff)
	}
	if r := kept[0]; r.Source != bawn.User || !strings.HasPrefix(r.ID, "approved:") || r.Reason != `answered "always" by terminal on 2026-11-21` {
		t.Errorf("kept as %+v", r)
	}
	add(t, f, "we\x1b[2Jb\u202e", rule("git push", bawn.Deny))
	got := rules(t, f)
	if len(got) != 2 || got[1].Verdict != bawn.Deny || got[1].ID != kept[0].ID || strings.ContainsAny(got[1].Reason, "\x1b\u202e") {
		t.Errorf("after another answer: %+v", got)
	}
	if info, err := os.Stat(f.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode: %v, %v", info.Mode(), err)
	}
	if n, err := f.Forget(kept[0].ID); n != 1 || err != nil || len(rules(t, f)) != 1 {
		t.Errorf("forgot %d, %v", n, err)
	}
}

// A file that somebody has changed, cut or opened to others gives no policy, and
// the error says what to do.
func TestTampered(t *testing.T) {
	f := In(t.TempDir())
	add(t, f, "terminal", rule("git push", bawn.Allow), rule("npm publish", bawn.Deny))
	good, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(string(good), "\n[[rule]]")
	for name, bad := range map[string]string{
		"the denial is gone": string(good[:last]), "another pattern": strings.Replace(string(good), `pattern = "git push"`, `pattern = "git *"`, 1), "empty": "",
		"no head": string(good[strings.Index(string(good), "[["):]), "more": string(good) + "\n", "no rules of ours": head + sum("\n[[rule]]\n") + "\n[[rule]]\n",
		"a rule of another hand": string(text([]bawn.Rule{rule("git *", bawn.Allow)})), "not text": "\x00\xff",
	} {
		if err := os.WriteFile(f.Path(), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		var tampered *TamperedError
		if got, err := f.Rules(); !errors.As(err, &tampered) || got != nil || !strings.Contains(tampered.Remedy(), "forget --all") {
			t.Errorf("%s: read as %+v, %v", name, got, err)
		}
		if _, err := f.Add([]bawn.Rule{rule("ls", bawn.Allow)}, "terminal", when); !errors.As(err, &tampered) {
			t.Errorf("%s: added to: %v", name, err)
		}
	}
	if err := f.Clear(); err != nil || len(rules(t, f)) != 0 {
		t.Errorf("cleared: %v", err)
	}
	if err := os.WriteFile(f.Path(), good, 0o600); err != nil || len(rules(t, f)) != 2 {
		t.Errorf("control: %v", err)
	}
	if err := os.Chmod(f.Path(), 0o620); err != nil {
		t.Fatal(err)
	}
	var tampered *TamperedError
	if _, err := f.Rules(); !errors.As(err, &tampered) {
		t.Errorf("a file that others may write: %v", err)
	}
}

// Answers of several processes at once are all kept.
func TestTogether(t *testing.T) {
	f := In(t.TempDir())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := In(strings.TrimSuffix(f.path, "/"+Name)).Add([]bawn.Rule{rule(fmt.Sprintf("tool%d run", i), bawn.Allow)}, "web", when); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := rules(t, f); len(got) != 20 {
		t.Errorf("%d are kept; want 20", len(got))
	}
}

// A rule that can't be one is not kept, and nothing else is lost.
func TestRefused(t *testing.T) {
	f := In(t.TempDir())
	add(t, f, "terminal", rule("git push", bawn.Allow))
	if _, err := f.Add([]bawn.Rule{rule("*", bawn.Allow)}, "terminal", when); err == nil {
		t.Error("a rule that allows every program is kept")
	}
	if got := rules(t, f); len(got) != 1 {
		t.Errorf("left: %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + sum("")))
	f.Add(text([]bawn.Rule{rule("git push", bawn.Allow)}))
	f.Add([]byte("[[rule]]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := In("/nowhere").parse(data)
		if err != nil {
			return
		}
		if again, err := In("/nowhere").parse(text(rules)); err != nil || !cmp.Equal(rules, again) {
			t.Errorf("written again: %v\n%s", err, cmp.Diff(rules, again))
		}
	})
}
