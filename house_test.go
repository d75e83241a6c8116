package bawn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// promiseRows is how many promises each family has.
var promiseRows = map[string]int{"C": 11, "K": 10, "D": 10, "P": 10, "B": 15}

var (
	promiseRow = regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|.*$`)
	testName   = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]*)(?:/[^`]*)?`|`([a-z][a-z0-9/]*/testdata/script/[a-z0-9-]+\\.txtar)`")
)

// TestConformance holds docs/dev/conformance.md to the code: every row once, with a
// state, and every test that it names must exist.
func TestConformance(t *testing.T) {
	text, err := os.ReadFile("docs/dev/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, m := range promiseRow.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]]++
		checkRow(t, m[1], m[0])
	}
	for family, n := range promiseRows {
		for i := range n {
			id := family + strconv.Itoa(i+1)
			if rows[id] != 1 {
				t.Errorf("docs/dev/conformance.md has %d rows for %s, want 1", rows[id], id)
			}
			delete(rows, id)
		}
	}
	for id := range rows {
		t.Errorf("docs/dev/conformance.md has a row for %s, which promiseRows does not count", id)
	}
}

// checkRow wants four cells: id, promise, state, proof.
func checkRow(t *testing.T, id, row string) {
	t.Helper()
	cells := strings.Split(strings.Trim(row, "|"), " | ")
	if len(cells) != 4 {
		t.Errorf("%s has %d cells, want id, promise, state, proof: %s", id, len(cells), row)
		return
	}
	state, proof := strings.TrimSpace(cells[2]), cells[3]
	named := testName.FindAllStringSubmatch(proof, -1)
	switch {
	case !slices.Contains([]string{"done", "part", "later"}, state):
		t.Errorf("%s is %q; want done, part or later", id, state)
	case state == "done" && len(named) == 0:
		t.Errorf("%s is done, but names no test", id)
	case state != "done" && !strings.Contains(proof, "missing: "):
		t.Errorf("%s is %s, but does not say what is missing", id, state)
	}
	for _, m := range named {
		if !testExists(t, m[1], m[2], m[3]) {
			t.Errorf("%s names %s, which does not exist", id, m[0])
		}
	}
}

// testExists looks for a test function in a package's directory ("bawn" is the
// root), or for a script.
func testExists(t *testing.T, dir, name, script string) bool {
	t.Helper()
	if script != "" {
		_, err := os.Stat(script)
		return err == nil
	}
	if dir == "bawn" {
		dir = "."
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte("\nfunc "+name+"(")) {
			return true
		}
	}
	return false
}

// Budgets: what is longer needs splitting, or a reason in its doc
// comment with the word "long".
const (
	maxFunction = 80
	maxFile     = 600
	maxGuard    = 150
	maxMain     = 40
)

func TestBudgets(t *testing.T) {
	guard, functions := 0, []int{}
	for path, f := range goFiles(t) {
		lines := f.fset.File(f.ast.Pos()).LineCount() - 1
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if lines > maxFile {
			t.Errorf("%s has %d lines; split at %d", path, lines, maxFile)
		}
		if filepath.Base(path) == "main.go" && strings.HasPrefix(path, "cmd/") && lines > maxMain {
			t.Errorf("%s has %d lines; a main has at most %d", path, lines, maxMain)
		}
		if filepath.Dir(path) == "internal/guard" {
			guard += lines
		}
		functions = append(functions, f.functionLengths(t, path)...)
	}
	if guard == 0 || guard > maxGuard {
		t.Errorf("internal/guard has %d lines; want 1 to %d", guard, maxGuard)
	}
	slices.Sort(functions)
	t.Logf("%d functions, median %d lines", len(functions), functions[len(functions)/2])
	if median := functions[len(functions)/2]; median > 10 {
		t.Errorf("the median function has %d lines; want at most 10", median)
	}
}

// A goFile is one parsed file.
type goFile struct {
	fset *token.FileSet
	ast  *ast.File
}

func (f goFile) functionLengths(t *testing.T, path string) []int {
	t.Helper()
	var out []int
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
		out = append(out, n)
		if n > maxFunction && !strings.Contains(fn.Doc.Text(), "long") {
			t.Errorf("%s: %s has %d lines; split it at %d", path, fn.Name.Name, n, maxFunction)
		}
	}
	return out
}

// goFiles parses every Go file of the module that nobody generates, keyed by
// its path.
func goFiles(t *testing.T) map[string]goFile {
	t.Helper()
	out := map[string]goFile{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && path != "." && (strings.HasPrefix(e.Name(), ".") || slices.Contains([]string{"vendor", "testdata", "tools", "bin", "node_modules"}, e.Name())) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(f) {
			out[path] = goFile{fset, f}
		}
		return err
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

// badNames say nothing about what a package is for.
var badNames = []string{"util", "utils", "common", "manager", "helper", "helpers", "types", "misc", "base"}

// TestHabits looks for what reviews would otherwise have to: tests that skip
// themselves, packages named after nothing, unsafe outside marked files.
func TestHabits(t *testing.T) {
	for path, f := range goFiles(t) {
		if slices.Contains(badNames, f.ast.Name.Name) {
			t.Errorf("%s: package %s: name it after what it is for", path, f.ast.Name.Name)
		}
		for _, imp := range f.ast.Imports {
			if imp.Path.Value == `"unsafe"` && !strings.Contains(path, "unsafe") && !strings.Contains(path, "/sandboxtest/") {
				t.Errorf("%s imports unsafe; the names of such files say so: …_unsafe_linux.go", path)
			}
		}
		if strings.HasPrefix(path, "internal/testenv/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && strings.HasSuffix(path, "_test.go") && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				t.Errorf("%s: %s: use testenv.Need, which fails where the feature is required", f.fset.Position(n.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

// tells are turns of phrase and words that only we use, and that a reader has to read
// twice. Write what happens: "is not a command", "is empty", "the session denies it".
var tells = regexp.MustCompile(`(?i)\b(is|are|was|were) none\b|\bwhoever\b|\bthat which\b|\b(got|gets|get) hold of\b|\bwhere there (is|are) none\b|\bnobody (is|may|can) be\b|` +
	`\bof it there is\b|\bbe it there\b|\b(embryo|warden|courier|lone|wish|wishes)\b|\bbare (agent|session|program|command|run)s?\b`)

// TestPlainWords finds comments with one of them.
func TestPlainWords(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, phrase := range tells.FindAllString(text, -1) {
				t.Errorf("%s: %q: say it in other words", f.fset.Position(group.Pos()), phrase)
			}
		}
	}
}

// A long sentence has more than maxWords words; maxLong in a hundred may be long.
const maxWords, maxLong = 30, 1.0

// sentenceEnd is where one sentence of a comment ends and the next begins.
var sentenceEnd = regexp.MustCompile("[.!?][\"')]*\\s+[A-Z\"`(]|\\n\\n")

