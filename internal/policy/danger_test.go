package policy

import (
	"maps"
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
	for _, e := range embeddedDir("data/danger") {
		ds, err := parseDangers([]entry{e})
		if err != nil {
			t.Fatal(err)
		}
		d := ds.all[0]
		if d.shape, err = parseShape(d.pattern); err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// TestDangersMatchTheirExamples: each entry finds every one of its own
// examples and none of its counterexamples.
func TestDangersMatchTheirExamples(t *testing.T) {
	for _, d := range allDangers(t) {
		if len(d.examples) == 0 {
			t.Errorf("%s | %s: it has no example", d.family, d.pattern)
		}
		for _, e := range d.examples {
			if !found(&d.shape, e) {
				t.Errorf("%s | %.80s: does not match its example %q", d.family, d.pattern, e)
			}
		}
		for _, e := range d.counter {
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
		conditions := len(d.shape.subs) + len(d.shape.flags) + len(d.shape.operands) + len(d.shape.not)
		if conditions > 0 && len(d.counter) == 0 {
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
