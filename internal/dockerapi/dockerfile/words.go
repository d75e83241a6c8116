package dockerfile

import "strings"

// Bounds of what variables make of one instruction.
const (
	maxExpanded = 256 << 10 // bytes of all words
	maxWords    = 4096
)

// A lexer reads words with quotes and variables.
type lexer struct {
	of   *Instruction
	text string
	at   int
	get  func(string) string
	left int // bytes that all further words may have
}

// split reads words that spaces separate.
func (i *Instruction) split(text string, get func(string) string) ([]string, error) {
	l := &lexer{of: i, text: text, get: get, left: maxExpanded}
	var words []string
	for {
		for l.at < len(l.text) && strings.ContainsRune(" \t", rune(l.text[l.at])) {
			l.at++
		}
		if l.at == len(l.text) {
			return words, nil
		}
		if len(words) == maxWords {
			return nil, i.errorf("it has more than %d words", maxWords)
		}
		w, err := l.word(" \t")
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
}

// expand reads all of text as one word.
func (l *lexer) expand(text string) (string, error) {
	l.text, l.at = text, 0
	return l.word("")
}

// word reads until one of the characters in end, outside of quotes.
func (l *lexer) word(end string) (string, error) {
	var out strings.Builder
	quote := byte(0)
	for l.at < len(l.text) {
		c := l.text[l.at]
		if quote == 0 && strings.IndexByte(end, c) >= 0 {
			break
		}
		l.at++
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && quote != '\'' && l.at < len(l.text):
			next := l.text[l.at]
			l.at++
			if quote == '"' && next != '"' && next != '$' && next != '\\' {
				out.WriteByte(c)
			}
			out.WriteByte(next)
		case c == '$' && quote != '\'':
			value, err := l.variable()
			if err != nil {
				return "", err
			}
			out.WriteString(value)
		default:
			out.WriteByte(c)
		}
		if out.Len() > l.left {
			return "", l.of.errorf("its words have more than %d bytes", maxExpanded)
		}
	}
	if quote != 0 {
		return "", l.of.errorf("a quote is not closed")
	}
	l.left -= out.Len()
	return out.String(), nil
}

// variable reads what follows a dollar sign.
func (l *lexer) variable() (string, error) {
	if l.at == len(l.text) || l.text[l.at] != '{' {
		name := l.name()
		if name == "" {
			return "$", nil
		}
		return l.get(name), nil
	}
	l.at++
	name := l.name()
	rest := l.text[l.at:]
	end := strings.IndexByte(rest, '}')
	if name == "" || end < 0 {
		return "", l.of.errorf("a variable is not ${NAME}, ${NAME:-TEXT} or ${NAME:+TEXT}")
	}
	op := rest[:end]
	l.at += end + 1
	value := l.get(name)
	switch {
	case op == "":
		return value, nil
	case strings.ContainsAny(op, "$\\'\""):
	case strings.HasPrefix(op, ":-") && value == "":
		return op[2:], nil
	case strings.HasPrefix(op, ":-"):
		return value, nil
	case strings.HasPrefix(op, ":+") && value == "":
		return "", nil
	case strings.HasPrefix(op, ":+"):
		return op[2:], nil
	}
	return "", l.of.errorf("the variable ${%.50s} is not ${NAME}, ${NAME:-TEXT} or ${NAME:+TEXT}", name+op)
}

func (l *lexer) name() string {
	from := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || l.at == from) {
			break
		}
		l.at++
	}
	return l.text[from:l.at]
}
