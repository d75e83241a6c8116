package strict

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/yuin/goldmark/ast"
	"go.yaml.in/yaml/v3"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/skill"
)

// maxComment bounds the bytes of all comments together that a rendered page does not show.
// Fewer are told to the human.
const maxComment = 200

// unseen says what a human would not see in a value once its escapes are undone, or "".
func unseen(value string) string {
	if faults := skill.Hidden("", []byte(value)); len(faults) > 0 {
		return faults[0].Problem
	}
	return ""
}

// escape is a character by number, as TOML, JSON and YAML write one.
var escape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))`)
})

// escapes looks for characters that can't be seen and are written by number in data.
func (p *parser) escapes(text []byte) {
	line := 0
	for l := range bytes.Lines(text) {
		line++
		var high rune
		for _, m := range escape().FindAllSubmatch(l, skill.MaxFaults) {
			n, _ := strconv.ParseUint(string(slices.Concat(m[1], m[2], m[3])), 16, 32) // digits they are
			r := rune(n)
			if utf16.IsSurrogate(r) {
				if r, high = utf16.DecodeRune(high, r), r; r == '\ufffd' { // its other half follows
					continue
				}
			}
			if redact.Invisible(r) && r != '\n' && r != '\t' && r != '\r' {
				p.fault(line, "the escape %q is the character %U, which can't be seen; remove it", m[0], r)
				break
			}
		}
	}
	if ext := path.Ext(p.file); ext == ".yaml" || ext == ".yml" {
		p.yamlValues(text)
	}
}

// yamlValues looks at the values of a file of YAML, which has more escapes than others.
func (p *parser) yamlValues(text []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if dec.Decode(&doc) != nil { // the end, or what no agent reads either
			return
		}
		p.values(&doc, 0)
	}
}

func (p *parser) values(n *yaml.Node, deep int) {
	if problem := unseen(n.Value); problem != "" {
		p.fault(n.Line, "a value with its escapes undone: %s", problem)
		return
	}
	for _, c := range n.Content {
		if deep < maxKeys {
			p.values(c, deep+1)
		}
	}
}

// comments are the words of all comments in front matter.
func comments(n *yaml.Node) string {
	var all []string
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		if c != "" {
			all = append(all, c)
		}
	}
	for _, c := range n.Content {
		if more := comments(c); more != "" {
			all = append(all, more)
		}
	}
	return strings.Join(all, " ")
}

// commented tells of comments, or refuses many.
func (p *parser) commented(line int, where, words string) {
	if words = strings.Join(strings.Fields(words), " "); words == "" {
		return
	}
	if p.comments += len(words); p.comments > maxComment {
		p.fault(line, "comments of %d bytes together, up to %s, which a rendered page does not show; want at most %d", p.comments, where, maxComment)
		return
	}
	p.notice("comments in %s, which a rendered page does not show: %q", where, words)
}

// drawn are the languages of code blocks that pages show as pictures or formulas, with what
// begins a line of comment.
var drawn = map[string][]string{
	"mermaid": {"%%"}, "math": {"%"}, "latex": {"%"}, "tex": {"%"}, "plantuml": {"'", "/'"}, "puml": {"'", "/'"}, "dot": {"//", "#", "/*"}, "graphviz": {"//", "#", "/*"}, "d2": {"#"},
}

// picture looks for what the picture of a code block leaves out.
func (b *markup) picture(n *ast.FencedCodeBlock) {
	language, _, _ := strings.Cut(strings.ToLower(strings.Trim(string(n.Language(b.source)), "{}. ")), ":")
	marks, ok := drawn[language]
	if !ok {
		return
	}
	var left []string
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		l := strings.TrimSpace(string(at.Value(b.source)))
		if slices.ContainsFunc(marks, func(m string) bool { return strings.HasPrefix(l, m) }) {
			left = append(left, l)
		}
		b.phantom(at.Start, l)
	}
	b.commented(b.line(b.last), "a picture ("+language+")", strings.Join(left, " "))
}

// phantoms are commands of TeX, which pages show formulas by, for what takes up room and is
// not seen, or is seen over something else.
var phantoms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\(?:[hv]?phantom|(?:text|bb|cell)?color|colorbox|fcolorbox|definecolor|opacity|transparent|texttransparent|math[rlc]lap|[rlc]lap|smash|scalebox|resizebox|fontsize|raisebox|style|class|cssId|html[A-Z][a-z]+)\b`)
})

// phantom refuses a formula's text that is not seen.
func (b *markup) phantom(at int, words string) {
	if m := phantoms().FindString(words); m != "" {
		b.fault(b.line(at), "%s, by which a formula hides its text; write it without, or as code", m)
	}
}

// footnote is how a note at the page's end begins, which pages leave out where nothing
// refers to it.
var footnote = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[\^([^\]\s]+)\](:?)`) })

// footnotes looks for notes in a block's lines.
func (b *markup) footnotes(n ast.Node) {
	lines := n.Lines()
	for i := range lines.Len() {
		at := lines.At(i)
		words := at.Value(b.source)
		for _, m := range footnote().FindAllSubmatchIndex(words, -1) {
			label := strings.ToLower(string(words[m[2]:m[3]]))
			if m[4] < m[5] && len(bytes.TrimSpace(words[:m[0]])) == 0 {
				b.notes = append(b.notes, note{label, at.Start})
			} else {
				b.referred[label] = true
			}
		}
	}
}

// A note is a footnote's definition.
type note struct {
	label string
	at    int
}

// unreferred refuses footnotes that nothing refers to.
func (b *markup) unreferred() {
	for _, n := range b.notes {
		if !b.referred[n.label] {
			b.fault(b.line(n.at), "the footnote %.80q is referred to nowhere, so that a page does not show it; remove it", n.label)
		}
	}
}

// alternative counts an image's words, which are seen only where the image is not, with the
// titles.
func (b *markup) alternative(image *ast.Image) {
	size := 0
	_ = ast.Walk(image, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // nothing in it errs
		if t, ok := n.(*ast.Text); ok && entering {
			size += t.Segment.Len()
		}
		return ast.WalkContinue, nil
	})
	b.aside(size, "an image's words")
}

// aside counts words that a reader does not see.
func (b *markup) aside(size int, what string) {
	if size > maxTitle {
		b.fault(b.line(b.last), "%s of %d bytes, which a reader does not see; want at most %d", what, size, maxTitle)
	}
	if b.titles += size; b.titles > maxTitles && b.titles-size <= maxTitles {
		b.fault(b.line(b.last), "titles and words of images of %d bytes together, which a reader does not see; want at most %d", b.titles, maxTitles)
	}
}
