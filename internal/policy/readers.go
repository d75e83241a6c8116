package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/shell"
)

// A reader is one form of a program that only looks: the list in data/readers.txt is
// closed. A command whose words one form accounts for completely is a reader's;
// every other may do anything.
type reader struct {
	subs     []string
	letters  string            // one-letter flags without a value
	valued   string            // one-letter flags with one
	long     map[string]string // other flags: "" without a value, "=" with, "[=" with one that is attached
	gives    []string          // flags that say what the first operand would
	number   bool              // -20
	needs    []string          // one of these flags must be there
	operands []string
}

// readers are the forms by their programs' names.
var readers = sync.OnceValue(func() map[string][]*reader { return must(parseReaders("readers.txt", readersText)) })

// parseReaders reads NAME[,NAME] [SUBCOMMAND] | FLAGS | OPERANDS, and @NAME | FLAGS for
// flags that several forms have.
func parseReaders(file, data string) (map[string][]*reader, error) {
	out, shared := map[string][]*reader{}, map[string]string{}
	for e := range entries(file, data) {
		var names, flags, operands string
		if !e.cut(&names, &flags, &operands) || !e.ended {
			return nil, e.errorf("want NAMES | FLAGS | OPERANDS")
		}
		if names[0] == '@' {
			shared[names] += " " + flags
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			r, err := parseReader(&e, flags, operands, shared)
			if err != nil {
				return nil, err
			}
			words := strings.Fields(name)
			r.subs, out[words[0]] = words[1:], append(out[words[0]], r)
		}
	}
	return out, nil
}

func parseReader(e *entry, flags, operands string, shared map[string]string) (*reader, error) {
	r := &reader{long: map[string]string{}}
	for f := range strings.FieldsSeq(flags) {
		if !r.flag(f, shared) {
			return nil, e.errorf("unknown flag %q; want -[abc], -n=, -NUM, --long, --long=, --long[=], =word or @NAME", f)
		}
	}
	if operands != "-" {
		r.operands = strings.Fields(operands)
	}
	for _, o := range r.operands {
		if !operandTypes[strings.TrimRight(o, "*?")] {
			return nil, e.errorf("unknown operand %q", o)
		}
	}
	return r, nil
}

// operandTypes are what an operand can be. NAME is a path that is looked at, PATH one
// that is read, TREE one of which everything below is read, TEXT a word that names
// nothing, REV a revision of git or a path in it, SPEC a path behind "--", PLUS a word
// that begins with "+", NUM a number, LINES what sed prints, FILTER jq's, ANY a word of any kind, CMD and SCRIPT what is judged
// by itself.
var operandTypes = map[string]bool{"NAME": true, "PATH": true, "TREE": true, "TEXT": true, "REV": true, "SPEC": true, "ANY": true, "CMD": true, "SCRIPT": true,
	"PLUS": true, "NUM": true, "LINES": true, "FILTER": true}

func (r *reader) flag(f string, shared map[string]string) bool {
	name, gives := strings.CutSuffix(f, "!")
	if gives && f[0] == '-' {
		r.gives = append(r.gives, strings.TrimSuffix(name, "="))
	}
	switch body, bundle := strings.CutPrefix(name, "-["); {
	case f == "-":
	case f[0] == '=': // a word that is no flag by its look
		r.long[f[1:]] = ""
	case f == "-NUM":
		r.number = true
	case f[0] == '@':
		ok := shared[f] != ""
		for s := range strings.FieldsSeq(shared[f]) {
			ok = r.flag(s, shared) && ok
		}
		return ok
	case f[0] == '+':
		r.needs = append(r.needs, f[1:])
		return r.flag(f[1:], shared)
	case bundle && strings.HasSuffix(body, "]"):
		r.letters += strings.TrimSuffix(body, "]")
	case len(name) == 3 && name[0] == '-' && name[2] == '=':
		r.valued += name[1:2]
	case strings.HasSuffix(name, "[=]"):
		r.long[strings.TrimSuffix(name, "[=]")] = "[="
	case strings.HasSuffix(name, "="):
		r.long[strings.TrimSuffix(name, "=")] = "="
	case len(name) > 1 && name[0] == '-':
		r.long[name] = ""
	default:
		return false
	}
	return true
}

