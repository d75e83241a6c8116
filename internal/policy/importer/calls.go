package importer

import (
	"fmt"
	"slices"
	"strings"
)

// A call is one statement NAME(ARG = VALUE, …). Its text is a part of the
// source, for reports.
type call struct {
	line int
	name string // "" for a statement that is no such call
	text string
	args []argument
}

type argument struct {
	name  string // "" for one without a name
	value value
}

// A value is a string, or a list of values.
type value struct {
	text  string
	list  bool
	items []value
}

// pattern returns the words of a rule with their alternatives.
func (c call) pattern() (out [][]string, ok bool) {
	i := slices.IndexFunc(c.args, func(a argument) bool { return a.name == "pattern" })
	if i < 0 || slices.ContainsFunc(c.args[i+1:], func(a argument) bool { return a.name == "pattern" }) {
		return nil, false
	}
	lines := 1
	for _, it := range c.args[i].value.items {
		alternatives, ok := it.alternatives()
		if lines *= len(alternatives); !ok || lines == 0 || lines > maxLines {
			return nil, false
		}
		out = append(out, alternatives)
	}
	return out, len(out) > 0
}

// alternatives are the words that may stand at one place; each must be one.
func (v value) alternatives() ([]string, bool) {
	list := []value{v}
	if v.list {
		list = v.items
	}
	var out []string
	for _, w := range list {
		if w.list || len(strings.Fields(w.text)) != 1 {
			return nil, false
		}
		out = append(out, w.text)
	}
	return out, true
}

// parseCalls reads the small part of Starlark that rules are written in: calls
// with named arguments that are strings and lists. Any other statement is
// returned as a call without a name; text whose end can't be told is an error.
func (r *reader) parseCalls(data []byte) ([]call, error) {
	tokens, err := lex(string(data))
	if err != nil {
		return nil, r.errorAt(err.line, "%s", err.problem)
	}
	var out []call
	for len(tokens) > 0 {
		n, open := statement(tokens)
		if open {
			return nil, r.errorAt(tokens[0].line, "the bracket that is opened here is never closed")
		}
		if n > 0 {
			out = append(out, parseCall(tokens[:n]))
		}
		tokens = tokens[min(n+1, len(tokens)):]
	}
	return out, nil
}

// statement is the number of tokens before the end of the first line that
// ends outside of brackets.
func statement(tokens []token) (n int, open bool) {
	depth := 0
	for i, t := range tokens {
		switch t.text {
		case "(", "[", "{":
			depth += t.mark()
		case ")", "]", "}":
			depth -= t.mark()
		case "\n":
			if t.kind == punctuation && depth <= 0 {
				return i, false
			}
		}
	}
	return len(tokens), depth > 0
}

// parseCall reads one statement.
func parseCall(tokens []token) call {
	var words []string
	kept := tokens[:0:0]
	for _, t := range tokens {
		if t.kind == punctuation && t.text == "\n" {
			continue
		}
		kept, words = append(kept, t), append(words, t.source())
	}
	c := call{line: tokens[0].line, text: shorten(strings.Join(words, " "))}
	p := callParser{kept}
	name, args, ok := p.call()
	if ok && len(p.rest) == 0 {
		c.name, c.args = name, args
	}
	return c
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "..."
	}
	return s
}

type callParser struct{ rest []token }

