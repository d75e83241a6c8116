package grammar

import "strings"

// sed accepts a script that prints, deletes, replaces and branches. What it
// reads with r is claimed. It refuses e, w, W, R, F to a file, s///e, s///w
// and whatever it does not understand.
func (m *match) sed(script string) error {
	p := sedParser{rest: script, m: m}
	if !p.script() {
		return unproven("the sed script ", quote(script), " can do more than print")
	}
	return nil
}

type sedParser struct {
	rest  string
	depth int
	m     *match
}

func (p *sedParser) script() bool {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\n;")
		if p.rest == "" {
			return p.depth == 0
		}
		if !p.command() {
			return false
		}
	}
}

// command takes one command with its addresses.
func (p *sedParser) command() bool {
	if !p.addresses() || p.rest == "" {
		return false
	}
	c := p.next()
	switch c {
	case '{':
		p.depth++
		return true
	case '}':
		p.depth--
		return p.depth >= 0 && p.end()
	case 's':
		return p.substitute()
	case 'y':
		d := p.next()
		return d != 0 && p.delimited(d) && p.delimited(d) && p.end()
	case 'a', 'i', 'c':
		return p.text()
	case 'b', 't', 'T', ':':
		return p.label()
	case 'r':
		return p.readFile()
	case '#':
		_, p.rest, _ = strings.Cut(p.rest, "\n")
		return true
	case 'q', 'Q', 'l', 'L':
		p.rest = strings.TrimLeft(p.rest, " 0123456789")
		return p.end()
	}
	return strings.IndexByte("pPdDnNgGhHx=zF", c) >= 0 && p.end()
}

// next takes one byte; 0 at the end.
func (p *sedParser) next() byte {
	if p.rest == "" {
		return 0
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

// end accepts what may follow a command.
func (p *sedParser) end() bool {
	p.rest = strings.TrimLeft(p.rest, " \t")
	return p.rest == "" || strings.IndexByte(";\n}#", p.rest[0]) >= 0
}

// addresses takes none, one or two addresses and the negation.
func (p *sedParser) addresses() bool {
	for n := 0; n < 2; n++ {
		found, ok := p.address(n > 0)
		if !ok {
			return false
		}
		p.rest = strings.TrimLeft(p.rest, " \t")
		if !found || !strings.HasPrefix(p.rest, ",") {
			break
		}
		if n == 1 {
			return false
		}
		p.rest = strings.TrimLeft(p.rest[1:], " \t")
	}
	p.rest = strings.TrimLeft(p.rest, " \t!")
	return true
}

func (p *sedParser) address(second bool) (found, ok bool) {
	if p.rest == "" {
		return false, !second
	}
	switch c := p.rest[0]; {
	case c == '$':
		p.rest = p.rest[1:]
	case c >= '0' && c <= '9' || second && (c == '+' || c == '~'):
		p.rest = strings.TrimLeft(p.rest[1:], "0123456789~")
	case c == '/':
		p.rest = p.rest[1:]
		return true, p.pattern('/')
	case c == '\\' && len(p.rest) > 1:
		d := p.rest[1]
		p.rest = p.rest[2:]
		return true, p.pattern(d)
	default:
		return false, !second
	}
	return true, true
}

// pattern takes a regular expression and its flags.
func (p *sedParser) pattern(d byte) bool {
	if !p.delimited(d) {
		return false
	}
	p.rest = strings.TrimLeft(p.rest, "IM")
	return true
}

// delimited takes everything up to an unescaped d. In a bracket expression d
// is literal for some seds and not for others: that is refused.
func (p *sedParser) delimited(d byte) bool {
	if d == '\n' || d == '\\' {
		return false
	}
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case '\\':
			i++
		case d:
			p.rest = p.rest[i+1:]
			return true
		case '[':
			n := bracket(p.rest[i:], d)
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return false
}

// bracket returns the length of the bracket expression that s begins with, or
// 0 if it has no end, or holds an end of the whole expression or something
// that only some programs read as part of it.
func bracket(s string, end byte) int {
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++ // literal
	}
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] == '\n' {
				return 0
			}
		case end, '\n':
			return 0
		case ']':
			return i + 1
		case '[':
			n := classes(s[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// classes returns the length of what begins with an inner "[": [:alpha:], or
// the one character.
func classes(s string) int {
	if len(s) > 1 && strings.IndexByte(".=", s[1]) >= 0 {
		return 0
	}
	name, ok := strings.CutPrefix(s, "[:")
	if !ok {
		return 1
	}
	name, _, ok = strings.Cut(name, ":]")
	if !ok || !letters(name) {
		return 0
	}
	return len(name) + len("[::]")
}

// substitute takes the rest of s///flags.
func (p *sedParser) substitute() bool {
	d := p.next()
	if d == 0 || !p.delimited(d) || !p.replacement(d) {
		return false
	}
	p.rest = strings.TrimLeft(p.rest, "gpiIM0123456789")
	return p.end()
}

// replacement takes the text up to d; a bracket means nothing in it.
func (p *sedParser) replacement(d byte) bool {
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case d:
			p.rest = p.rest[i+1:]
			return true
		}
	}
	return false
}

// text takes the text of a, i and c: to the end of the line, and further
// while lines end in a backslash. Lines that end in two are refused: whether
// the text goes on depends on where it began.
func (p *sedParser) text() bool {
	for {
		line, rest, more := strings.Cut(p.rest, "\n")
		p.rest = rest
		switch {
		case !more:
			return p.depth == 0
		case strings.HasSuffix(line, `\\`):
			return false
		case !strings.HasSuffix(line, `\`):
			return true
		}
	}
}

// label takes a branch's label, which GNU sed ends at a semicolon or newline.
func (p *sedParser) label() bool {
	i := strings.IndexAny(p.rest, ";\n")
	if i < 0 {
		i = len(p.rest)
	}
	name := strings.TrimRight(strings.TrimLeft(p.rest[:i], " \t"), " \t}")
	closes := strings.Count(p.rest[:i], "}")
	p.rest = p.rest[i:]
	p.depth -= closes
	return plainName(name) || name == ""
}

// readFile takes the name of a file, which is the rest of the line.
func (p *sedParser) readFile() bool {
	name, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	name = strings.TrimSpace(name)
	if name == "" {
		return false
	}
	p.m.claim(Read, Word{Text: name})
	return p.depth == 0
}
