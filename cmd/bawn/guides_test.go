package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A step of a guide is a command and the output that the page shows, or a command of a
// comment "given", which prepares the workspace and shows nothing.
type step struct {
	command, output string
	given           bool
}

// run is the mark of a console block that TestGuides executes; given is that of a
// comment with commands that readers don't need.
var (
	runBlock  = regexp.MustCompile("(?ms)^<!-- (run -->\n```console\n(.*?)^```|given\n(.*?)^-->)$")
	guideMark = "<!-- run -->"
)

// TestGuides executes the marked blocks of docs and docs/guides, those of a page in one
// workspace.
func TestGuides(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify", "git", "curl")
	pages, err := filepath.Glob("../../docs/*.md")
	guidePages, guidesErr := filepath.Glob("../../docs/guides/*.md")
	if err != nil || guidesErr != nil || len(pages) == 0 || len(guidePages) == 0 {
		t.Fatalf("no guides: %v, %v", err, guidesErr)
	}
	pages = append(pages, guidePages...)
	dir, guides := t.TempDir(), map[string][]step{}
	var files []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		guides[name] = steps(t, name, string(text))
		if len(guides[name]) == 0 {
			continue
		}
		var script strings.Builder
		for i := range guides[name] {
			fmt.Fprintf(&script, "shows %s %d\n", name, i)
		}
		files = append(files, filepath.Join(dir, name+".txtar"))
		if err := os.WriteFile(files[len(files)-1], []byte(script.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 3 {
		t.Errorf("only %d guides have blocks that are run", len(files))
	}
	shows := func(ts *testscript.TestScript, _ bool, args []string) {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		show(ts, guides[args[0]][n])
	}
	testscript.Run(t, testscript.Params{Files: files, Setup: setup, WorkdirRoot: homeRoot(t), Cmds: map[string]func(*testscript.TestScript, bool, []string){"shows": shows}})
}

// notesOnce makes Bawn say what it says once about a machine, which pages don't show.
var notesOnce = step{command: "bawn run -- true", given: true}

// steps reads the marked blocks of a page.
func steps(t *testing.T, name, page string) (all []step) {
	t.Helper()
	blocks := runBlock.FindAllStringSubmatch(page, -1)
	for _, m := range blocks {
		if m[3] != "" {
			all = append(all, step{command: m[3], given: true})
			continue
		}
		for block := range strings.SplitSeq("\n"+m[2], "\n$ ") {
			command, output, _ := strings.Cut(block, "\n")
			for strings.HasPrefix(output, "> ") {
				line, rest, _ := strings.Cut(output, "\n")
				command, output = command+"\n"+line[2:], rest
			}
			if command != "" {
				all = append(all, step{command: command, output: output})
			}
		}
	}
	if len(all) > 0 {
		all = append([]step{notesOnce}, all...)
	}
	if marks := strings.Count(page, guideMark); marks > len(blocks) {
		t.Errorf("%s: %d marks %q, but %d blocks; the mark stands right above a console block", name, marks, guideMark, len(blocks))
	}
	return all
}

// show runs a step and holds its output against the page's, in which "…" stands for
// anything, and a line "…" for any lines.
func show(ts *testscript.TestScript, s step) {
	err := ts.Exec("sh", "-c", "exec 2>&1\n"+s.command)
	got := ts.ReadFile("stdout")
	if s.given {
		if err != nil {
			ts.Fatalf("%s: %v\n%s", s.command, err, got)
		}
		return
	}
	if !alike(s.output, got) {
		ts.Fatalf("the page shows\n$ %s\n%s\nbut it prints\n%s", s.command, s.output, got)
	}
}

// alike reports whether a text is what a pattern with "…" says.
func alike(pattern, text string) bool {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(pattern, "\n") + "\n") {
		if line == "…\n" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*?`))
	}
	if strings.TrimSpace(pattern) == "" {
		return strings.TrimSpace(text) == ""
	}
	return regexp.MustCompile(`\A` + b.String() + `\z`).MatchString(text)
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a\n", "a\n", true}, {"a\n", "b\n", false}, {"a …\n", "a 12\n", true}, {"a …\n", "a 1\n2\n", false},
		{"a\n…\nb\n", "a\nx\ny\nb\n", true}, {"a\n…\nb\n", "a\nb\n", true}, {"a\n…\n", "b\n", false}, {"", "", true}, {"", "a\n", false},
	} {
		if got := alike(c.pattern, c.text); got != c.want {
			t.Errorf("alike(%q, %q) = %t", c.pattern, c.text, got)
		}
	}
}
