package grammar

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/shell/lexicon"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// dataFiles are the data files by their names.
func dataFiles(t *testing.T) map[string]string {
	t.Helper()
	list, err := os.ReadDir("data")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range list {
		if strings.HasSuffix(f.Name(), ".txt") {
			data, err := os.ReadFile("data/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name()] = string(data)
		}
	}
	return out
}

// TestEveryFileIsEmbedded: of what stands in a file that nobody names nothing
// would be known.
func TestEveryFileIsEmbedded(t *testing.T) {
	want := dataFiles(t)
	for _, f := range files {
		if want[f.name] != *f.text || embedded(f.name) != *f.text {
			t.Errorf("%s is not the file of its name", f.name)
		}
	}
	if len(files) != len(want) {
		t.Errorf("%d files are embedded, there are %d", len(files), len(want))
	}
	defer func() {
		if recover() == nil {
			t.Error("a file that is not there does not panic")
		}
	}()
	embedded("none.txt")
}

// bookOf is a book of one file.
func bookOf(file, data string) *book {
	return newBook(indexOf(map[string]string{file: data}), func(string) string { return data })
}

// TestIndex: the index says what the files say. What it does not name is not
// known, as if it stood in no file.
func TestIndex(t *testing.T) {
	want := indexOf(dataFiles(t))
	if *golden.Update {
		if err := os.WriteFile("data/index", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if index != want {
		t.Error("data/index is not that of the data files; run go test ./internal/shell/grammar -run TestIndex -update")
	}
	if len(lexicon.Names(index)) < 1500 {
		t.Errorf("the index has %d programs", len(lexicon.Names(index)))
	}
}

// TestDataParse reads every line of the embedded data.
func TestDataParse(t *testing.T) {
	for name, data := range dataFiles(t) {
		if err := Check(name, data); err != nil {
			t.Error(err)
		}
	}
	b := newBook(index, embedded)
	for _, name := range lexicon.Names(index) {
		p, err := b.program(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.forms == nil {
			continue
		}
		if specials[name] != nil && name != "tar" && name != "bsdtar" && name != "gtar" {
			t.Errorf("%s has forms, but is read in Go", name)
		}
		if err := p.forms.check(); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsLeftOut finds of each program the lines that a walk through all
// of all files finds, and in the same order.
func TestNothingIsLeftOut(t *testing.T) {
	data, all := dataFiles(t), map[string]*program{}
	for _, file := range slices.Sorted(maps.Keys(data)) {
		for _, l := range split(file, data[file], isForm) {
			head, _, _ := strings.Cut(l.text, ": ")
			for name := range strings.SplitSeq(strings.TrimSuffix(strings.Fields(head)[0], ":"), "|") {
				if all[name] == nil {
					all[name] = &program{}
				}
				if err := all[name].add(nil, l); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, want := range all {
		got, err := newBook(index, embedded).program(name)
		if err != nil || !slices.Equal(got.help, want.help) || !slices.Equal(linesOf("", got.forms), linesOf("", want.forms)) {
			t.Errorf("%s: %v\n got %q %q\nwant %q %q", name, err, got.help, linesOf("", got.forms), want.help, linesOf("", want.forms))
		}
	}
}

// linesOf lists what is said of a node and of all below it.
func linesOf(label string, n *node) (out []string) {
	if n == nil {
		return nil
	}
	for _, l := range n.lines {
		out = append(out, label+": "+l.errorf("%s", l.whole()).Error())
	}
	for _, sub := range slices.Sorted(maps.Keys(n.children)) {
		out = append(out, linesOf(label+" "+sub, n.children[sub])...)
	}
	return out
}
