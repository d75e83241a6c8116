package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fields expands a word to the words that it becomes, in the order of bash(1),
// EXPANSION, and appends them to dst.
func (r *reader) fields(dst []Word, w *syntax.Word, st *state) []Word {
	if text, ok := certain(w); ok {
		return r.checked(append(dst, Word{Text: text}), len(dst), w)
	}
	first := len(dst)
	if r.context.Shell == Bash && braced(w) {
		split := &syntax.Word{Parts: slices.Clone(w.Parts)}
		if syntax.SplitBraces(split) {
			for _, one := range r.braces(split, w) {
				dst = r.split(dst, one, st, false)
			}
			return r.checked(dst, first, w)
		}
	}
	return r.checked(r.split(dst, w, st, r.context.Shell == Bash), first, w)
}

// certain is the text of a word in which nothing is expanded: plain, or quoted as a whole.
func certain(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, !strings.ContainsAny(p.Value, "\\*?[~{")
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 && !p.Dollar {
			if lit, ok := p.Parts[0].(*syntax.Lit); ok {
				return unquoteDouble(lit.Value), true
			}
		}
	}
	return "", false
}

// checked refuses words that look like another host.
func (r *reader) checked(words []Word, first int, w *syntax.Word) []Word {
	for _, word := range words[first:] {
		if homoglyph(word.Text) {
			r.opaque("letters of another script in an address", w)
		}
	}
	return words
}

// split expands a word without braces; assigns says that ~ after = is a home
// directory.
func (r *reader) split(dst []Word, w *syntax.Word, st *state, assigns bool) []Word {
	b := builder{r: r, st: st, fields: dst, splits: true}
	b.tilde(w, assigns)
	b.parts(w.Parts, false)
	b.finish()
	return b.fields
}

// single expands a word that is not split, and in which no pattern finds
// names: of an assignment, a here-string, a case.
func (r *reader) single(w *syntax.Word, st *state) Word {
	b := builder{r: r, st: st}
	b.tilde(w, false)
	b.parts(w.Parts, false)
	return r.checked([]Word{b.word()}, 0, w)[0]
}

// A builder puts the words together that one word becomes.
type builder struct {
	r      *reader
	st     *state
	fields []Word
	splits bool // unquoted values are split, and patterns find names

	text    []byte
	pattern []byte // text with what is not special in it escaped
	glob    bool
	bracket bool   // an unquoted [ came
	quoted  bool   // it is a word even when it is empty
	homes   int    // bytes of the first literal that a tilde took
	tail    string // text behind something that is not known
	partial Word
}

func (b *builder) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		b.part(p, quoted, i == 0)
	}
}

func (b *builder) part(p syntax.WordPart, quoted, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		switch {
		case quoted:
			b.literal(unquoteDouble(p.Value))
		case first:
			b.bare(p.Value[b.homes:])
		default:
			b.bare(p.Value)
		}
	case *syntax.SglQuoted:
		b.quoted = true
		text, ok := p.Value, true
		if p.Dollar {
			text, ok = ansi(p.Value)
		}
		if !ok {
			b.r.opaque("a quoted text with characters that shells read differently", p)
		}
		b.literal(text)
	case *syntax.DblQuoted:
		b.double(p)
	case *syntax.ParamExp:
		b.param(p, quoted)
	case *syntax.CmdSubst:
		b.r.fork("$(…)", p, p.Stmts, *b.st)
		b.unknown("output of a command", !quoted, nil)
	case *syntax.ArithmExp:
		if !b.r.arithm(p.X, b.st) {
			b.r.opaque("arithmetic can run what the values in it say", p)
		}
		b.unknown(number, false, nil)
	case *syntax.ProcSubst:
		b.r.fork(p.Op.String()+"…)", p, p.Stmts, *b.st)
		b.unknown("a process's output or input", false, []string{"/dev/fd"})
	case *syntax.ExtGlob:
		b.glob = b.splits
		b.pattern = append(b.pattern, p.Op.String()+p.Pattern.Value+")"...)
		b.text = append(b.text, p.Op.String()+p.Pattern.Value+")"...)
	}
}

func (b *builder) double(p *syntax.DblQuoted) {
	if !(len(p.Parts) == 1 && isAt(p.Parts[0])) {
		b.quoted = true // "$@" alone can be no word at all
	}
	b.parts(p.Parts, true)
}

// late takes text behind something that is not known: it is no part of what
// is known of the word, but could leave the directory that is.
func (b *builder) late(s string) bool {
	if b.partial.Vague == "" {
		return false
	}
	b.tail += s
	if b.partial.Vague == number && s != "" {
		b.partial.Vague = "a number and more"
	}
	return true
}