// A reading form's match says what is read, and whether the last words are a command of
// its own, which is judged by itself.
type read struct {
	found []finding
	runs  bool
}

// A finding is what a reader's command reads.
type finding struct {
	verb verb
	word shell.Word
}

// readerOf finds the form that accounts for a command, and what it reads.
func readerOf(words []shell.Word) (read, bool) {
	switch words[0].Text {
	case "test", "[":
		return read{}, tests(words)
	case "git":
		words = withoutGlobals(words)
	}
	for _, r := range readers()[words[0].Text] {
		if found, ok := r.match(words[1:]); ok {
			return found, true
		}
	}
	return read{}, false
}

// A match is a form on its way through the words.
type match struct {
	*reader
	read
	seen  []string // flags, where some are needed
	left  []string // operands that may follow
	ended bool     // "--" was there
}

func (r *reader) match(words []shell.Word) (read, bool) {
	for _, sub := range r.subs {
		if len(words) == 0 || !words[0].Literal() || words[0].Text != sub {
			return read{}, false
		}
		words = words[1:]
	}
	m := match{reader: r, left: r.operands}
	for len(words) > 0 {
		n := m.next(words)
		if n == 0 {
			return read{}, false
		}
		words = words[n:]
	}
	for _, o := range m.left {
		if !strings.HasSuffix(o, "*") && !strings.HasSuffix(o, "?") {
			return read{}, false
		}
	}
	return m.read, len(r.needs) == 0 || slices.ContainsFunc(r.needs, func(f string) bool { return slices.Contains(m.seen, f) })
}

// next takes one flag with its value, or one operand, and returns how many words
// that were; 0 says that the form does not account for it.
func (m *match) next(words []shell.Word) int {
	w := words[0]
	_, known := m.long[w.Text]
	switch {
	case len(m.left) > 0 && m.left[0] == "ANY*":
		return 1
	case known && w.Literal() && !m.ended:
		return m.option(words)
	case m.ended || w.Literal() && (w.Text == "-" || !strings.HasPrefix(w.Text, "-")), !w.Literal():
		return m.operand(words)
	case w.Text == "--":
		m.ended = true
		return 1
	}
	return m.option(words)
}

// option takes a flag.
func (m *match) option(words []shell.Word) int {
	t := words[0].Text
	name, _, attached := strings.Cut(t, "=")
	if kind, ok := m.long[name]; ok {
		m.saw(name)
		switch {
		case attached:
			return number(kind != "" && m.pattern(name, t[len(name)+1:]))
		case kind == "=":
			return m.value(name, words)
		}
		return 1
	}
	if m.number && strings.Trim(t[1:], "0123456789") == "" {
		return 1
	}
	if t[1] == '-' {
		return 0
	}
	for i := 1; i < len(t); i++ {
		m.saw("-" + t[i:i+1])
		switch {
		case strings.IndexByte(m.letters, t[i]) >= 0:
		case strings.IndexByte(m.valued, t[i]) < 0:
			return 0
		case i+1 < len(t):
			return number(m.pattern("-"+t[i:i+1], t[i+1:]))
		default:
			return m.value("-"+t[i:i+1], words)
		}
	}
	return 1
}

