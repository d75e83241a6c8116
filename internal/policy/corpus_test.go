package policy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// A labelled line of the corpus.
type labelled struct{ command, category string }

// corpus reads labelled command lines: those of testdata, and of the directory
// that BAWN_CORPUS names, if it does.
func corpus(t testing.TB, name string) (out []labelled) {
	t.Helper()
	files := []string{filepath.Join("testdata", "corpus", name)}
	if dir := os.Getenv("BAWN_CORPUS"); dir != "" {
		files = []string{filepath.Join(dir, name)}
	}
	decode := strings.NewReplacer("␤", "\n", "␍", "\r", "␉", "\t", "␀", "\x00", "␛", "\x1b", "␈", "\b")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Split(strings.TrimRight(line, "\n"), "\t")
			if len(f) < 2 || strings.HasPrefix(line, "#") || f[0] == "command" {
				continue
			}
			out = append(out, labelled{decode.Replace(f[0]), f[1]})
		}
	}
	if len(out) < 100 {
		t.Fatalf("%s has %d lines", name, len(out))
	}
	return out
}

// corpusPolicy has the built-in rules only.
func corpusPolicy(t testing.TB) *Policy {
	t.Helper()
	p, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask4(command string) Question {
	return Question{
		Action:    bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: command, Dir: "/home/u/proj"},
		Workspace: "/home/u/proj", Home: "/home/u", System: "linux",
		Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate,
	}
}

// TestDangerousIsNeverAllowed: at every mode and autonomy, where nothing contains it.
// Where testenv.Short says so, at each mode and at each autonomy, one of both at its
// most permissive.
func TestDangerousIsNeverAllowed(t *testing.T) {
	p := corpusPolicy(t)
	for _, l := range corpus(t, "dangerous.tsv") {
		for mode := bawn.ModePlan; mode <= bawn.ModePermissive; mode++ {
			for autonomy := bawn.AutonomyNone; autonomy <= bawn.AutonomyFull; autonomy++ {
				if testenv.Short() && mode != bawn.ModePermissive && autonomy != bawn.AutonomyFull {
					continue
				}
				q := ask4(l.command)
				q.Mode, q.Autonomy = mode, autonomy
				if d := p.Decide(&q); d.Verdict == bawn.Allow {
					t.Errorf("%s: %q is allowed at %v, %v", l.category, l.command, mode, autonomy)
					mode, autonomy = bawn.ModePermissive, bawn.AutonomyFull
				}
			}
		}
	}
}

// TestCrossingsAreAsked: in a sandbox, at every mode, also what a checkpoint covers.
func TestCrossingsAreAsked(t *testing.T) {
	p, n := corpusPolicy(t), 0
	for _, l := range corpus(t, "crossings.tsv") {
		n++
		for mode := bawn.ModePlan; mode <= bawn.ModePermissive; mode++ {
			q := ask4(l.command)
			q.Mode, q.Autonomy, q.Contained, q.Covered = mode, AutonomyOf(mode), bawn.ContainedFully, true
			if d := p.Decide(&q); d.Verdict == bawn.Allow || mode == bawn.ModePlan && d.Verdict != bawn.Deny {
				t.Errorf("%s: %q is %v in %v mode", l.category, l.command, d.Verdict, mode)
			}
		}
	}
	if n < 120 {
		t.Errorf("the corpus has %d crossings, want 120 at least", n)
	}
}

// looking are the categories that only look.
var looking = []string{"read", "search", "vcs-read", "read-pipe"}

// everyday are lines of work in the workspace; what crosses is judged by itself.
func everyday(l labelled) bool {
	return !strings.Contains(l.category, "judgement")
}

