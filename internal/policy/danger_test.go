package policy

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// found reports whether a shape matches any command of a line.
func found(s *shape, line string) bool {
	return slices.ContainsFunc(commandsOf(line), func(a argv) bool { return s.matches(&a) })
}

// allDangers lists every entry once.
func allDangers(t testing.TB) (out []danger) {
	t.Helper()
	for _, f := range dangerFiles {
		for e := range entries(f.name, *f.text) {
			d, err := parseDanger(e)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, d)
		}
	}
	return out
}

// TestDangersMatchTheirExamples: each entry finds every one of its own
// examples and none of its counterexamples.
func TestDangersMatchTheirExamples(t *testing.T) {
	for _, d := range allDangers(t) {
		examples, counter := d.lines()
		if len(examples) == 0 {
			t.Errorf("%s | %s: it has no example", d.family, d.pattern)
		}
		for _, e := range examples {
			if !found(&d.shape, e) {
				t.Errorf("%s | %.80s: does not match its example %q", d.family, d.pattern, e)
			}
		}
		for _, e := range counter {
			if found(&d.shape, e) {
				t.Errorf("%s | %.80s: matches its counterexample %q", d.family, d.pattern, e)
			}
		}
	}
}

// TestDangersWithConditionsHaveCounterexamples: where flags or words decide,
// an example must show what they leave alone.
func TestDangersWithConditionsHaveCounterexamples(t *testing.T) {
	for _, d := range allDangers(t) {
		_, counter := d.lines()
		conditions := len(d.shape.subs) + len(d.shape.flags) + len(d.shape.operands) + len(d.shape.not)
		if conditions > 0 && len(counter) == 0 {
			t.Errorf("%s | %.80s: it has conditions and no counterexample", d.family, d.pattern)
		}
	}
}

// TestDangersSayWhyShortly: a reason is one short sentence for a human.
func TestDangersSayWhyShortly(t *testing.T) {
	for _, d := range allDangers(t) {
		if n := len(d.reason); n < 5 || n > 80 || strings.HasSuffix(d.reason, ".") {
			t.Errorf("%s | %.80s: the reason %q is not one short sentence", d.family, d.pattern, d.reason)
		}
	}
}

func TestDangerFamiliesAreComplete(t *testing.T) {
	seen := map[string]int{}
	for _, d := range allDangers(t) {
		seen[d.family]++
	}
	if got, want := slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(families())); !slices.Equal(got, want) {
		t.Errorf("families are %v, want %v", got, want)
	}
	for name, n := range seen {
		if n < 4 {
			t.Errorf("the family %s has %d entries, want 4 at least", name, n)
		}
	}
}

// TestDangerConditionsAreOfOneSort: a word among flags would never be found.
func TestDangerConditionsAreOfOneSort(t *testing.T) {
	for _, d := range allDangers(t) {
		lists := slices.Clone(d.shape.flags)
		for _, n := range d.shape.not {
			lists = append(lists, n.flags...)
		}
		for _, list := range lists {
			for _, f := range list {
				if !strings.HasPrefix(f, "-") {
					t.Errorf("%s | %.80s: %q stands among flags and is none", d.family, d.pattern, f)
				}
			}
		}
	}
}

// TestDangersNameNoProgramTwice: one program in one pattern is named once.
func TestDangersNameNoProgramTwice(t *testing.T) {
	for _, d := range allDangers(t) {
		if n := len(d.shape.programs); n != len(slices.Compact(slices.Sorted(slices.Values(d.shape.programs)))) {
			t.Errorf("%s | %.80s: a program stands there twice", d.family, d.pattern)
		}
	}
}

// TestWordsBehindASubcommandAreNone: what git is about to do is certain even
// where its flags are not known.
func TestWordsBehindASubcommandAreNone(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          bool
	}{
		{"git clean", "git commit -m clean", false},
		{"git tag -d", "git switch -d tag", false},
		{"git clean", "git -C sub clean --unknown", true},
		{"git push origin", "git push -o value origin main", true},
		{"git remote add", "git remote --unknown add x y", true},
	} {
		s, err := parseShape(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := found(&s, tt.line); got != tt.want {
			t.Errorf("%q in %q: %v, want %v", tt.pattern, tt.line, got, tt.want)
		}
	}
}

// dangersOf are those of one file.
func dangersOf(data string) *dangers {
	return &dangers{files: []dangerFile{{"danger.txt", &data}}}
}

func anyDanger(*danger) bool { return true }

// TestEveryFileIsEmbedded: a file that nobody names would be no danger.
func TestEveryFileIsEmbedded(t *testing.T) {
	list, err := os.ReadDir("data/danger")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, f := range list {
		want = append(want, f.Name())
	}
	for _, f := range dangerFiles {
		got = append(got, f.name)
		if data, err := os.ReadFile("data/danger/" + f.name); err != nil || string(data) != *f.text {
			t.Errorf("%s is not the file of its name: %v", f.name, err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("embedded are %q, there are %q", got, want)
	}
}

// TestGravestDangerSpeaks: of several the gravest counts, and of those the first of the data, whether
// its name has a wildcard or not. A name that looks like one is no pattern.
func TestGravestDangerSpeaks(t *testing.T) {
	ds := dangersOf(`
machine | a-*,*-b -x | first | e
machine | *-b,a-* -x | second | e
machine | a-*,*-b | third | e
force | a-* -y | fourth | e
machine | a-b -z | named | e
`)
	for line, want := range map[string]string{
		"a-b -x": "first by a-*", "c-b -x": "first by *-b", "a-b": "third by a-*", "c-b -y": "third by *-b", "a-c -y": "fourth by a-*",
		"a-b -z": "third by a-*", "c": "none", "'*' -x": "none", "'a-*' -x": "first by a-*",
	} {
		for _, a := range commandsOf(line) {
			got := "none"
			if d, _ := ds.find(&a, anyDanger); d != nil {
				got = d.reason + " by " + d.shape.programs[0]
			}
			if got != want {
				t.Errorf("%q: %s, want %s", line, got, want)
			}
		}
	}
	for program, want := range map[string]bool{"a-b": true, "a-*": false, "*": false, "c-b": false, "": false} {
		if ds.possible(program) != want {
			t.Errorf("%q has dangers by its name: %v, want %v", program, !want, want)
		}
	}
}

// TestBrokenDangers: an entry that can't be read names its line.
func TestBrokenDangers(t *testing.T) {
	for text, want := range map[string]string{
		"machine | a": "want FAMILY", "none | a | because | e": "unknown family", "machine | a ,b | because | e": "is empty",
	} {
		if _, err := parseDanger(entry{file: "x.txt", line: 3, text: text}); err == nil || !strings.Contains(err.Error(), "x.txt:3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"a | b": "want FAMILY", "a | b | always | no": "unknown effect", "a | force | sometimes | no": "when", "a | force | always | perhaps": "want FAMILY",
	} {
		if _, err := parseFamilies("x.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
