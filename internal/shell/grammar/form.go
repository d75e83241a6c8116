package grammar

import (
	"slices"
	"strings"
	"sync"
)

// A node is a program or one of its subcommands.
type node struct {
	book     *book
	lines    []line // what is said of it, which ready reads
	children map[string]*node

	once   sync.Once
	broken error
	before flags // flags that may stand before the next subcommand
	forms  []*form
}

// A form is one way to use a program whose effect is known.
type form struct {
	effect   Effect
	flags    flags
	required [][]string // of each list one must be there
	operands []operand
	posix    bool // flags end at the first operand
}

// flags are what a form knows of flags.
type flags struct {
	known   map[string]flag // by "-n", "--lines" or "-race"
	number  bool            // -20
	lenient bool            // any other flag
}

type flag struct {
	refused  bool
	takes    bool // a value: attached or the next word
	optional bool // a value only if it is attached
	supplies bool // what the first operand would have said
	value    value
	second   *value // of a second word, for flags that take two (jq --arg NAME VALUE)
}

type operand struct {
	value value
	min   int
	many  bool
}

// A value is the type of a word.
type value struct {
	kind  string   // one of kinds
	words []string // for kind "word"
}

// kinds are the types of the data files.
var kinds = []string{
	"TEXT", "NUM", "NAME", "FILE", "TREE", "WRITE", "WTREE", "DELETE", "MOVE", "EXEC", "DIR", "ARG", "REF", "PKG",
	"HOST", "URL", "ASSIGN", "KV", "SED", "AWK", "JQ", "CODE", "CMD", "SCRIPT", "GITCONF", "OPTS", "PROG", "GOAL", "REMOTE", "KUBE", "NPM", "PLUS", "GOMOD", "FORGE",
	"GLOB", "LINES", "GITKEY", "BRANCH", "HERE", "IDENT", "COUNT", "ENVFILE",
}

// ready reads what is said of the node, once.
func (n *node) ready() error {
	n.once.Do(func() {
		for _, l := range n.lines {
			if n.broken = n.parse(l); n.broken != nil {
				return
			}
		}
		n.lines = nil
	})
	return n.broken
}

func (n *node) parse(l line) error {
	_, before, err := l.head()
	_, rest, _ := strings.Cut(l.whole(), ": ")
	if err == nil && before {
		return n.book.parseFlags(l, rest, &n.before, nil)
	}
	if err == nil {
		var f *form
		f, err = n.book.parseForm(l, rest)
		n.forms = append(n.forms, f)
	}
	return err
}

// check reads the node and all that is below it.
func (n *node) check() error {
	err := n.ready()
	for _, child := range n.children {
		if err == nil {
			err = child.check()
		}
	}
	return err
}

// below returns the nodes that a list of subcommand words, each with its
// alternatives, leads to. It makes those that are missing.
func (n *node) below(words []string) []*node {
	nodes := []*node{n}
	for _, word := range words {
		var next []*node
		for _, n := range nodes {
			if n.children == nil {
				n.children = map[string]*node{}
			}
			for name := range strings.SplitSeq(word, "|") {
				if n.children[name] == nil {
					n.children[name] = &node{book: n.book}
				}
				next = append(next, n.children[name])
			}
		}
		nodes = next
	}
	return nodes
}

func (b *book) parseForm(l line, text string) (*form, error) {
	parts := strings.SplitN(text, ";", 3)
	if len(parts) != 3 {
		return nil, l.errorf("want EFFECT; FLAGS; OPERANDS")
	}
	effect, ok := parseEffect(strings.TrimSpace(parts[0]))
	if !ok {
		return nil, l.errorf("unknown effect %q; want one of %q", strings.TrimSpace(parts[0]), effectNames[1:])
	}
	f := &form{effect: effect}
	if err := b.parseFlags(l, parts[1], &f.flags, f); err != nil {
		return nil, err
	}
	return f, f.parseOperands(l, strings.Fields(parts[2]))
}