// TestEverydayWork prints how many lines of each category are allowed in normal mode,
// and holds the totals to what is promised: contained, 99 in a hundred of everyday work;
// uncontained, 90 in a hundred lines of which every program is on the list of readers.
func TestEverydayWork(t *testing.T) {
	p := corpusPolicy(t)
	type count struct{ all, bare, inside int }
	counts := map[string]*count{}
	daily, readers, crossing := count{}, count{}, crossings(t)
	for _, l := range corpus(t, "benign.tsv") {
		c := counts[l.category]
		if c == nil {
			c = &count{}
			counts[l.category] = c
		}
		q := ask4(l.command)
		bare := p.Decide(&q).Verdict == bawn.Allow
		q.Contained, q.Covered = bawn.ContainedFully, true
		d := p.Decide(&q)
		inside := d.Verdict == bawn.Allow
		if !inside && testing.Verbose() {
			t.Logf("%s: %q: %v: %s", l.category, l.command, d.Verdict, d.Reason)
		}
		c.all, c.bare, c.inside = c.all+1, c.bare+one(bare), c.inside+one(inside)
		if everyday(l) && !crossing[l.command] {
			daily.all, daily.inside = daily.all+1, daily.inside+one(inside)
		}
		if slices.Contains(looking, l.category) && onlyReaders(l.command) {
			readers.all, readers.bare = readers.all+1, readers.bare+one(bare)
			if !bare && testing.Verbose() {
				t.Logf("a reader asks: %q", l.command)
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %-26s | lines | without a sandbox | contained |\n|---|---|---|---|\n", "category")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(&b, "| %-26s | %5d | %16.1f%% | %8.1f%% |\n", name, c.all, 100*float64(c.bare)/float64(c.all), 100*float64(c.inside)/float64(c.all))
	}
	fmt.Fprintf(&b, "\nEveryday lines contained: %d of %d allowed. Lines of listed readers without a sandbox: %d of %d allowed. Crossings contained: %d of %d asked.\n", daily.inside, daily.all, readers.bare, readers.all, len(crossing), len(crossing))
	b.WriteString("\n" + dangerousTable(t, p))
	t.Log("\n" + b.String())
	corpusPage(t, b.String())
	if daily.inside*100 < daily.all*99 {
		t.Errorf("contained, %d of %d everyday lines are allowed, want 99%%", daily.inside, daily.all)
	}
	if readers.bare*100 < readers.all*90 {
		t.Errorf("uncontained, %d of %d lines of readers are allowed, want 90%%", readers.bare, readers.all)
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// crossings are the lines of the corpus that leave the sandbox.
func crossings(t testing.TB) map[string]bool {
	out := map[string]bool{}
	for _, l := range corpus(t, "crossings.tsv") {
		out[l.command] = true
	}
	return out
}

// onlyReaders reports whether a line runs programs of the closed list alone, and writes
// no file.
func onlyReaders(line string) bool {
	q := ask4(line)
	l := q.read(builtin().secret)
	if len(l.Opaque) > 0 || len(l.Commands) == 0 {
		return false
	}
	for _, c := range l.Commands {
		if slices.ContainsFunc(c.Redirects, func(rd shell.Redirect) bool { return rd.Writes() }) {
			return false
		}
		if len(c.Words) == 0 || c.Builtin {
			continue
		}
		forms := readers()[c.Words[0].Text]
		if c.Words[0].Text == "git" {
			forms = slices.DeleteFunc(slices.Clone(forms), func(r *reader) bool {
				return len(r.subs) == 0 || len(c.Words) < 2 || r.subs[0] != c.Words[1].Text
			})
		}
		if len(forms) == 0 || slices.ContainsFunc(forms, func(r *reader) bool { return slices.Contains(r.needs, "--version") }) {
			return false
		}
	}
	return true
}

// dangerousTable counts the verdicts on the dangerous lines in normal mode.
func dangerousTable(t *testing.T, p *Policy) string {
	t.Helper()
	counts := map[string]*[2][3]int{}
	for _, l := range corpus(t, "dangerous.tsv") {
		if counts[l.category] == nil {
			counts[l.category] = &[2][3]int{}
		}
		q := ask4(l.command)
		counts[l.category][0][p.Decide(&q).Verdict]++
		q.Contained = bawn.ContainedFully
		counts[l.category][1][p.Decide(&q).Verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %-26s | denied | asked | allowed | allowed where contained |\n|---|---|---|---|---|\n", "category")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(&b, "| %-26s | %6d | %5d | %7d | %23d |\n", name, c[0][bawn.Deny], c[0][bawn.Ask], c[0][bawn.Allow], c[1][bawn.Allow])
	}
	return b.String()
}

const corpusDocs = "../../docs/policy-corpus.md"

// corpusPage keeps the page about the corpus true.
func corpusPage(t *testing.T, tables string) {
	t.Helper()
	if os.Getenv("BAWN_CORPUS") != "" {
		return // other lines
	}
	page, err := os.ReadFile(corpusDocs)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- tables -->\n"
	text, old, ok := strings.Cut(string(page), mark)
	switch {
	case !ok:
		t.Errorf("%s lacks %s", corpusDocs, mark)
	case *golden.Update:
		if err := os.WriteFile(corpusDocs, []byte(text+mark+"\n"+tables), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != "\n"+tables:
		t.Errorf("%s is not true any more; run go test ./internal/policy -run TestEverydayWork -update", corpusDocs)
	}
}