// TestLongSentences counts the long sentences of comments.
func TestLongSentences(t *testing.T) {
	var all int
	var long []string
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			for _, s := range sentenceEnd.Split(group.Text(), -1) {
				all++
				if n := len(strings.Fields(s)); n > maxWords && !strings.Contains(s, "\n\t") && !strings.Contains(s, "\n  ") {
					long = append(long, fmt.Sprintf("%s: %d words", f.fset.Position(group.Pos()), n))
				}
			}
		}
	}
	share := 100 * float64(len(long)) / float64(all)
	t.Logf("%d of %d sentences (%.2f %%) have more than %d words", len(long), all, share, maxWords)
	if share > maxLong {
		slices.Sort(long)
		t.Errorf("%.2f %% of the sentences have more than %d words, want at most %.1f %%:\n%s", share, maxWords, maxLong, strings.Join(long, "\n"))
	}
}

// maxSleeps is how many calls of time.Sleep tests have outside of synctest's bubbles.
// It may only fall. Wait with testenv.Until or a channel for what happens, and show
// with a bubble, or with an event that comes later, what does not. What may sleep is a
// fake that is to be slow, and a test of the real kernel that has nothing to wait for.
const maxSleeps = 101

// TestSleeps counts them.
func TestSleeps(t *testing.T) {
	var found []string
	for path, f := range goFiles(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && callee(call) == "time.Sleep" {
				found = append(found, f.fset.Position(n.Pos()).String())
			}
			return !ok || callee(call) != "synctest.Test"
		})
	}
	slices.Sort(found)
	if len(found) > maxSleeps {
		t.Errorf("%d calls of time.Sleep in tests, want at most %d:\n%s", len(found), maxSleeps, strings.Join(found, "\n"))
	}
	if len(found) < maxSleeps-5 {
		t.Errorf("%d calls of time.Sleep in tests: lower maxSleeps from %d", len(found), maxSleeps)
	}
}

