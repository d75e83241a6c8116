package lexicon

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMake(t *testing.T) {
	want := "[ test.txt\ngit git.txt help.txt\nls files.txt\n"
	if got := Make([]Entry{{"ls", "files.txt"}, {"git", "help.txt"}, {"[", "test.txt"}, {"git", "git.txt"}, {"git", "help.txt"}}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFind finds every name of any index, and no other.
func TestFind(t *testing.T) {
	words := rapid.SliceOf(rapid.StringMatching(`[a-c\[*\x{e9}+-]{1,3}`))
	rapid.Check(t, func(t *rapid.T) {
		want := map[string][]string{}
		var list []Entry
		for _, name := range words.Draw(t, "names") {
			want[name] = []string{"a.txt", "b.txt"}
			list = append(list, Entry{name, "b.txt"}, Entry{name, "a.txt"})
		}
		index := Make(list)
		for _, name := range append(words.Draw(t, "others"), slices.Collect(maps.Keys(want))...) {
			if got := Find(index, name); !slices.Equal(got, want[name]) {
				t.Fatalf("%q in %q: %q, want %q", name, index, got, want[name])
			}
		}
		if got := Names(index); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("the names of %q are %q", index, got)
		}
	})
}

// FuzzFind: no text and no name make the search panic or go on forever.
func FuzzFind(f *testing.F) {
	f.Add("a x\nb y z\n", "b")
	f.Add("\n\n \n", "")
	f.Fuzz(func(t *testing.T, index, name string) {
		if files := Find(index, name); len(files) > 0 && !strings.Contains(index, name) {
			t.Fatalf("%q: %q was found in %q", name, files, index)
		}
		Names(index)
	})
}
