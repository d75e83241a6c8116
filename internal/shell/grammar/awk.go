package grammar

import "strings"

// awk accepts a program that computes and prints to standard output. It
// refuses to run commands, to open files, to read the environment and to
// name functions or variables indirectly (gawk(1), POSIX awk).
func awk(program string) error {
	l := awkLexer{rest: program}
	for l.next() {
		if why := l.refusal(); why != "" {
			return unproven("the awk program uses ", why)
		}
	}
	if l.broken || l.depth != 0 {
		return unproven("the awk program can't be read")
	}
	return nil
}

var awkRefused = set("system getline close fflush ENVIRON PROCINFO ARGV ARGC SYMTAB FUNCTAB function func extension ARGIND nextfile")

// An awkLexer finds names and operators and skips strings and regular
// expressions.
type awkLexer struct {
	rest     string
	token    string // a name, an operator's byte, or "" for a literal
	operand  bool   // the last token was an operand, so / divides
	printing bool   // in a print statement, outside of parentheses > opens a file
	inner    int    // parentheses open when the print began
	depth    int
	broken   bool
}

func (l *awkLexer) refusal() string {
	switch {
	case awkRefused[l.token]:
		return l.token
	case l.token == "@":
		return "@"
	case l.token == "|":
		return "a pipe"
	case l.token == ">" && l.printing && l.depth <= l.inner:
		return "a file for its output"
	}
	return ""
}

// next finds the next token; false at the end or when the text is broken.
func (l *awkLexer) next() bool {
	l.rest = strings.TrimLeft(l.rest, " \t\r")
	if l.rest == "" || l.broken {
		return false
	}
	switch c := l.rest[0]; {
	case c == '"':
		l.skip('"')
	case c == '/' && !l.operand:
		l.skip('/')
	case c == '#':
		_, l.rest, _ = strings.Cut(l.rest, "\n")
		l.rest = "\n" + l.rest
		l.token = ""
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		l.name()
	case c >= '0' && c <= '9' || c == '.':
		l.rest = strings.TrimLeft(l.rest, "0123456789.xXabcdefABCDEF")
		l.token, l.operand = "", true
	default:
		l.operator(c)
	}
	return !l.broken
}

// skip takes a string or a regular expression.
func (l *awkLexer) skip(quote byte) {
	l.token, l.operand = "", true
	bracket := false
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == '\\':
			i++
		case c == '\n':
			l.broken = true
			return
		case quote == '/' && c == '[':
			bracket = true
		case quote == '/' && c == ']':
			bracket = false
		case c == quote && bracket:
			l.broken = true // awks differ on where it ends
			return
		case c == quote:
			l.rest = l.rest[i+1:]
			return
		}
	}
	l.broken = true
}

func (l *awkLexer) name() {
	i := 0
	for i < len(l.rest) && identifier("_"+l.rest[i:i+1]) {
		i++
	}
	l.token, l.rest = l.rest[:i], l.rest[i:]
	l.operand = true
	switch l.token {
	case "print", "printf":
		l.printing, l.inner, l.operand = true, l.depth, false
	case "return", "in", "if", "while", "for", "do", "else":
		l.operand = false
	}
}

func (l *awkLexer) operator(c byte) {
	l.rest = l.rest[1:]
	l.token, l.operand = string(c), c == ')' || c == ']' || c == '$'
	switch c {
	case '(', '{', '[':
		l.depth++
		l.printing = l.printing && c != '{'
	case ')', '}', ']':
		l.depth--
		l.broken = l.depth < 0
		l.printing = l.printing && c != '}'
	case ';', '\n':
		l.printing = false
	case '|':
		if strings.HasPrefix(l.rest, "|") {
			l.rest, l.token = l.rest[1:], "||"
		}
	case '$':
		l.operand = false
	}
}
