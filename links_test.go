package bawn_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	codeText = regexp.MustCompile("(?ms)^ {0,3}```.*?^ {0,3}```|`[^`\n]*`")
	pageLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	markup   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	named    = regexp.MustCompile(`\bdocs/[a-z]+[a-z0-9/-]*\.md\b`)
)

// TestLinks follows every relative link of every page, to the file and to the heading.
func TestLinks(t *testing.T) {
	pages := 0
	for path, text := range trackedTexts(t, ".md") {
		pages++
		for _, m := range pageLink.FindAllStringSubmatch(codeText.ReplaceAllString(text, ""), -1) {
			if why := brokenLink(path, m[1]); why != "" {
				t.Errorf("%s: %s: %s", path, m[1], why)
			}
		}
	}
	if pages < 40 {
		t.Errorf("only %d pages were looked at", pages)
	}
}

// TestNamedPages: a page that code, help or a message names is there.
func TestNamedPages(t *testing.T) {
	for path, text := range trackedTexts(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		for _, page := range named.FindAllString(text, -1) {
			if _, err := os.Stat(page); err != nil && !slices.Contains(exampleNames, page) {
				t.Errorf("%s names %s: %v", path, page, err)
			}
		}
	}
}

// maxPageWords is how many words the pages that are written by hand may have together.
// Where two pages say the same, one links to the other.
const maxPageWords = 30_000

// TestPageWords counts words with a letter or digit in README.md, SECURITY.md and docs,
// without console blocks, comments and generated pages.
func TestPageWords(t *testing.T) {
	all := 0
	for path, text := range trackedTexts(t, ".md") {
		switch {
		case path == "docs/protected-names.md", path == "docs/policy-corpus.md", strings.HasPrefix(path, "docs/reference/"):
		case path == "README.md", path == "SECURITY.md", strings.HasPrefix(path, "docs/"):
			for _, word := range strings.Fields(pageComment.ReplaceAllString(codeBlocks.ReplaceAllString(text, ""), "")) {
				if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
					all++
				}
			}
		}
	}
	t.Logf("%d words", all)
	if all > maxPageWords || all < maxPageWords/2 {
		t.Errorf("%d words; want at most %d", all, maxPageWords)
	}
}

var pageComment = regexp.MustCompile(`(?s)<!--.*?-->`)

// exampleNames are paths in examples, not pages of ours.
var exampleNames = []string{"docs/migrations.md", "docs/api/batch.md", "docs/api/locking.md"}

func TestBrokenLinksAreFound(t *testing.T) {
	for link, want := range map[string]bool{"docs/policy.md": false, "docs/policy.md#rules": false, "https://example.org": false, "docs/absent.md": true, "docs/policy.md#absent": true, "#absent": true, "docs/guides": false} {
		if got := brokenLink("README.md", link); (got != "") != want {
			t.Errorf("%s: %q", link, got)
		}
	}
}

// brokenLink says why a link of a page leads nowhere, or returns "". Links with a scheme
// are not followed.
func brokenLink(page, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	text, err := os.ReadFile(target)
	if fi, statErr := os.Stat(target); statErr == nil && fi.IsDir() && anchor == "" {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
		return "no such heading"
	}
	return ""
}

// anchors are the names that GitHub gives to a page's headings.
func anchors(text string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(codeBlocks.ReplaceAllString(text, ""), -1) {
		name := markup.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

var codeBlocks = regexp.MustCompile("(?ms)^ {0,3}```.*?^ {0,3}```")

// trackedTexts reads the files with an ending that belong to the project.
func trackedTexts(t *testing.T, ending string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && path != "." && (strings.HasPrefix(e.Name(), ".") || slices.Contains([]string{"testdata", "bin", "dist", "node_modules", "vendor"}, e.Name())) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