func number(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// value takes a flag and the word behind it, which must be known.
func (m *match) value(flag string, words []shell.Word) int {
	if len(words) < 2 || !words[1].Literal() || !m.pattern(flag, words[1].Text) {
		return 0
	}
	return 2
}

// pattern takes the value of a flag that chooses files by their names, as what is read.
func (m *match) pattern(flag, value string) bool {
	switch flag {
	case "-g", "--glob", "--iglob", "--include":
		m.finds(reads, shell.Word{Text: value, Glob: strings.ContainsAny(value, wildcards)})
		return !secretive(value)
	}
	return true
}

// secretive reports whether a pattern that matches names with a leading dot could mean
// .env and its kin.
func secretive(pattern string) bool {
	return strings.ContainsAny(pattern, wildcards) && strings.Contains(strings.ToLower(pattern), "env") || strings.HasPrefix(pattern, ".*") || pattern == "*"
}

// saw notes a flag, which may stand for the first operand.
func (m *match) saw(flag string) {
	if len(m.needs) > 0 {
		m.seen = append(m.seen, flag)
	}
	if slices.Contains(m.gives, flag) && len(m.left) == len(m.operands) && len(m.left) > 0 {
		m.left = m.left[1:]
	}
}

// operand takes a word that is no flag.
func (m *match) operand(words []shell.Word) int {
	for len(m.left) > 0 {
		kind := strings.TrimRight(m.left[0], "*?")
		many := strings.HasSuffix(m.left[0], "*")
		if kind == "CMD" {
			m.left, m.runs = nil, true
			return len(words) * number(words[0].Literal())
		}
		if m.takes(kind, words[0]) {
			if !many {
				m.left = m.left[1:]
			}
			return 1
		}
		if !many && !strings.HasSuffix(m.left[0], "?") {
			return 0
		}
		m.left = m.left[1:]
	}
	return 0
}

// takes reports whether a word can be an operand of a kind. A pattern can't stand
// for a name that is a flag: it begins with what no flag begins with.
func (m *match) takes(kind string, w shell.Word) bool {
	if w.Vague != "" || len(w.Unset) > 0 || w.Glob && !m.ended && strings.IndexByte("*?[-", w.Text[0]) >= 0 {
		return false
	}
	switch kind {
	case "SCRIPT":
		m.runs = true
		return !w.Glob
	case "TEXT":
		return !w.Glob
	case "LINES":
		return !w.Glob && w.Text != "" && strings.Trim(w.Text, "0123456789,$p; ") == ""
	case "PLUS":
		return !w.Glob && strings.HasPrefix(w.Text, "+")
	case "NUM":
		return !w.Glob && w.Text != "" && len(w.Text) < 7 && strings.Trim(w.Text, "0123456789.") == ""
	case "FILTER":
		return !w.Glob && !strings.Contains(strings.ToLower(w.Text), "env") && !strings.Contains(w.Text, "import") && !strings.Contains(w.Text, "input_") && !strings.Contains(w.Text, "include")
	case "REV":
		if w.Glob || m.ended || strings.Trim(w.Text, revision) != "" {
			return false
		}
		w.Text = w.Text[strings.LastIndexByte(w.Text, ':')+1:]
		m.finds(reads, w)
	case "SPEC":
		if !m.ended || w.Glob || strings.ContainsAny(w.Text, ":\\") {
			return false
		}
		if w.Glob = strings.ContainsAny(w.Text, wildcards); secretive(w.Text) {
			return false
		}
		m.finds(reads, w)
	case "NAME":
		m.finds(looks, w)
	case "PATH":
		m.finds(reads, w)
	case "TREE":
		m.finds(readsBelow, w)
	}
	return true
}

// revision are the letters of a revision, also of one with a path in it.
const revision = ":abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./~^@{}-"

func (m *match) finds(v verb, w shell.Word) {
	if w.Text != "-" {
		m.found = append(m.found, finding{v, w})
	}
}

// withoutGlobals takes the flags before git's subcommand off that change nothing but
// where and how it looks.
func withoutGlobals(words []shell.Word) []shell.Word {
	for len(words) > 2 && words[1].Literal() {
		switch words[1].Text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
			words = append([]shell.Word{words[0]}, words[2:]...)
		case "-C":
			if !words[2].Literal() || strings.HasPrefix(words[2].Text, "-") {
				return words
			}
			words = append([]shell.Word{words[0]}, words[3:]...)
		default:
			return words
		}
	}
	return words
}

// tests reports whether test(1) only compares: -v and -R evaluate the names that they
// are given, and some shells what stands beside -eq.
func tests(words []shell.Word) bool {
	for i, w := range words[1:] {
		if w.Split && w.Vague != "" || w.Glob {
			return false
		}
		numeric := slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, w.Text)
		if w.Text == "-v" || w.Text == "-R" || numeric && !(i+2 < len(words) && digits(words[i]) && digits(words[i+2])) {
			return false
		}
	}
	return words[0].Text == "test" || words[len(words)-1].Text == "]"
}

func digits(w shell.Word) bool {
	return w.Literal() && w.Text != "" && strings.Trim(w.Text, "0123456789") == ""
}
