// Package dockerfile reads the instructions of a Dockerfile strictly. An
// unknown instruction is an error with its line, so that no image lacks what
// its author expects.
//
// The format is Docker's Dockerfile reference without what needs BuildKit.
package dockerfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of a Dockerfile.
const (
	MaxBytes        = 1 << 20
	maxInstructions = 1000
)

// An Instruction is one line of a Dockerfile, continued lines joined.
type Instruction struct {
	Line  int
	Name  string            // in capitals
	Flags map[string]string // --name=value
	Rest  string            // as it is written, without flags
}

// known are the instructions, and the flags of each.
var known = map[string]string{
	"FROM": "", "ARG": "", "ENV": "", "LABEL": "", "RUN": "", "COPY": "from chown", "ADD": "chown", "WORKDIR": "", "USER": "",
	"CMD": "", "ENTRYPOINT": "", "EXPOSE": "", "VOLUME": "", "STOPSIGNAL": "", "SHELL": "", "MAINTAINER": "",
	"HEALTHCHECK": "interval timeout retries start-period",
}

// An Error says which line can't be read, and why.
type Error struct {
	Line int
	Why  string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d of the Dockerfile: %s", e.Line, e.Why) }

func (i *Instruction) errorf(format string, args ...any) error {
	return &Error{i.Line, fmt.Sprintf(format, args...)}
}

// Read reads a Dockerfile.
func Read(text string) ([]Instruction, error) {
	if len(text) > MaxBytes || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, &Error{1, fmt.Sprintf("it has more than %d bytes, a zero byte or no UTF-8", MaxBytes)}
	}
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if err := directives(lines); err != nil {
		return nil, err
	}
	var list []Instruction
	for n := 0; n < len(lines); n++ {
		first := n
		var joined string
		joined, n = join(lines, n)
		if joined == "" || comment(joined) {
			continue
		}
		i, err := read(first+1, joined)
		if err != nil {
			return nil, err
		}
		if list = append(list, *i); len(list) > maxInstructions {
			return nil, i.errorf("there are more than %d instructions", maxInstructions)
		}
	}
	return list, nil
}

// join joins a line with those that continue it, and returns the number of the
// last one.
func join(lines []string, n int) (joined string, last int) {
	var out strings.Builder // a Dockerfile may be one line in very many parts
	text, more := trimmed(lines[n])
	out.WriteString(text)
	for more && n+1 < len(lines) {
		n++
		if comment(lines[n]) || strings.TrimSpace(lines[n]) == "" {
			continue
		}
		text, more = trimmed(lines[n])
		out.WriteString(text)
	}
	return strings.TrimSpace(out.String()), n
}

// directives refuses those that change how the rest is read.
func directives(lines []string) error {
	for n, line := range lines {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "=")
		if !comment(line) || !ok {
			return nil
		}
		if strings.EqualFold(strings.TrimSpace(name), "escape") && strings.TrimSpace(value) != `\` {
			return &Error{n + 1, `the escape character can only be \`}
		}
	}
	return nil
}

func comment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// trimmed cuts the backslash off that continues a line.
func trimmed(line string) (text string, more bool) {
	if comment(line) {
		return "", false
	}
	text = strings.TrimRight(line, " \t")
	return strings.CutSuffix(text, `\`)
}

func read(line int, text string) (*Instruction, error) {
	word, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	i := &Instruction{Line: line, Name: strings.ToUpper(word), Flags: map[string]string{}}
	flags, ok := known[i.Name]
	if !ok {
		return nil, i.errorf("%.50q is no instruction that is served here", word)
	}
	rest = strings.TrimSpace(text[len(text)-len(rest):])
	for strings.HasPrefix(rest, "--") {
		var flag string
		flag, rest, _ = strings.Cut(rest, " ")
		rest = strings.TrimSpace(rest)
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if value == "" || !contains(strings.Fields(flags), name) {
			return nil, i.errorf("the flag %.50q of %s is not served", flag, i.Name)
		}
		if _, twice := i.Flags[name]; twice {
			return nil, i.errorf("the flag %.50q is there twice", flag)
		}
		i.Flags[name] = value
	}
	if rest == "" {
		return nil, i.errorf("%s needs words", i.Name)
	}
	if contains([]string{"RUN", "COPY", "ADD"}, i.Name) && hereDocument(rest) {
		return nil, i.errorf("here-documents need BuildKit; write a file, or RUN with && between commands")
	}
	i.Rest = rest
	return i, nil
}

// hereDocument reports whether BuildKit would read the lines below as a document:
// the classic builder would not, so either reading surprises somebody.
func hereDocument(rest string) bool {
	_, after, ok := strings.Cut(rest, "<<")
	after = strings.TrimLeft(strings.TrimPrefix(after, "-"), `'"`)
	return ok && after != "" && (after[0] == '_' || after[0] >= 'A' && after[0] <= 'Z' || after[0] >= 'a' && after[0] <= 'z')
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// Exec reads the form ["word", …], and reports whether it is that.
func (i *Instruction) Exec() ([]string, bool) {
	var words []string
	if !strings.HasPrefix(i.Rest, "[") || json.Unmarshal([]byte(i.Rest), &words) != nil || words == nil {
		return nil, false
	}
	return words, true
}

// Words are the words of an instruction, with variables put in, which get finds.
func (i *Instruction) Words(get func(string) string) ([]string, error) {
	words, ok := i.Exec()
	if !ok {
		return i.split(i.Rest, get)
	}
	if len(words) > maxWords {
		return nil, i.errorf("it has more than %d words", maxWords)
	}
	l := &lexer{of: i, get: get, left: maxExpanded}
	for n := range words {
		var err error
		if words[n], err = l.expand(words[n]); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// Pairs are the NAME=VALUE of ENV, LABEL and ARG; ENV NAME VALUE is one as well.
// A name without a value has an empty one.
func (i *Instruction) Pairs(get func(string) string) (names []string, values map[string]*string, err error) {
	words, err := i.split(i.Rest, get)
	if err != nil {
		return nil, nil, err
	}
	if name, value, ok := strings.Cut(i.Rest, " "); i.Name == "ENV" && ok && !strings.Contains(name, "=") {
		text, err := (&lexer{of: i, get: get, left: maxExpanded}).expand(strings.TrimSpace(value))
		return []string{name}, map[string]*string{name: &text}, err
	}
	values = map[string]*string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if name == "" || !ok && i.Name != "ARG" {
			return nil, nil, i.errorf("%.50q is not NAME=VALUE", w)
		}
		names, values[name] = append(names, name), nil
		if ok {
			values[name] = &value
		}
	}
	return names, values, nil
}
