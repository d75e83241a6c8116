package bawn_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

var update = flag.Bool("update", false, "write the table of packages in docs/dev/architecture.md anew")

// A size is the lines of a package's product code, with all packages below it, and the
// packages that it imports.
type size struct {
	lines   int
	imports map[string]bool
}

// The marks around the table in docs/dev/architecture.md.
const sizesBegin, sizesEnd = "<!-- sizes -->\n```\n", "```\n<!-- /sizes -->"

// limits are the packages that may not grow, with their lines and imports.
var limits = map[string][2]int{"internal/cli": {6000, 25}}

// TestSizes holds the table in docs/dev/architecture.md against the code: a package may
// be a fifth larger or smaller than the table says, and import two packages more or
// fewer, before the table has to be written anew.
func TestSizes(t *testing.T) {
	testenv.Need(t, "go")
	sizes := measured(t)
	for name, most := range limits {
		if r := sizes[name]; r == nil || r.lines > most[0] || len(r.imports) > most[1] {
			t.Errorf("%s has %+v; want at most %d lines and %d imports", name, r, most[0], most[1])
		}
	}
	text, err := os.ReadFile("docs/dev/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := bytes.Cut(text, []byte(sizesBegin))
	table, after, ok2 := bytes.Cut(rest, []byte(sizesEnd))
	if !ok1 || !ok2 {
		t.Fatalf("docs/dev/architecture.md has no table between %q and %q", sizesBegin, sizesEnd)
	}
	if *update {
		text = slices.Concat(before, []byte(sizesBegin), drawn(sizes), []byte(sizesEnd), after)
		if err := os.WriteFile("docs/dev/architecture.md", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, stale := range stale(sizes, string(table)) {
		t.Errorf("%s: run go test . -run TestSizes -update", stale)
	}
}

// measured counts what go list knows for Linux and for macOS, without tests and
// what is generated.
func measured(t *testing.T) map[string]*size {
	sizes, seen := map[string]*size{}, map[string]bool{}
	for _, goos := range []string{"linux", "darwin"} {
		for _, n := range list(t, goos) {
			name, ok := member(ladder, relative(n.ImportPath))
			if !ok || !strings.HasPrefix(name, "internal/") || name == "internal/testenv" || strings.Contains(n.ImportPath, "sandboxtest") {
				continue
			}
			if sizes[name] == nil {
				sizes[name] = &size{imports: map[string]bool{}}
			}
			for _, i := range n.Imports {
				if to, ok := member(ladder, relative(i)); ok && inModule(i) && to != name && strings.HasPrefix(to, "internal/") {
					sizes[name].imports[to] = true
				}
			}
			if dir := relative(n.ImportPath); !seen[dir] {
				seen[dir] = true
				sizes[name].lines += linesBelow(t, dir)
			}
		}
	}
	return sizes
}

// linesBelow counts the lines of a directory's own files.
func linesBelow(t *testing.T, dir string) (n int) {
	files, err := fs.Glob(os.DirFS("."), path.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.FromSlash(f))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") && !bytes.HasPrefix(text, []byte("// Code generated")) {
			n += bytes.Count(text, []byte("\n"))
		}
	}
	return n
}

// drawn is the table: the largest packages first, three beside each other.
func drawn(sizes map[string]*size) []byte {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		if d := sizes[b].lines - sizes[a].lines; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b bytes.Buffer
	const columns = 3
	rows := (len(names) + columns - 1) / columns
	for i := range rows {
		line := ""
		for at := i; at < len(names); at += rows {
			r := sizes[names[at]]
			line += fmt.Sprintf("%-15s %5d %2d    ", strings.TrimPrefix(names[at], "internal/"), r.lines, len(r.imports))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.Bytes()
}

// stale returns what the table says wrong.
func stale(sizes map[string]*size, table string) (wrong []string) {
	said := map[string][2]int{}
	fields := strings.Fields(table)
	for i := 0; i+2 < len(fields); i += 3 {
		var n [2]int
		_, _ = fmt.Sscan(fields[i+1]+" "+fields[i+2], &n[0], &n[1])
		said["internal/"+fields[i]] = n
	}
	for name, r := range sizes {
		n, ok := said[name]
		lines, imports := max(r.lines-n[0], n[0]-r.lines), max(len(r.imports)-n[1], n[1]-len(r.imports))
		if !ok || lines > max(100, r.lines/5) || imports > 2 {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines and imports %d packages; the table says %v", name, r.lines, len(r.imports), n))
		}
		delete(said, name)
	}
	for name := range said {
		wrong = append(wrong, name+" is in the table and not there")
	}
	slices.Sort(wrong)
	return wrong
}

// TestStaleSizes: the check sees a package that is new, gone, grown, or that
// imports one more.
func TestStaleSizes(t *testing.T) {
	r := map[string]*size{"internal/a": {lines: 1000, imports: map[string]bool{"internal/b": true}}, "internal/b": {lines: 20}}
	for table, want := range map[string]int{
		"a 1000 1 b 20 0": 0, "a 1190 3 b 120 2": 0, string(drawn(r)): 0,
		"a 1201 1 b 20 0": 1, "a 799 1 b 20 0": 1, "a 1000 4 b 20 0": 1, "a 1000 1 b 121 0": 1, "a 1000 1": 1, "a 1000 1 b 20 0 c 1 0": 1, "": 2,
	} {
		if got := stale(r, table); len(got) != want {
			t.Errorf("%q: %q; want %d", table, got, want)
		}
	}
}
