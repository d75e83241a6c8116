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

var awkRefused = NewWordSet("system getline close fflush ENVIRON PROCINFO ARGV ARGC SYMTAB FUNCTAB function func extension ARGIND nextfile")

// An awkLexer finds names and operators and skips strings and regular
// expressions. Where awks differ on what a slash begins, it reads nothing.
type awkLexer struct {
	rest     string
	token    string // a name, an operator's byte, or "" for a literal
	operand  bool   // the last token was an operand, so / divides
	unsure   bool   // the last token lets / divide in one awk only
	printing bool   // in a print statement, outside of parentheses > opens a file
	inner    int    // parentheses open when the print began
	depth    int
	headers  []int // depths at which the head of an if, while or for is open
	broken   bool
}

func (l *awkLexer) refusal() string {
	switch {
	case awkRefused.Has(l.token):
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
	l.space()
	if l.rest == "" || l.broken {
		return false
	}
	unsure := l.unsure && l.rest[0] != '\n'
	l.unsure = l.unsure && !unsure
	switch c := l.rest[0]; {
	case c == '/' && unsure:
		l.broken = true
	case c == '"':
		l.skip('"')
	case c == '/' && !l.operand:
		l.skip('/')
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		l.name()
	case c >= '0' && c <= '9' || c == '.':
		l.number()
	default:
		l.operator(c)
	}
	return !l.broken
}

// space drops blanks, continued lines and comments.
func (l *awkLexer) space() {
	for {
		l.rest = strings.TrimLeft(l.rest, " \t\r")
		if after, ok := strings.CutPrefix(l.rest, "\\\n"); ok {
			l.rest = after
			continue
		}
		if !strings.HasPrefix(l.rest, "#") {
			return
		}
		i := strings.IndexByte(l.rest, '\n')
		if i < 0 {
			i = len(l.rest)
		}
		l.rest = l.rest[i:]
	}
}

// skip takes a string or a regular expression.
func (l *awkLexer) skip(quote byte) {
	l.token, l.operand = "", true
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == '\\':
			i++
		case c == '\n':
			l.broken = true
			return
		case quote == '/' && c == '[':
			n := bracket(l.rest[i:], quote)
			if n == 0 {
				l.broken = true
				return
			}
			i += n - 1
		case c == quote:
			l.rest = l.rest[i+1:]
			return
		}
	}
	l.broken = true
}

// number takes a decimal number. One that a letter follows at once is read
// differently by different awks.
func (l *awkLexer) number() {
	l.rest = strings.TrimLeft(l.rest, "0123456789.")
	l.token, l.operand = "", true
	l.broken = l.rest != "" && identifier(l.rest[:1])
}

// awkKeywords are names that are no operands.
var awkKeywords = NewWordSet("BEGIN END BEGINFILE ENDFILE if else while for do switch case default in return exit next break continue delete print printf")

func (l *awkLexer) name() {
	i := 0
	for i < len(l.rest) && identifier("_"+l.rest[i:i+1]) {
		i++
	}
	l.token, l.rest = l.rest[:i], l.rest[i:]
	l.operand = !awkKeywords.Has(l.token)
	switch l.token {
	case "print", "printf":
		l.printing, l.inner = true, l.depth
	case "length":
		l.unsure = true
	case "if", "while", "for", "switch":
		l.headers = append(l.headers, l.depth)
	}
}

func (l *awkLexer) operator(c byte) {
	l.rest = l.rest[1:]
	l.token = string(c)
	complete := l.operand
	l.operand = c == ')' || c == ']'
	switch c {
	case '(', '{', '[':
		l.depth++
		l.printing = l.printing && c != '{'
	case ')', '}', ']':
		l.close(c)
	case ';':
		l.printing = false
	case '\n': // after an operator, and in parentheses, the statement goes on
		l.printing = l.printing && (!complete || l.depth > l.inner)
	case '|':
		if after, ok := strings.CutPrefix(l.rest, "|"); ok {
			l.rest, l.token = after, "||"
		}
	case '+', '-':
		if after, ok := strings.CutPrefix(l.rest, l.token); ok {
			l.rest, l.unsure = after, true
		}
	default:
		l.broken = !strings.ContainsRune("$,!%&*/:<=>?@^~", rune(c))
	}
}

// close takes a closing bracket. Behind the head of an if a slash begins a
// regular expression for some awks and divides for others.
func (l *awkLexer) close(c byte) {
	l.depth--
	l.broken = l.depth < 0
	l.printing = l.printing && c != '}'
	if n := len(l.headers); c == ')' && n > 0 && l.headers[n-1] == l.depth {
		l.headers, l.unsure, l.operand = l.headers[:n-1], true, false
	}
}
