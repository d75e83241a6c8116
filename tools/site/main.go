// site writes the Markdown pages of the repository as static HTML with a sidebar and a
// search that runs in the browser. Nothing is loaded from elsewhere. A link that leads
// nowhere is an error.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// source is where files that are not pages are shown.
const source = "https://github.com/bawn-dev/bawn/blob/main/"

var (
	//go:embed page.html
	layout string
	//go:embed site.css
	styles []byte
	//go:embed site.js
	script []byte

	pageHTML = template.Must(template.New("page").Parse(layout))
	markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
)

// A page is one Markdown file. Paths are relative to the repository, with slashes.
type page struct {
	path, title string
	text        []byte
	tree        ast.Node
	anchors     map[string]bool
	sections    []section
}

// A section is what the search finds: the text below one heading.
type section struct {
	URL   string `json:"u"`
	Page  string `json:"p"`
	Title string `json:"t"`
	Text  string `json:"x"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site REPOSITORY DIRECTORY")
		os.Exit(2)
	}
	if err := build(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// build writes the site of a repository into a directory, which it replaces.
func build(root, out string) error {
	pages, err := load(root)
	if err != nil {
		return err
	}
	files := map[string][]byte{"site.css": styles, "site.js": script}
	var index []section
	for _, p := range pages {
		err = errors.Join(err, p.rewrite(root, pages))
		html, renderErr := p.html(pages)
		err = errors.Join(err, renderErr)
		files[address(p.path)] = html
		index = append(index, p.sections...)
	}
	pictures, globErr := filepath.Glob(filepath.Join(root, "docs/pictures/*.[ps][nv]g"))
	err = errors.Join(err, globErr)
	for _, name := range pictures {
		content, readErr := os.ReadFile(name)
		err = errors.Join(err, readErr)
		files["docs/pictures/"+filepath.Base(name)] = content
	}
	list, jsonErr := json.Marshal(index)
	files["index.js"] = slices.Concat([]byte("const index = "), list, []byte(";\n"))
	if err = errors.Join(err, jsonErr); err != nil {
		return err
	}
	return write(out, files)
}

func write(out string, files map[string][]byte) error {
	err := os.RemoveAll(out)
	for name, content := range files {
		name = filepath.Join(out, filepath.FromSlash(name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o644))
	}
	return err
}

// load parses the pages, sorted by path.
func load(root string) (pages []*page, err error) {
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if e.IsDir() && rel != "." && (strings.HasPrefix(e.Name(), ".") || slices.Contains([]string{"bin", "dist", "testdata", "node_modules", "internal", "web", "test"}, rel)) {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(rel, ".md") {
			return nil
		}
		src, err := os.ReadFile(name)
		pages = append(pages, parse(rel, src))
		return err
	})
	return pages, err
}

func parse(name string, src []byte) *page {
	p := &page{path: name, text: src, anchors: map[string]bool{}}
	p.tree = markdown.Parser().Parse(text.NewReader(src), parser.WithContext(parser.NewContext(parser.WithIDs(slugs{}))))
	p.title = name
	now := &section{}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			p.add(now)
			id, _ := h.AttributeString("id")
			anchor := string(id.([]byte))
			p.anchors[anchor] = true
			now = &section{URL: address(name) + "#" + anchor, Title: plain(n, src)}
			if h.Level == 1 {
				p.title = now.Title
			}
			continue
		}
		now.Text += plain(n, src) + " "
	}
	p.add(now)
	for i := range p.sections {
		p.sections[i].Page = p.title
	}
	return p
}

func (p *page) add(s *section) {
	if s.URL != "" {
		p.sections = append(p.sections, *s)
	}
}

// plain is the text of a node.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
		} else if entering && n.Type() == ast.TypeBlock && (n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock) {
			b.Write(n.Lines().Value(src))
		} else if !entering && n.Type() == ast.TypeBlock {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// slugs names headings as GitHub does.
type slugs struct{}

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

func (slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	name := dropped.ReplaceAll(bytes.ToLower(value), nil)
	return bytes.ReplaceAll(name, []byte(" "), []byte("-"))
}

func (slugs) Put([]byte) {}

// address is where a page or a directory with a README.md is in the site.
func address(name string) string {
	dir, file := path.Split(name)
	if file == "README.md" {
		return dir + "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// rewrite leads the links of a page to HTML, or to the source for other files.
func (p *page) rewrite(root string, pages []*page) error {
	var broken []error
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !entering || !ok || strings.Contains(string(link.Destination), ":") {
			return ast.WalkContinue, nil
		}
		to, err := p.follow(root, string(link.Destination), pages)
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %s: %w", p.path, link.Destination, err))
		}
		link.Destination = []byte(to)
		return ast.WalkContinue, nil
	})
	return errors.Join(broken...)
}

func (p *page) follow(root, link string, pages []*page) (string, error) {
	file, anchor, _ := strings.Cut(link, "#")
	target := p.path
	if file != "" {
		target = path.Join(path.Dir(p.path), file)
	}
	i := slices.IndexFunc(pages, func(o *page) bool { return o.path == target || o.path == target+"/README.md" })
	if i < 0 {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
		return source + target, err
	}
	if anchor == "" {
		return p.relative(address(pages[i].path)), nil
	}
	if !pages[i].anchors[anchor] {
		return "", errors.New("no such heading")
	}
	return p.relative(address(pages[i].path)) + "#" + anchor, nil
}

// relative is a path of the site as the page names it.
func (p *page) relative(to string) string {
	return strings.Repeat("../", strings.Count(p.path, "/")) + to
}

// groups are the parts of the sidebar, by the directories of their pages.
var groups = []struct{ Title, Dir string }{
	{"Guides", "docs/guides"}, {"In detail", "docs"}, {"Reference", "docs/reference"}, {"Security", "docs/security"},
	{"Examples", "examples"}, {"Development", "docs/dev"}, {"Internals", "docs/dev/internals"}, {"Decisions", "docs/dev/decisions"},
}

type group struct {
	Title string
	Open  bool
	Items []item
}

type item struct {
	Title, URL string
	Here       bool
}

func (p *page) html(pages []*page) ([]byte, error) {
	var body, out bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.text, p.tree); err != nil {
		return nil, err
	}
	var bar []group
	for _, g := range groups {
		shown := group{Title: g.Title}
		for _, o := range pages {
			if path.Dir(o.path) == g.Dir || g.Dir == "examples" && path.Dir(path.Dir(o.path)) == g.Dir {
				shown.Items = append(shown.Items, item{o.title, p.relative(address(o.path)), o == p})
				shown.Open = shown.Open || o == p || g.Title == "Guides"
			}
		}
		bar = append(bar, shown)
	}
	err := pageHTML.Execute(&out, map[string]any{"Title": p.title, "Root": p.relative(""), "Groups": bar, "Body": template.HTML(body.String())})
	return out.Bytes(), err
}
