package policy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/shell/lexicon"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
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

// indexOf makes the index of files of dangers.
func indexOf(names []string, text func(string) string) string {
	var list []lexicon.Entry
	for _, file := range names {
		for e := range entries(file, text(file)) {
			for _, p := range must(parseDanger(e)).shape.programs {
				list = append(list, lexicon.Entry{Name: p, File: file})
				if strings.Contains(p, anyProgram) {
					list = append(list, lexicon.Entry{Name: anyProgram, File: p})
				}
			}
		}
	}
	return lexicon.Make(list)
}

// dangersOf are those of one file.
func dangersOf(data string) *dangers {
	text := func(string) string { return data }
	return &dangers{index: indexOf([]string{"danger.txt"}, text), text: text}
}

// dangerNames are the names of the files of dangers.
func dangerNames(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadDir("data/danger")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// TestEveryFileIsEmbedded: a file that nobody names would be no danger.
func TestEveryFileIsEmbedded(t *testing.T) {
	want := dangerNames(t)
	var got []string
	for _, f := range dangerFiles {
		got = append(got, f.name)
		if data, err := os.ReadFile("data/danger/" + f.name); err != nil || string(data) != *f.text || string(data) != dangerText(f.name) {
			t.Errorf("%s is not the file of its name: %v", f.name, err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("embedded are %q, there are %q", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a file that is not there does not panic")
		}
	}()
	dangerText("none.txt")
}

// TestDangerIndex: the index says what the files say. What it does not name is
// no danger, as if it stood in no file.
func TestDangerIndex(t *testing.T) {
	want := indexOf(dangerNames(t), dangerText)
	if *golden.Update {
		if err := os.WriteFile("data/danger.index", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if dangerIndex != want {
		t.Error("data/danger.index is not that of the data files; run go test ./internal/policy -run TestDangerIndex -update")
	}
	if names := lexicon.Names(dangerIndex); len(names) < 2500 || lexicon.Find(dangerIndex, anyProgram) == nil {
		t.Errorf("the index has %d programs, %d with a wildcard", len(names), len(lexicon.Find(dangerIndex, anyProgram)))
	}
}

// TestNoDangerIsLeftOut finds of each program the dangers that a walk through
// all lines of all files finds, and in the same order.
func TestNoDangerIsLeftOut(t *testing.T) {
	want := map[string][]string{}
	for _, d := range allDangers(t) {
		for _, p := range d.shape.programs {
			if p == anyProgram {
				t.Errorf("%s:%d: the program %q is every one", d.file, d.line, p)
			}
			want[p] = append(want[p], fmt.Sprint(d.file, d.line, d.pattern))
		}
	}
	for p, want := range want {
		var got []string
		for _, d := range (&dangers{index: dangerIndex, text: dangerText}).about(p).all {
			got = append(got, fmt.Sprint(d.file, d.line, d.pattern))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", p, got, want)
		}
	}
}

// TestFirstDangerOfTheData: of several the one that stands first speaks, whether
// its name has a wildcard or not, and a name that looks like one is no pattern.
func TestFirstDangerOfTheData(t *testing.T) {
	ds := dangersOf(`
destroy | a-*,*-b -x | first | e
destroy | *-b,a-* -x | second | e
destroy | a-*,*-b | third | e
destroy | a-* -y | fourth | e
vcs | a-b -z | named | e
`)
	for line, want := range map[string]string{
		"a-b -x": "first by a-*", "c-b -x": "first by *-b", "a-b": "third by a-*", "c-b -y": "third by *-b", "a-c -y": "third by a-*",
		"a-b -z": "named by a-b", "c": "none", "'*' -x": "none", "'a-*' -x": "first by a-*",
	} {
		for _, a := range commandsOf(line) {
			got := "none"
			if d, ok := ds.find(&a); ok {
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

// families are what SPEC C4 and the corpus know; what changes only variables
// is in env.txt, what hides a command is internal/shell's to read.
var families = []string{
	"destroy", "destroy-saas", "download-exec", "escalate", "exfiltrate", "interp-exec",
	"persist", "read-secret", "resource-exhaustion", "sandbox-escape", "wrapper",
}

func TestDangerFamiliesAreComplete(t *testing.T) {
	seen := map[string]int{}
	for _, d := range allDangers(t) {
		seen[d.family]++
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, families) {
		t.Errorf("families are %v, want %v", got, families)
	}
	for name, n := range seen {
		if n < 5 {
			t.Errorf("the family %s has %d entries, want 5 at least", name, n)
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

// TestDangersSpareEverydayWork: of the harmless lines of the corpus hardly one
// in a hundred asks for want of precision here.
func TestDangersSpareEverydayWork(t *testing.T) {
	lines, hits := 0, 0
	for _, l := range corpus(t, "benign.tsv") {
		if strings.Contains(l.category, "judgement") {
			continue
		}
		lines++
		for _, a := range commandsOf(l.command) {
			if d, ok := builtin().dangers.find(&a); ok {
				hits++
				t.Logf("%s: %q: %s | %.60s", l.category, l.command, d.family, d.pattern)
				break
			}
		}
	}
	if hits*100 > lines {
		t.Errorf("%d of %d harmless lines ask as dangerous, want at most one in a hundred", hits, lines)
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