// parseFlags reads the tokens of FLAGS. A value's type is the token after its
// flag. f is nil for flags before a subcommand, which can't be required.
func (b *book) parseFlags(l line, text string, into *flags, f *form) error {
	if into.known == nil {
		into.known = map[string]flag{}
	}
	tokens := strings.Fields(text)
	for len(tokens) > 0 {
		token := tokens[0]
		tokens = tokens[1:]
		if strings.HasPrefix(token, "@") {
			set, err := b.set(l, token)
			if err == nil {
				err = b.parseFlags(l, set, into, f)
			}
			if err != nil {
				return err
			}
			continue
		}
		n, err := parseFlag(l, token, tokens, into, f)
		if err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	return nil
}

// parseFlag reads one token and, if it takes a value, the type after it. It
// returns how many of the following tokens it used.
func parseFlag(l line, token string, next []string, into *flags, f *form) (used int, err error) {
	switch {
	case token == "-": // none
		return 0, nil
	case token == "*":
		into.lenient = true
		return 0, nil
	case token == "-NUM":
		into.number = true
		return 0, nil
	case strings.HasPrefix(token, "-[") && strings.HasSuffix(token, "]"):
		for _, c := range token[2 : len(token)-1] {
			into.known["-"+string(c)] = flag{}
		}
		return 0, nil
	}
	required := strings.HasPrefix(token, "=")
	token = strings.TrimPrefix(token, "=")
	var fl flag
	if name, ok := strings.CutPrefix(token, "!"); ok {
		token, fl.refused = name, true
	}
	if len(next) > 0 && !fl.refused && isValue(next[0]) {
		first, second, two := strings.Cut(strings.TrimSuffix(next[0], "!"), "&")
		if fl.value, err = parseValue(l, first); err != nil {
			return 0, err
		}
		if two {
			v, err := parseValue(l, second)
			if err != nil {
				return 0, err
			}
			fl.second = &v
		}
		fl.takes, fl.supplies, used = true, strings.HasSuffix(next[0], "!"), 1
	}
	names := alternatives(token)
	for i, name := range names {
		one := fl
		if names[i], err = one.optionalValue(l, name); err != nil {
			return 0, err
		}
		into.known[names[i]] = one
	}
	if required {
		if f == nil {
			return 0, l.errorf("a flag before a subcommand can't be required")
		}
		f.required = append(f.required, names)
	}
	return used, nil
}

// alternatives splits a token at the bars that stand outside of brackets.
func alternatives(token string) (out []string) {
	depth, from := 0, 0
	for i, c := range token {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '|' && depth == 0:
			out = append(out, token[from:i])
			from = i + 1
		}
	}
	return append(out, token[from:])
}

// optionalValue cuts [TYPE] or [=TYPE] off a flag's name.
func (fl *flag) optionalValue(l line, name string) (string, error) {
	name, t, has := strings.Cut(name, "[")
	if has {
		var err error
		if fl.value, err = parseValue(l, strings.TrimSuffix(strings.TrimPrefix(t, "="), "]")); err != nil {
			return "", err
		}
		fl.optional = true
	}
	if !strings.HasPrefix(name, "-") || len(name) < 2 || strings.ContainsAny(name, "]=!") {
		return "", l.errorf("%q is no flag", name)
	}
	return name, nil
}

// isValue reports whether a token is a type rather than the next flag.
func isValue(token string) bool {
	return token[0] == '{' || token[0] >= 'A' && token[0] <= 'Z'
}

func parseValue(l line, token string) (value, error) {
	if words, ok := strings.CutPrefix(token, "{"); ok && strings.HasSuffix(words, "}") {
		return value{"word", strings.Split(strings.TrimSuffix(words, "}"), "|")}, nil
	}
	if !slices.Contains(kinds, token) {
		return value{}, l.errorf("unknown type %q; want one of %q or {a|b}", token, kinds)
	}
	return value{kind: token}, nil
}

func (f *form) parseOperands(l line, tokens []string) error {
	for i, token := range tokens {
		switch {
		case token == "-" && len(tokens) == 1:
			return nil
		case token == "^" && i == 0:
			f.posix = true
			continue
		}
		o, err := parseOperand(l, token)
		if err != nil {
			return err
		}
		if o.value.kind == "CMD" {
			if i != len(tokens)-1 {
				return l.errorf("CMD must be the last operand")
			}
			f.posix = true
		}
		f.operands = append(f.operands, o)
	}
	return nil
}

func parseOperand(l line, token string) (o operand, err error) {
	o.min = 1
	switch {
	case strings.HasSuffix(token, "..."):
		o.min, o.many, token = 0, true, strings.TrimSuffix(token, "...")
	case strings.HasSuffix(token, "+"):
		o.many, token = true, strings.TrimSuffix(token, "+")
	case strings.HasPrefix(token, "[") && strings.HasSuffix(token, "]"):
		o.min, token = 0, token[1:len(token)-1]
	}
	if token == "" {
		return o, l.errorf("an operand has no type")
	}
	if c := token[0]; c >= 'A' && c <= 'Z' || c == '{' {
		o.value, err = parseValue(l, token)
		return o, err
	}
	o.value = value{"word", []string{token}}
	return o, nil
}
