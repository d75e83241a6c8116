package grammar

import (
	"path"
	"strings"
)

// glob takes a pattern of names whose files a search reads (grep --include,
// rg -g, ag -G). Unlike the shell's, its wildcards match a leading dot.
func (m *match) glob(w Word) error {
	if w.Vague != "" || len(w.Unset) > 0 {
		return unproven("which names ", m.label, " reads is not known")
	}
	if strings.HasPrefix(w.Text, "!") {
		return nil // names that it leaves out
	}
	text := w.Text
	if strings.ContainsAny(text, `\$^`) {
		text = unregex(text)
	}
	m.patterns(text)
	return nil
}

// patterns claims to read what a pattern that matches leading dots finds.
func (m *match) patterns(pattern string) {
	for _, p := range alternativesOf(path.Base(pattern)) {
		m.claim(Read, Word{Text: p, Glob: strings.ContainsAny(p, "*?[")})
		if rest := strings.TrimLeft(p, "*"); rest != p && rest != "" {
			m.claim(Read, Word{Text: ".*" + rest, Glob: true})
			if rest[0] == '.' {
				m.claim(Read, Word{Text: rest, Glob: strings.ContainsAny(rest, "*?[")})
			}
		}
	}
}

// alternativesOf expands the first braces of a pattern.
func alternativesOf(pattern string) []string {
	before, rest, open := strings.Cut(pattern, "{")
	inner, after, closed := strings.Cut(rest, "}")
	if !open || !closed {
		return []string{pattern}
	}
	var out []string
	for a := range strings.SplitSeq(inner, ",") {
		out = append(out, before+a+after)
	}
	return out
}

// pathspec claims what git reads by a word that is more than a path: a
// pattern, magic (:/x, :(icase)x) or a revision's file (HEAD:x), see
// gitglossary(7) and gitrevisions(7).
func (m *match) pathspec(w Word) {
	text := w.Text
	switch magic, rest, ok := strings.Cut(text, ")"); {
	case strings.HasPrefix(text, ":!"), strings.HasPrefix(text, ":^"), ok && strings.HasPrefix(magic, ":(") && strings.Contains(magic, "exclude"):
		return // what is left out
	case ok && strings.HasPrefix(magic, ":("):
		text = rest
	case strings.HasPrefix(text, ":"):
		text = strings.TrimLeft(text, ":/0123")
	default:
		if _, file, has := strings.Cut(text, ":"); has {
			text = file
		}
	}
	switch {
	case text == "" || text == "." || text == w.Text && !strings.ContainsAny(text, "*?["):
	case strings.ContainsAny(text, "*?["):
		m.patterns(text)
	default:
		m.claim(Read, Word{Text: text})
	}
}

// lines takes git log's -L START,END:FILE and :FUNCTION:FILE.
func (m *match) lines(w Word) error {
	i := strings.LastIndexByte(w.Text, ':')
	if !w.Literal() || i < 0 {
		return unproven(quote(w.Text), " names no file for ", m.label)
	}
	m.claim(Read, Word{Text: w.Text[i+1:]})
	return nil
}

// gitSecrets are parts of keys whose values can be secrets.
var gitSecrets = []string{"extraheader", "token", "pass", "secret", "cookie", "proxy", "credential", "apikey", "api-key"}

// gitKey accepts a key of git's configuration that holds no secret.
func gitKey(s string) bool {
	lower := strings.ToLower(s)
	for _, part := range gitSecrets {
		if strings.Contains(lower, part) {
			return false
		}
	}
	return !strings.HasPrefix(s, "-")
}

// places are names that repositories give to directories and files and hardly
// ever to branches.
var places = NewWordSet("src lib libs internal cmd pkg app apps docs doc test tests spec include scripts bin web frontend backend server client api config configs public assets packages " +
	"vendor node_modules examples tools Makefile makefile Dockerfile LICENSE README CHANGELOG Gemfile Rakefile Jenkinsfile Procfile Justfile justfile CODEOWNERS NOTICE Cargo.lock")

// branch accepts a revision that can't be taken for a path: git checkout PATH
// throws away what was changed there.
func (m *match) branch(w Word) error {
	s := w.Text
	last := path.Base(s)
	i := strings.LastIndexByte(last, '.')
	file := i >= 0 && i+1 < len(last) && strings.ToLower(last[i+1:i+2]) != strings.ToUpper(last[i+1:i+2])
	if file || s == ".." || strings.HasPrefix(last, ".") && s != "." || strings.HasSuffix(s, "/") || strings.ContainsAny(s, "*?[:") || places.Has(s) {
		return unproven(quote(s), " can be a path, and what was changed there would be lost; git switch takes branches only")
	}
	return m.ref(w)
}

// here accepts a path of the workspace that is taken for no host of another
// source: github.com/owner/repo.
func (m *match) here(w Word) error {
	first, _, more := strings.Cut(w.Text, "/")
	if more && strings.Contains(strings.TrimLeft(first, "."), ".") {
		return unproven(quote(w.Text), " could be of another host; write ./", w.Text)
	}
	return m.arg(w)
}

// ident accepts names without a path or an ending: formats (markdown+smart).
func ident(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_+-", c))
	}) && s[0] != '-'
}
