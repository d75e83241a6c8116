package strict

import (
	"bytes"
	"html"
	"net/url"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	markdownparser "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/bawn-dev/bawn/internal/redact"
)

// Bounds of what a rendered text does not show.
const (
	maxTitle  = 100  // bytes of a link's title
	maxTitles = 300  // bytes of all titles together: a reader does not see them
	maxURL    = 300  // bytes of an address
	maxURLs   = 4096 // bytes of all addresses together
	maxInfo   = 64   // bytes of what stands behind the ``` of a block
	maxNest   = 32   // quotes and lists within one another
)

var commonMark = sync.OnceValue(func() markdownparser.Parser {
	return markdownparser.NewParser(
		markdownparser.WithBlockParsers(markdownparser.DefaultBlockParsers()...),
		markdownparser.WithInlineParsers(markdownparser.DefaultInlineParsers()...),
		markdownparser.WithParagraphTransformers(markdownparser.DefaultParagraphTransformers()...),
	)
})

// markdown reads a body that begins after first lines.
func (p *parser) markdown(body []byte, first int) {
	if line := nested(body); line > 0 {
		p.fault(first+line, "quotes or lists more than %d deep", maxNest)
		return
	}
	ctx := markdownparser.NewContext()
	root := commonMark().Parse(text.NewReader(body), markdownparser.WithContext(ctx))
	b := &markup{parser: p, source: body, first: first, used: map[string]bool{}, referred: map[string]bool{}}
	_ = ast.Walk(root, b.visit) // visit returns no error
	b.unreferred()
	for _, r := range ctx.References() {
		if label := string(r.Label()); !b.used[fold(label)] {
			p.fault(b.definition(label), "the link definition %.80q is used nowhere, so that a reader does not see it; remove it", label)
		}
	}
}

// nested returns the first line that begins with more marks of quotes and lists
// than anybody writes, on which a parser spends its time; 0 for none. A line of
// nothing but one mark is a rule.
func nested(body []byte) int {
	line := 0
	for l := range bytes.Lines(body) {
		line++
		rest := bytes.TrimLeft(l, ">-*+ \t")
		marks := len(l) - len(rest) - bytes.Count(l[:len(l)-len(rest)], []byte(" ")) - bytes.Count(l[:len(l)-len(rest)], []byte("\t"))
		if marks > maxNest && len(bytes.Trim(l, "-* \t\n")) > 0 {
			return line
		}
	}
	return 0
}

// A markup is a text in Markdown on its way through the checks.
type markup struct {
	*parser
	source []byte
	first  int
	used   map[string]bool // definitions of links, folded
	last   int             // where the last thing with a place stood
	titles int             // bytes of all titles, and of the words of images
	urls   int             // bytes of all addresses

	notes    []note          // footnotes
	referred map[string]bool // labels of footnotes that something refers to
}

// line is that of an offset, in the file.
func (b *markup) line(offset int) int {
	return b.first + 1 + bytes.Count(b.source[:max(0, min(offset, len(b.source)))], []byte("\n"))
}

// definition is the line of a link's definition.
func (b *markup) definition(label string) int {
	if i := bytes.Index(b.source, []byte("["+label+"]:")); i >= 0 {
		return b.line(i)
	}
	return b.first + 1
}

func (b *markup) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	b.place(n)
	switch n := n.(type) {
	case *ast.HTMLBlock:
		b.html(b.last)
	case *ast.RawHTML:
		if n.Segments.Len() > 0 {
			b.last = n.Segments.At(0).Start
		}
		b.html(b.last)
	case *ast.Text:
		b.text(n)
	case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
		b.footnotes(n)
	case *ast.CodeSpan:
		return ast.WalkSkipChildren, nil
	case *ast.FencedCodeBlock:
		b.fence(n)
	case *ast.Link:
		b.link(n.Destination, n.Title, n.Reference, false)
		b.shown(n)
	case *ast.Image:
		b.link(n.Destination, n.Title, n.Reference, true)
		b.alternative(n)
	case *ast.AutoLink:
		b.link(n.URL(b.source), nil, nil, false)
	}
	return ast.WalkContinue, nil
}

// place remembers where the node stands.
func (b *markup) place(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		b.last = n.Segment.Start
	case *ast.Link, *ast.Image:
		if t, ok := n.FirstChild().(*ast.Text); ok {
			b.last = t.Segment.Start
		}
	case *ast.FencedCodeBlock:
		if n.Info != nil {
			b.last = n.Info.Segment.Start
		}
	default:
		if n.Type() == ast.TypeBlock && n.Lines() != nil && n.Lines().Len() > 0 {
			b.last = n.Lines().At(0).Start
		}
	}
}