// take consumes the next token if it is this punctuation.
func (p *callParser) take(mark string) bool {
	if len(p.rest) == 0 || p.rest[0].kind != punctuation || p.rest[0].text != mark {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *callParser) name() (string, bool) {
	if len(p.rest) == 0 || p.rest[0].kind != identifier {
		return "", false
	}
	s := p.rest[0].text
	p.rest = p.rest[1:]
	return s, true
}

func (p *callParser) call() (name string, args []argument, ok bool) {
	if name, ok = p.name(); !ok || !p.take("(") {
		return "", nil, false
	}
	for !p.take(")") {
		var a argument
		if a.name, ok = p.name(); !ok || !p.take("=") {
			return "", nil, false
		}
		if a.value, ok = p.value(0); !ok {
			return "", nil, false
		}
		args = append(args, a)
		if !p.take(",") && (len(p.rest) == 0 || p.rest[0].text != ")") {
			return "", nil, false
		}
	}
	return name, args, true
}

func (p *callParser) value(depth int) (v value, ok bool) {
	if len(p.rest) > 0 && p.rest[0].kind == text {
		v.text = p.rest[0].text
		p.rest = p.rest[1:]
		return v, true
	}
	if depth > maxDepth || !p.take("[") {
		return v, false
	}
	for v.list = true; !p.take("]"); {
		it, ok := p.value(depth + 1)
		if !ok {
			return v, false
		}
		v.items = append(v.items, it)
		if !p.take(",") && (len(p.rest) == 0 || p.rest[0].text != "]") {
			return v, false
		}
	}
	return v, true
}

type tokenKind uint8

const (
	punctuation tokenKind = iota
	identifier
	text
)

type token struct {
	kind tokenKind
	text string
	line int
}

// mark is 1 for a bracket and 0 for a string that looks like one.
func (t token) mark() int {
	if t.kind == punctuation {
		return 1
	}
	return 0
}

func (t token) source() string {
	if t.kind == text {
		return fmt.Sprintf("%q", t.text)
	}
	return t.text
}

type lexError struct {
	line    int
	problem string
}

// lex cuts text into tokens. A character that calls don't use becomes a token of
// punctuation, so that its statement does not read as a call.
func lex(s string) (out []token, err *lexError) {
	line := 1
	for s != "" {
		t, n, problem := next(s)
		if problem != "" {
			return nil, &lexError{line, problem}
		}
		if t.line = line; t.text != "" || t.kind == text {
			out = append(out, t)
		}
		line += strings.Count(s[:n], "\n")
		s = s[n:]
	}
	return out, nil
}

// next reads a token and says how long its source is; space and comments are
// one without text.
func next(s string) (t token, n int, problem string) {
	switch c := s[0]; {
	case c == ' ' || c == '\t' || c == '\r':
		return token{}, 1, ""
	case c == '#':
		comment, _, _ := strings.Cut(s, "\n")
		return token{}, len(comment), ""
	case c == '"' || c == '\'':
		t.kind = text
		t.text, n, problem = quoted(s)
		return t, n, problem
	case nameByte(c):
		name := s[:len(s)-len(strings.TrimLeftFunc(s, func(c rune) bool { return c < 0x80 && nameByte(byte(c)) }))]
		return token{kind: identifier, text: name}, len(name), ""
	}
	return token{text: s[:1]}, 1, ""
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// quoted reads a string and says how long its source is.
func quoted(s string) (out string, size int, problem string) {
	if q := s[:1]; strings.HasPrefix(s, q+q+q) {
		return longString(s, q+q+q)
	}
	var b strings.Builder
	for i := 1; i < len(s) && s[i] != '\n'; i++ {
		if s[i] == s[0] {
			return b.String(), i + 1, ""
		}
		c := s[i]
		if c == '\\' {
			i++
			if c = escapes[at(s, i)]; c == 0 {
				return "", 0, fmt.Sprintf(`the escape \%c is not read; want one of \" \' \\ \n \t`, at(s, i))
			}
		}
		b.WriteByte(c)
	}
	return "", 0, "the string that begins here does not end on its line"
}

// longString reads a string in three quotes.
func longString(s, quotes string) (out string, size int, problem string) {
	body, _, found := strings.Cut(s[3:], quotes)
	switch {
	case !found:
		return "", 0, "the string that begins here never ends"
	case strings.Contains(body, `\`):
		return "", 0, "a string in three quotes with a backslash is not read; write it in one"
	}
	return body, len(body) + 6, ""
}

var escapes = map[byte]byte{'"': '"', '\'': '\'', '\\': '\\', 'n': '\n', 't': '\t'}

// at is a byte of s, or 0 behind its end.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
