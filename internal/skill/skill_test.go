package skill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree has two skills, a definition and a file of instructions.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir+"/skills/commit/SKILL.md", "one")
	write(t, dir+"/skills/commit/references/a.md", "two")
	write(t, dir+"/skills/commit/scripts/run.sh", "three")
	write(t, dir+"/skills/push/SKILL.md", "four")
	write(t, dir+"/skills/.DS_Store", "no text")
	write(t, dir+"/agents/reviewer.md", "five")
	write(t, dir+"/AGENTS.md", "six")
	return dir
}

func places(dir string) []Place {
	return []Place{{Skill, dir + "/skills"}, {Definition, dir + "/agents"}, {Instructions, dir + "/AGENTS.md"}, {Skill, dir + "/absent"}, {Skill, dir + "/AGENTS.md/x"}}
}

func TestFind(t *testing.T) {
	dir := tree(t)
	var got []string
	for _, i := range Find(places(dir)) {
		got = append(got, fmt.Sprint(i.Kind, " ", i.Name, " ", i.Files, " ", i.Fault == nil && sound(i.Digest)))
	}
	want := []string{"skill commit 3 true", "skill push 1 true", "definition reviewer 1 true", "instructions AGENTS 1 true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestDigestsDiffer changes one thing at a time. The control is that nothing
// changed leaves the digest as it was.
func TestDigestsDiffer(t *testing.T) {
	changes := map[string]func(dir string) error{
		"":              func(string) error { return nil },
		"a byte":        func(d string) error { return os.WriteFile(d+"/scripts/run.sh", []byte("threE"), 0o644) },
		"a new file":    func(d string) error { return os.WriteFile(d+"/x", nil, 0o644) },
		"a hidden file": func(d string) error { return os.WriteFile(d+"/.x", nil, 0o644) },
		"executable":    func(d string) error { return os.Chmod(d+"/scripts/run.sh", 0o755) },
		"renamed":       func(d string) error { return os.Rename(d+"/scripts/run.sh", d+"/scripts/ran.sh") },
		"moved":         func(d string) error { return os.Rename(d+"/scripts/run.sh", d+"/run.sh") },
		"gone":          func(d string) error { return os.Remove(d + "/references/a.md") },
		"swapped": func(d string) error {
			return os.WriteFile(d+"/references/a.md", []byte("three"), 0o644)
		},
	}
	for name, change := range changes {
		dir := tree(t) + "/skills/commit"
		before := Scan(Skill, dir, nil)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		after := Scan(Skill, dir, nil)
		if same := before.Digest == after.Digest; same != (name == "") || after.Fault != nil {
			t.Errorf("%q: same %v, %v", name, same, after.Fault)
		}
	}
	dir := tree(t)
	if Scan(Skill, dir+"/skills/push/SKILL.md", nil).Digest == Scan(Definition, dir+"/skills/push/SKILL.md", nil).Digest {
		t.Error("the kind is not part of the digest")
	}
	if Scan(Skill, filepath.Join(dir, "absent"), nil).Fault == nil {
		t.Error("what does not exist has a digest")
	}
}

// TestWhatLeadsElsewhereIsRefused: the control is the tree without it, whose
// items have no fault (TestFind).
func TestWhatLeadsElsewhereIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"a link to a file":        {func(d string) error { return os.Symlink("/etc/hostname", d+"/skills/commit/x") }, "a link"},
		"a link inside":           {func(d string) error { return os.Symlink("SKILL.md", d+"/skills/commit/x") }, "a link"},
		"a link to a directory":   {func(d string) error { return os.Symlink("..", d+"/skills/commit/x") }, "a link"},
		"a dangling link":         {func(d string) error { return os.Symlink("nowhere", d+"/skills/commit/x") }, "a link"},
		"a skill that is a link":  {func(d string) error { return os.Symlink("../agents", d+"/skills/x") }, "a link"},
		"a text that is a link":   {func(d string) error { return os.Symlink("../AGENTS.md", d+"/agents/x.md") }, "a link"},
		"a pipe":                  {func(d string) error { return syscall.Mkfifo(d+"/skills/commit/x", 0o644) }, "neither"},
		"a large file":            {func(d string) error { return sparse(d+"/skills/commit/x", MaxFile+1) }, "too large"},
		"large files":             {func(d string) error { return filled(d+"/skills/commit", 5, MaxFile) }, "too large"},
		"many files":              {func(d string) error { return filled(d+"/skills/commit", MaxFiles+1, 1) }, "more than"},
		"deep":                    {func(d string) error { return os.MkdirAll(d+"/skills/commit/"+strings.Repeat("x/", MaxDepth+1), 0o755) }, "deep"},
		"a place that is a file":  {func(d string) error { return os.WriteFile(d+"/absent", nil, 0o644) }, "want a directory"},
		"a place that is a link":  {func(d string) error { return os.Symlink("skills", d+"/absent") }, "a link"},
		"instructions as a link":  {func(d string) error { return relink(d + "/AGENTS.md") }, "a link"},
		"instructions as a place": {func(d string) error { return os.Mkdir(d+"/absent", 0o755) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t)
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			var faults []string
			for _, i := range Find(places(dir)) {
				if i.Fault != nil {
					faults = append(faults, i.Fault.Error())
					if i.Digest != "" || (&Pins{list: []Pin{{Kind: i.Kind, Name: i.Name, Path: i.Path}}}).State(i) == Pinned {
						t.Error("it has a digest, or a pin")
					}
				}
			}
			if tt.want == "" != (len(faults) == 0) || len(faults) > 0 && !strings.Contains(faults[0], tt.want) {
				t.Errorf("got %q, want %q", faults, tt.want)
			}
		})
	}
}

