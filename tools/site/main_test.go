package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outside finds what a browser would load from elsewhere.
var outside = regexp.MustCompile(`(?i)<(script|img|iframe|link)[^>]*(src|href)="(https?:)?//`)

// TestSite builds the project's own site: a page, a link to a heading, and a search hit.
func TestSite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	if err := build("../..", out); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, want := range map[string]string{
		"index.html":             `<a href="docs/guides/index.html">`,
		"docs/network.html":      `<h2 id="git-rules">Git rules</h2>`,
		"docs/guides/audit.html": `<a href="../../docs/audit-format.html">`,
		"docs/split.html":        `href="../docs/network.html#a-model-on-this-machine"`,
		"docs/guides/index.html": `aria-current="page">Guides</a>`,
		"docs/agents.html":       `<a href="` + source + `internal/agents/data">`,
	} {
		text := read(name)
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %s", name, want)
		}
		if m := outside.FindString(text); m != "" {
			t.Errorf("%s loads %s", name, m)
		}
	}
	if text := read("docs/pictures/start.svg"); !strings.Contains(read("index.html"), `src="docs/pictures/start.svg"`) || !strings.HasPrefix(text, "<svg") {
		t.Error("the page lacks its picture")
	}
	js := read("index.js") + read("site.js") + `; console.log(find(index, "database port").map((s) => s.u).join("\n")); console.log("none:" + find(index, "zyxwvut").length)`
	cmd := exec.Command("node", "-")
	cmd.Stdin = strings.NewReader(js)
	got, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(got), "docs/guides/database.html#") || !strings.Contains(string(got), "none:0") {
		t.Errorf("the search finds %s, %v", got, err)
	}
}

// TestBrokenLinks: the site is not built where a link leads nowhere.
func TestBrokenLinks(t *testing.T) {
	for text, want := range map[string]string{"[x](absent.md)": "absent.md", "[x](#absent)": "no such heading", "# A b\n[x](#a-b)": ""} {
		root := t.TempDir()
		if err := os.WriteFile(root+"/README.md", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := build(root, t.TempDir()+"/site")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