func (b *markup) html(at int) {
	b.fault(b.line(at), "HTML, which a reader may not see; write it as code (`<x>`), or without")
}

func (b *markup) fence(n *ast.FencedCodeBlock) {
	if n.Info == nil {
		return
	}
	b.picture(n)
	info := n.Info.Segment.Value(b.source)
	if len(info) > maxInfo {
		b.fault(b.line(b.last), "%d bytes behind the opening of a code block, which a reader does not see; want at most %d", len(info), maxInfo)
	}
}

// text looks for files that an agent puts in, and for what character references
// would hide.
func (b *markup) text(n *ast.Text) {
	words := n.Segment.Value(b.source)
	b.phantom(n.Segment.Start, string(words))
	for i, c := range words {
		if c == '@' && b.includes(n.Segment.Start+i) {
			b.fault(b.line(n.Segment.Start+i), "@ at the begin of a word puts a file in while the agent reads; write it as code (`@x`), or name the file")
			break
		}
	}
	if !bytes.ContainsRune(words, '&') {
		return
	}
	for _, r := range html.UnescapeString(string(words)) {
		if redact.Invisible(r) && !unicode.IsSpace(r) {
			b.fault(b.line(n.Segment.Start), "a character reference for %U, which can't be seen; remove it", r)
			break
		}
	}
}

// includes reports whether the @ at an offset begins a word, and something
// follows that could be a path.
func (b *markup) includes(at int) bool {
	before, _ := utf8.DecodeLastRune(b.source[:at])
	after, _ := utf8.DecodeRune(b.source[at+1:])
	if at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || strings.ContainsRune(`._%+-\/`, before)) {
		return false
	}
	return unicode.IsLetter(after) || unicode.IsDigit(after) || strings.ContainsRune(`./~"{`, after)
}

// link refuses what leads out of the skill by itself, and what an agent or an
// editor loads without asking.
func (b *markup) link(destination, title []byte, ref *ast.ReferenceLink, image bool) {
	if ref != nil {
		b.used[fold(string(ref.Value))] = true
	}
	b.aside(len(title), "a title")
	if b.urls += len(destination); len(destination) > maxURL || b.urls > maxURLs && b.urls-len(destination) <= maxURLs {
		b.fault(b.line(b.last), "an address of %d bytes, %d with those before; want at most %d, and %d together", len(destination), b.urls, maxURL, maxURLs)
	}
	if problem := b.leads(string(destination), image); problem != "" {
		b.fault(b.line(b.last), "the link to %.80q %s", destination, problem)
	}
}

// shown refuses a link without words: a reader would not see the link, nor its
// address.
func (b *markup) shown(link *ast.Link) {
	seen := false
	_ = ast.Walk(link, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // nothing in it errs
		switch n := n.(type) {
		case *ast.Text:
			seen = seen || bytes.ContainsFunc(n.Segment.Value(b.source), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
		case *ast.Image:
			seen = true
		}
		return ast.WalkContinue, nil
	})
	if !seen {
		b.fault(b.line(b.last), "a link without words to %.80q, which a reader does not see", link.Destination)
	}
}

// leads says what is wrong with where a link leads, or "".
func (b *markup) leads(to string, image bool) string {
	u, err := url.Parse(html.UnescapeString(to))
	if err != nil {
		return "can't be read; want a name of a file, or an URL"
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "" && u.Host == "":
		return b.file(u.Path)
	case image:
		return "is an image that is loaded from elsewhere; put it beside the text"
	case scheme == "http", scheme == "https", scheme == "mailto":
		return ""
	}
	return "has a scheme that is not for a text; want https, or a name of a file"
}

// file says what is wrong with a link to a file, or "". Links of a definition
// lead into the project.
func (b *markup) file(to string) string {
	inside := b.role == RoleSkill || b.role == RoleReference
	switch to = strings.ReplaceAll(to, `\`, "/"); {
	case to == "":
		return ""
	case strings.HasPrefix(to, "/"), strings.HasPrefix(to, "~"):
		return "leads out of the project; want a name beside the text"
	case inside && outside(path.Join(path.Dir(b.parser.file), to)):
		return "leads out of the skill's folder; put the file there"
	}
	return ""
}

func outside(name string) bool { return name == ".." || strings.HasPrefix(name, "../") }

// fold is a label as CommonMark compares them.
func fold(label string) string {
	return strings.ToLower(strings.Join(strings.Fields(label), " "))
}
