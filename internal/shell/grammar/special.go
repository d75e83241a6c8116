package grammar

import (
	"slices"
	"strings"
)

// A special reads a program whose words no form can describe.
type special func(p *program, name string, args []Word) (Meaning, error)

var specials map[string]special

func init() { //nolint:gochecknoinits // breaks the cycle between the table and what it calls
	specials = map[string]special{
		"find": find, "tar": tar, "bsdtar": tar, "gtar": tar, "ps": ps, "test": test, "[": test,
		"echo": prints, "true": prints, "false": prints, ":": prints, "expr": prints, "printf": printf,
	}
}

// prints are programs of which every word is only data.
func prints(_ *program, name string, _ []Word) (Meaning, error) {
	return Meaning{Form: name, Effect: Reads}, nil
}

// printf is like echo but for -v, which sets a variable and evaluates its
// subscript (bash(1)).
func printf(_ *program, name string, args []Word) (Meaning, error) {
	if len(args) > 0 && args[0].Literal() && args[0].Text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].Vague != "" || strings.HasPrefix(args[0].Text, "-") || args[0].Glob && startsWild(args[0].Text) {
		return Meaning{}, unproven("the format of printf is not known")
	}
	if long := strings.FieldsFunc(args[0].Text, func(c rune) bool { return c < '0' || c > '9' }); slices.ContainsFunc(long, func(n string) bool { return len(n) > 6 }) && strings.Contains(args[0].Text, "%") {
		return Meaning{}, unproven("the format of printf is too wide")
	}
	return Meaning{Form: name, Effect: Reads}, nil
}

// tar accepts the old style, in which the first word holds flags without a
// dash and their values follow in order, and then goes by its forms.
func tar(p *program, name string, args []Word) (Meaning, error) {
	args = slices.Clone(args)
	if len(args) > 0 && args[0].Literal() && args[0].Text != "" && args[0].Text[0] != '-' {
		args = oldStyle(args)
	}
	return p.meaning(name, args)
}

// oldStyle writes "czf x y" as "-c -z -f x y".
func oldStyle(args []Word) []Word {
	var out []Word
	values := args[1:]
	for _, c := range args[0].Text {
		out = append(out, Word{Text: "-" + string(c)})
		if strings.ContainsRune("fCbTXIHLVKNgF", c) && len(values) > 0 {
			out = append(out, values[0])
			values = values[1:]
		}
	}
	return append(out, values...)
}

// ps knows the flags of three systems. What shows environments is refused:
// BSD's e and macOS's -E (ps(1)).
func ps(_ *program, name string, args []Word) (Meaning, error) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.Literal() || w.Text == "" {
			return Meaning{}, unproven("a word of ps is not known")
		}
		flag := strings.TrimLeft(w.Text, "-")
		flag, _, has := strings.Cut(flag, "=")
		long := strings.HasPrefix(w.Text, "--")
		switch {
		case strings.Contains(w.Text, "env"), !long && w.Text[0] != '-' && strings.Contains(flag, "e"), !long && strings.Contains(flag, "E"):
			return Meaning{}, unproven("ps can show environments")
		case digits(strings.ReplaceAll(flag, ",", "")):
		case !letters(flag):
			return Meaning{}, unproven("nothing is known of ps ", w.Text)
		case !has && (long && psValued.Has(flag) || !long && psValued.Has(flag[len(flag)-1:])) && i+1 < len(args):
			i++
			if !args[i].Literal() || strings.Contains(args[i].Text, "env") {
				return Meaning{}, unproven("ps can show environments")
			}
		}
	}
	return Meaning{Form: name, Effect: Reads}, nil
}

// psValued are the flags of ps that take the next word.
var psValued = NewWordSet("p pid ppid U u C G g t s o O k q sort user group tty cols columns width rows format deselect")

func letters(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-')
	})
}

// testFiles are the operators of test(1) that look at a file. -v and -R look
// at variables and evaluate subscripts.
var (
	testFiles   = NewWordSet("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S")
	testNumbers = NewWordSet("-eq -ne -lt -le -gt -ge")
)

// test accepts operators on words that are known, or quoted so that they can
// be no operator themselves.
func test(_ *program, name string, args []Word) (Meaning, error) {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1].Text != "]" {
			return Meaning{}, unproven("[ lacks its ]")
		}
		args = args[:len(args)-1]
	}
	m := Meaning{Form: name, Effect: Reads}
	for i, w := range args {
		if w.Split && w.Vague != "" || w.Glob && couldBeOperator(w.Text) {
			return Meaning{}, unproven("a word of test is not quoted and not known")
		}
		if w.Vague != "" || len(w.Unset) > 0 {
			continue
		}
		switch {
		case w.Text == "-v" || w.Text == "-R":
			return Meaning{}, unproven("test ", w.Text, " evaluates what it is given")
		case testNumbers.Has(w.Text) && !(i > 0 && i+1 < len(args) && numeric(args[i-1]) && numeric(args[i+1])):
			return Meaning{}, unproven("test ", w.Text, " may evaluate words that are no numbers")
		case testFiles.Has(w.Text) && i+1 < len(args) && args[i+1].Vague == "" && args[i+1].Text != "":
			m.Claims = append(m.Claims, Claim{Verb: Look, Value: args[i+1]})
		}
	}
	return m, nil
}

// couldBeOperator reports whether a name that a pattern finds could be one of
// test's operators, which have no dot.
func couldBeOperator(pattern string) bool {
	return (startsWild(pattern) || pattern[0] == '-') && !strings.Contains(pattern[strings.LastIndexAny(pattern, "*?])")+1:], ".")
}

func numeric(w Word) bool { return w.Literal() && digits(strings.TrimLeft(w.Text, "+-")) }