// literal adds text that is only itself.
func (b *builder) literal(s string) {
	if b.late(s) {
		return
	}
	b.text = append(b.text, s...)
	for i := range len(s) {
		if strings.IndexByte(`*?[\`, s[i]) >= 0 {
			b.pattern = append(b.pattern, '\\')
		}
		b.pattern = append(b.pattern, s[i])
	}
}

// bare adds unquoted text as it is written.
func (b *builder) bare(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] != '\n' {
				b.literal(s[i : i+1])
			}
			continue
		}
		b.char(s[i])
	}
}

// char adds one unquoted byte, which may be special in a pattern.
func (b *builder) char(c byte) {
	if b.late(string(c)) {
		b.partial.Split = b.partial.Split || b.splits && strings.IndexByte("*?[", c) >= 0
		return
	}
	switch c {
	case '*', '?':
		b.glob = b.glob || b.splits
	case '[':
		b.bracket = b.splits
	case ']':
		b.glob = b.glob || b.bracket
	}
	b.text = append(b.text, c)
	b.pattern = append(b.pattern, c)
}

// unknown adds something that is not known.
func (b *builder) unknown(why string, splits bool, below []string) {
	if len(b.text) == 0 && b.partial.Vague == "" {
		b.partial.Below = below
	}
	switch b.partial.Vague {
	case "":
		b.partial.Vague = why
	case number:
		b.partial.Vague = "a number and more"
	}
	b.partial.Split = b.partial.Split || splits && b.splits
}

// unset adds a variable that nothing sets.
func (b *builder) unset(name string, quoted bool) {
	if !slices.Contains(b.partial.Unset, name) {
		b.partial.Unset = append(b.partial.Unset, name)
	}
	b.partial.Split = b.partial.Split || !quoted && b.splits
}

// add adds the value of a variable.
func (b *builder) add(w Word, quoted bool) {
	for _, name := range w.Unset {
		b.unset(name, quoted)
	}
	switch {
	case w.Glob && !quoted && b.splits:
		b.unknown("names that match "+w.Text+", split at white space", true, nil)
	case w.Glob && b.late(w.Text):
	case w.Glob:
		b.glob = true
		b.text, b.pattern = append(b.text, w.Text...), append(b.pattern, w.Text...)
	case quoted || !b.splits:
		b.quoted = b.quoted || quoted
		b.literal(w.Text)
	default:
		b.unquotedText(w.Text)
	}
	if w.Vague != "" {
		b.unknown(w.Vague, !quoted && w.Vague != number, w.Below)
	}
}

// unquotedText adds a known value, which is split at white space, and in which
// patterns are special.
func (b *builder) unquotedText(s string) {
	for i := range len(s) {
		if strings.IndexByte(" \t\n", s[i]) >= 0 {
			b.next()
			continue
		}
		if s[i] == '\\' { // dash takes what follows for quoted twice: in u='\'; $u\* the star is a pattern
			b.unknown("a value with a backslash, which shells read differently", true, nil)
			continue
		}
		b.char(s[i])
	}
}

// next ends a word if one has begun.
func (b *builder) next() {
	b.finish()
	*b = builder{r: b.r, st: b.st, fields: b.fields, splits: b.splits}
}

func (b *builder) finish() {
	if len(b.text) > 0 || b.quoted || b.partial.Vague != "" || len(b.partial.Unset) > 0 {
		b.fields = append(b.fields, b.word())
	}
}

func (b *builder) word() Word {
	w := b.partial
	switch {
	case w.Vague != "" && (b.glob || b.bracket || w.Split):
		w.Split = true // of several words, nothing is known
	case b.glob:
		w.Glob, w.Text = true, string(b.pattern)
	default:
		w.Text = string(b.text)
	}
	if w.Below != nil && strings.Contains(b.tail, "..") {
		w.Below = nil
	}
	return w
}

// tilde expands a leading ~, that of a value, and in bash that of a word that
// looks like an assignment.
func (b *builder) tilde(w *syntax.Word, assigns bool) {
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return
	}
	s, skip := lit.Value, 0
	if assigns {
		if name, _, ok := strings.Cut(s, "="); ok && plainName(strings.TrimSuffix(name, "+")) {
			skip = len(name) + 1
		}
	}
	if (skip > 0 || !b.splits) && strings.Contains(s, ":~") {
		b.unknown("a list with home directories", false, nil)
		return
	}
	if skip == len(s) || s[skip] != '~' {
		return
	}
	name, _, slash := strings.Cut(s[skip:], "/")
	b.homes = skip + len(name)
	b.literal(s[:skip])
	switch home, ok := b.r.home(b.st); {
	case !slash && len(w.Parts) > 1, strings.ContainsAny(name, "\\:"):
		b.homes = 0 // ~"x" and the like
		b.text, b.pattern = nil, nil
		b.unknown("a home directory", false, nil)
	case name == "~" && ok:
		b.literal(home)
	default:
		b.unknown("a home directory", false, nil)
	}
}

func isAt(p syntax.WordPart) bool {
	e, ok := p.(*syntax.ParamExp)
	if !ok || e.Param == nil {
		return false
	}
	index, indexed := e.Index.(*syntax.Word)
	return e.Param.Value == "@" || indexed && index.Lit() == "@"
}
