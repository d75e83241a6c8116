package undo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestMerge(t *testing.T) {
	const base = "a\nb\nc\nd\ne\n"
	for _, tt := range []struct{ name, old, theirs, mine, keep, theirsWin, mineWins string }{
		{"apart", base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n"},
		{"the same twice", base, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\nf\n", "a\nX\nc\nd\ne\nf\n", "a\nX\nc\nd\ne\nf\n", "a\nX\nc\nd\ne\nf\n"},
		{"one line", base, "a\nX\nc\nd\nE\n", "a\nY\nc\nd\ne\n", "", "a\nX\nc\nd\nE\n", "a\nY\nc\nd\nE\n"},
		{"removed and changed", base, "a\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "", "a\nc\nd\ne\n", "a\nB\nc\nd\ne\n"},
		{"no end", "a\nb", "a\nb\nc", "A\nb", "", "a\nb\nc", "A\nb"},
		{"both new", "", "x\n", "y\n", "", "x\n", "y\n"},
		{"bytes", "\x00a\n", "\x00b\n", "\x00a\nc\n", "", "", ""},
		{"markers", base, "a\nX\nc\nd\ne\n", base + markMine, "", "", ""},
	} {
		for prefer, want := range map[Prefer]string{Keep: tt.keep, Theirs: tt.theirsWin, Mine: tt.mineWins} {
			got, why := Merge([]byte(tt.old), []byte(tt.theirs), []byte(tt.mine), prefer)
			if string(got) != want || (why == "") != (want != "") {
				t.Errorf("%s, %q: %q, %q; want %q", tt.name, prefer, got, why, want)
			}
		}
	}
	got, _ := Merge([]byte("a\nb\nc\n"), []byte("a\nX\nc\n"), []byte("a\nY\nc"), Markers)
	if want := "a\n" + markMine + "Y\nc\n" + markOld + "b\nc\n" + markTheirs + "X\nc\n" + markEnd; string(got) != want {
		t.Errorf("markers: %q; want %q", got, want)
	}
}

// few are lines that are often alike; many never by chance.
var (
	few  = rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n", "e\n", "f\n"})
	many = rapid.Map(rapid.IntRange(0, 1<<40), func(n int) string { return fmt.Sprintln(n) })
)

// texts draws an old text of lines and what two sides have made of it.
func texts(r *rapid.T, line *rapid.Generator[string]) (old, theirs, mine []byte) {
	lines := rapid.SliceOfN(line, 0, 12).Draw(r, "old")
	side := func(name string) []byte {
		var out []string
		for _, l := range lines {
			switch rapid.IntRange(0, 9).Draw(r, name) {
			case 0:
			case 1:
				out = append(out, line.Draw(r, name), l)
			case 2:
				out = append(out, line.Draw(r, name))
			default:
				out = append(out, l)
			}
		}
		return []byte(strings.Join(out, ""))
	}
	return []byte(strings.Join(lines, "")), side("theirs"), side("mine")
}

// TestMergeLaws: an untouched side takes the other's, the sides count alike, a merge can
// be repeated, and no line is made up or lost that only one side has changed.
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		old, theirs, mine := texts(r, few)
		if got, _ := merge(old, theirs, old, Keep); !bytes.Equal(got, theirs) {
			r.Fatalf("untouched: %q", got)
		}
		if got, _ := merge(old, old, mine, Keep); !bytes.Equal(got, mine) {
			r.Fatalf("the session has not touched it: %q", got)
		}
		got, why := Merge(old, theirs, mine, Keep)
		if other, where := merge(old, mine, theirs, Keep); why == "" && (len(where) > 0 || !bytes.Equal(got, other)) {
			r.Fatalf("swapped: %q and %q", got, other)
		}
		for _, prefer := range []Prefer{Keep, Mine, Theirs} {
			if got, why = Merge(old, theirs, mine, prefer); why == "" {
				if again, why := Merge(old, theirs, got, prefer); why != "" || !bytes.Equal(again, got) {
					r.Fatalf("%q again: %q, %q; first %q", prefer, again, why, got)
				}
			}
		}
	})
}

// TestMergeLikeGit: what Merge merges git merges to the same, or leaves to the human.
func TestMergeLikeGit(t *testing.T) {
	testenv.Need(t, "git")
	dir, same := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		old, theirs, mine := texts(r, many)
		got, why := Merge(old, theirs, mine, Keep)
		if why != "" {
			return
		}
		args := []string{"merge-file", "-p"}
		for name, text := range map[string][]byte{"mine": mine, "old": old, "theirs": theirs} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				r.Fatal(err)
			}
		}
		c := exec.Command("git", append(args, "mine", "old", "theirs")...)
		c.Dir = dir
		want, err := c.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 {
			return // git asks, where it aligns lines otherwise
		}
		if err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			r.Fatalf("old %q, theirs %q, mine %q: %q; git: %q", old, theirs, mine, got, want)
		}
		same++
	})
	if same < 3 {
		t.Errorf("compared %d times only", same)
	}
}

// TestTake: with all hunks a text becomes the other, with none it stays, and a hunk alone
// changes its own lines only.
func TestTake(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		old, theirs, _ := texts(r, many)
		pad := []byte(strings.Repeat("x\n", 10))
		from, to := bytes.Join([][]byte{old, old, old}, pad), bytes.Join([][]byte{theirs, old, theirs}, pad)
		list := Hunks(from, to)
		all, none := make([]bool, len(list)), make([]bool, len(list))
		for i := range all {
			all[i] = true
		}
		if got := Take(from, list, all); !bytes.Equal(got, to) {
			r.Fatalf("all: %q; want %q", got, to)
		}
		if got := Take(from, list, none); !bytes.Equal(got, from) {
			r.Fatalf("none: %q; want %q", got, from)
		}
		part := make([]bool, len(list))
		for i := range part {
			part[i] = rapid.Bool().Draw(r, "chosen")
		}
		got := Take(from, list, part)
		if rest := Take(got, Hunks(got, to), slicesOf(len(Hunks(got, to)))); !bytes.Equal(rest, to) {
			r.Fatalf("the rest: %q; want %q", rest, to)
		}
		if merged, conflicts := merge(from, to, got, Keep); len(conflicts) == 0 && !bytes.Equal(merged, to) {
			r.Fatalf("another apply: %q; want %q", merged, to)
		}
	})
}

func slicesOf(n int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = true
	}
	return list
}