// callee is the qualified name of a function that is called, or "".
func callee(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name + "." + sel.Sel.Name
	}
	return ""
}

// licences are those we accept, by words that stand in their texts. They allow
// static linking into an Apache-2.0 program.
var licences = map[string][]string{
	"Apache-2.0":    {"Apache License", "Version 2.0"},
	"MIT":           {"Permission is hereby granted, free of charge", "THE SOFTWARE IS PROVIDED"},
	"BSD":           {"Redistribution and use in source and binary forms", "THIS SOFTWARE IS PROVIDED"},
	"ISC":           {"Permission to use, copy, modify, and/or distribute this software"},
	"MPL-2.0":       {"Mozilla Public License", "2.0"},
	"CC0/Unlicense": {"free and unencumbered software released into the public domain"},
	"public domain": {"dedicated to the public domain by the authors", "Anyone is free to copy, modify, publish, use"},
}

// licenceOf names the licence of a text, or "".
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, name := range slices.Sorted(maps.Keys(licences)) {
		if !slices.ContainsFunc(licences[name], func(words string) bool { return !strings.Contains(text, words) }) {
			return name
		}
	}
	return ""
}

// TestLicences reads the licence of every module that is linked
// into a program or a test, from the module cache: it needs no network.
func TestLicences(t *testing.T) {
	testenv.Need(t, "go")
	modules := linkedModules(t)
	for path, dir := range modules {
		files, err := filepath.Glob(filepath.Join(dir, "[LC][IO][CP][EY][NI]*")) // LICENSE, LICENCE, COPYING
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no licence file in %q: %v", path, dir, err)
		}
		for _, f := range files {
			if slices.Contains([]string{"LICENSE-LOGO", "LICENSE.docs"}, filepath.Base(f)) { // of a picture and of a page, which nothing links
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil || licenceOf(string(text)) == "" {
				t.Errorf("%s: %s is no licence we know: %v", path, filepath.Base(f), err)
			}
		}
	}
	if len(modules) < 5 {
		t.Errorf("only %d modules are linked: %v", len(modules), modules)
	}
}

func TestUnknownLicencesAreFound(t *testing.T) {
	for _, text := range []string{"", "All rights reserved.", "GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "Business Source License 1.1", "Apache License, Version 1.1"} {
		if name := licenceOf(text); name != "" {
			t.Errorf("%q is taken for %s", text, name)
		}
	}
}

// linkedModules returns the directories of the modules that are needed to
// build everything for Linux and macOS. In a vendored tree these are below
// vendor.
func linkedModules(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, goos := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-deps", "-test", "-json=Module", "./...")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for dec := json.NewDecoder(bytes.NewReader(text)); ; {
			var p struct{ Module *struct{ Path, Dir string } }
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module == nil || p.Module.Path == module {
				continue
			}
			if p.Module.Dir == "" {
				p.Module.Dir = filepath.Join("vendor", p.Module.Path)
			}
			out[p.Module.Path] = p.Module.Dir
		}
	}
	return out
}