func sparse(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

func filled(dir string, n int, size int64) error {
	for i := range n {
		if err := sparse(fmt.Sprintf("%s/f%d", dir, i), size); err != nil {
			return err
		}
	}
	return nil
}

func relink(path string) error {
	if err := os.Rename(path, path+".x"); err != nil {
		return err
	}
	return os.Symlink(filepath.Base(path)+".x", path)
}

func TestPins(t *testing.T) {
	dir := tree(t)
	file := filepath.Join(t.TempDir(), "skills.json")
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	items := Find(places(dir))
	p, err := LoadPins(file)
	if err != nil || p.State(items[0]) != New {
		t.Fatalf("without a file: %v %v", err, p.State(items[0]))
	}
	if err := Keep(file, "test", now, items[:2]...); err != nil {
		t.Fatal(err)
	}
	p, _ = LoadPins(file)
	if p.State(items[0]) != Pinned || p.State(items[2]) != New {
		t.Errorf("got %v %v", p.State(items[0]), p.State(items[2]))
	}
	write(t, dir+"/skills/commit/SKILL.md", "other")
	changed := Find(places(dir))[0]
	if p.State(changed) != Changed {
		t.Errorf("changed: %v", p.State(changed))
	}
	copied := tree(t) // the same in another working tree
	if i := Find(places(copied))[0]; p.State(i) != Pinned {
		t.Errorf("the same elsewhere: %v", p.State(i))
	}
	if err := os.Rename(copied+"/skills/commit", copied+"/skills/other"); err != nil {
		t.Fatal(err)
	}
	if i := Find(places(copied))[0]; p.State(i) != New {
		t.Errorf("the same by another name: %v", p.State(i))
	}
	if err := Keep(file, "test", now, changed); err != nil {
		t.Fatal(err)
	}
	if p, _ = LoadPins(file); p.State(changed) != Pinned || p.State(items[0]) != Changed || len(p.All()) != 2 {
		t.Errorf("pinned anew: %v %v %v", p.State(changed), p.State(items[0]), p.All())
	}
	removed, err := Remove(file, func(p Pin) bool { return p.Name == "push" })
	if p, _ = LoadPins(file); err != nil || len(removed) != 1 || len(p.All()) != 1 {
		t.Errorf("removed %v %v", removed, err)
	}
	if err := Keep(file, "test", now, Item{Kind: Skill, Name: "x", Path: "/x"}); err == nil {
		t.Error("what has no digest was pinned")
	}
}

// TestOldRulesPinNothing: what was checked by fewer rules is checked again.
func TestOldRulesPinNothing(t *testing.T) {
	i := Scan(Skill, tree(t)+"/skills/push", nil)
	pin := Pin{Kind: Skill, Name: i.Name, Path: i.Path, Digest: i.Digest, Rules: Rules}
	if (&Pins{list: []Pin{pin}}).State(i) != Pinned {
		t.Fatal("control: it is not pinned")
	}
	pin.Rules--
	if (&Pins{list: []Pin{pin}}).State(i) != Changed {
		t.Error("a pin of older rules holds")
	}
}

func TestBrokenPinsPinNothing(t *testing.T) {
	good := `[{"kind":"skill","name":"x","path":"/x","digest":"sha256:` + strings.Repeat("0", 64) + `","rules":1,"at":"2026-11-01T00:00:00Z","by":"x"}]`
	for name, text := range map[string]string{
		"": good, "no JSON": "x", "cut": good[:40], "an unknown member": strings.Replace(good, "by", "bye", 1), "something behind": good + "[]",
		"a relative path": strings.Replace(good, `"/x"`, `"x"`, 1), "no digest": strings.Replace(good, "sha256:0", "sha256:", 1), "no kind": strings.Replace(good, `"skill"`, `""`, 1),
	} {
		file := filepath.Join(t.TempDir(), "skills.json")
		write(t, file, text)
		p, err := LoadPins(file)
		if fine := err == nil && len(p.All()) == 1; fine != (name == "") {
			t.Errorf("%q: %v %v", name, p.All(), err)
		}
		if name != "" && Keep(file, "x", time.Time{}, Scan(Skill, tree(t)+"/skills/push", nil)) == nil {
			t.Errorf("%q: a broken file was replaced", name)
		}
	}
}

func TestFaultsAreSafeToShow(t *testing.T) {
	f := &Fault{File: "a\x1b[2J", Line: 3, Problem: "b\u202e"}
	if got, want := f.Error(), `a\x1b[2J:3: b\u202e`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzPins(f *testing.F) {
	f.Add([]byte(`[{"kind":"skill","name":"x","path":"/x","digest":"sha256:","rules":1}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parsePins(data)
		for _, p := range list {
			if err == nil && p.check() != nil {
				t.Fatalf("%q is taken", data)
			}
		}
	})
}

func FuzzHidden(f *testing.F) {
	f.Add([]byte("a\u200b\n👩‍👩 \ufe0f\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		faults := Hidden("x", text)
		lines := bytes.Count(text, []byte("\n")) + 1
		for _, f := range faults {
			if f.Line < 1 || f.Line > lines {
				t.Fatalf("line %d of %d", f.Line, lines)
			}
		}
		if len(faults) == 0 && bytes.ContainsAny(text, "\u202e\u200b\x1b\x00\ufeff\U000e0041") {
			t.Fatalf("%q hides nothing", text)
		}
	})
}

// BenchmarkFind is what a session pays: for looking where nothing is, and for
// digests of what is there.
func BenchmarkFind(b *testing.B) {
	dir := b.TempDir()
	absent := places(dir)
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			if len(Find(absent)) != 0 {
				b.Fatal("something is there")
			}
		}
	})
	for i := range 20 {
		name := fmt.Sprintf("%s/skills/s%d", dir, i)
		if err := os.MkdirAll(name, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name+"/SKILL.md", bytes.Repeat([]byte("x\n"), 4000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("twenty", func(b *testing.B) {
		for b.Loop() {
			if len(Find(absent)) != 20 {
				b.Fatal("they are not there")
			}
		}
	})
}
