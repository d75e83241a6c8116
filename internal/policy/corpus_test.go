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
	if len(out) < 500 {
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

// TestDangerousIsNeverAllowed: at every mode and autonomy, contained or not.
// Running code of the repository is what a sandbox is for, so those lines are asked
// about only without a sandbox.
func TestDangerousIsNeverAllowed(t *testing.T) {
	p := corpusPolicy(t)
	for _, l := range corpus(t, "dangerous.tsv") {
		for mode := bawn.ModePlan; mode <= bawn.ModePermissive; mode++ {
			for autonomy := bawn.AutonomyNone; autonomy <= bawn.AutonomyFull; autonomy++ {
				for _, contained := range []bool{false, true} {
					if contained && l.category == "repo-code" {
						continue
					}
					q := ask4(l.command)
					q.Mode, q.Autonomy, q.Contained = mode, autonomy, contained
					if d := p.Decide(&q); d.Verdict == bawn.Allow {
						t.Errorf("%s: %q is allowed at %v, %v, contained %v", l.category, l.command, mode, autonomy, contained)
						mode, autonomy = bawn.ModePermissive, bawn.AutonomyFull
						break
					}
				}
			}
		}
	}
}

// words are lines that look for matchers of substrings ("git" in "digit") and
// name no program. What nobody knows asks; they count in the table, and not in
// the totals.
var words = []string{
	"agitation level high", "digit 123", "digital transform", "form submit", "fugitive search", "shred_test.py", "storm warning",
	"thermal analysis", "transform data", "format disk --help",
}

// outright are the categories that need no sandbox; the others need one.
var (
	outright  = []string{"read", "search", "vcs-read", "read-pipe", "scary-looking"}
	contained = []string{"build", "test", "lint-format", "run-ws", "vcs-write", "file-write-ws"}
)

// TestBenignHardlyEverAsks prints how many lines of each category are allowed
// in normal mode, and holds the totals to what is promised.
func TestBenignHardlyEverAsks(t *testing.T) {
	p := corpusPolicy(t)
	type count struct{ all, bare, inside, words int }
	counts := map[string]*count{}
	for _, l := range corpus(t, "benign.tsv") {
		c := counts[l.category]
		if c == nil {
			c = &count{}
			counts[l.category] = c
		}
		c.all++
		q := ask4(l.command)
		if p.Decide(&q).Verdict == bawn.Allow {
			c.bare++
		}
		q.Contained = true
		d := p.Decide(&q)
		switch {
		case d.Verdict == bawn.Allow:
			c.inside++
		case slices.Contains(words, l.command):
			c.words++
		case testing.Verbose() && !strings.Contains(l.category, "judgement"):
			t.Logf("%s: %q: %v: %s", l.category, l.command, d.Verdict, d.Reason)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %-26s | lines | without a sandbox | contained |\n|---|---|---|---|\n", "category")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c := counts[name]
		fmt.Fprintf(&b, "| %-26s | %5d | %16.1f%% | %8.1f%% |\n", name, c.all, 100*float64(c.bare)/float64(c.all), 100*float64(c.inside)/float64(c.all))
	}
	b.WriteString("\n" + dangerousTable(t, p))
	t.Log("\n" + b.String())
	corpusPage(t, b.String())
	for _, g := range []struct {
		names []string
		want  float64
	}{{outright, 0.97}, {contained, 0.95}} {
		all, inside := 0, 0
		for _, name := range g.names {
			if c := counts[name]; c != nil {
				all, inside = all+c.all-c.words, inside+c.inside
			}
		}
		if rate := float64(inside) / float64(all); rate < g.want {
			t.Errorf("%v: %.1f%% of %d lines are allowed, want %.0f%%", g.names, 100*rate, all, 100*g.want)
		}
	}
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
		q.Contained = true
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
		t.Errorf("%s is not true any more; run go test ./internal/policy -run TestBenignHardlyEverAsks -update", corpusDocs)
	}
}
