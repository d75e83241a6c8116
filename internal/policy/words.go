package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/shell"
)

// A shape is a pattern of simple commands: of their parsed words, never of
// text. Both the danger data and the rules over commands are shapes.
type shape struct {
	programs []string   // alternatives, maybe with "*"
	subs     [][]string // words that must be the first that are no flags, in order
	flags    [][]string // of each list one must be there, in any spelling
	operands [][]string // of each list one pattern must match a word
	not      []shape    // conditions that must not hold
	open     bool       // further words may follow; a shape of the danger data is always open
	words    [][]string // all of them in the order in which they are written, for a rule that allows
}

// parseShape reads PROGRAM CONDITION… A trailing "*" leaves it open.
func parseShape(text string) (shape, error) {
	tokens := strings.Fields(text)
	if len(tokens) == 0 {
		return shape{}, fmt.Errorf("an empty pattern; want a program's name and conditions")
	}
	s := shape{}
	if last := len(tokens) - 1; last > 0 && tokens[last] == "*" {
		s.open, tokens = true, tokens[:last]
	} else if last > 0 && strings.HasSuffix(tokens[last], "*") && plainWord(strings.TrimSuffix(tokens[last], "*")) {
		s.open, tokens[last] = true, strings.TrimSuffix(tokens[last], "*")
	} else if tokens[0] == "*" {
		s.open = true
	}
	s.programs = strings.Split(tokens[0], ",")
	for _, t := range tokens[1:] {
		if err := s.condition(t); err != nil {
			return shape{}, err
		}
	}
	return s, nil
}

// condition adds one token of a pattern.
func (s *shape) condition(t string) error {
	if rest, ok := strings.CutPrefix(t, "!"); ok {
		var not shape
		if err := not.condition(rest); err != nil {
			return err
		}
		s.not = append(s.not, not)
		return nil
	}
	alternatives := strings.Split(t, ",")
	s.words = append(s.words, alternatives)
	switch {
	case t == "" || slices.Contains(alternatives, ""):
		return fmt.Errorf("the condition %q is empty", t)
	case t[0] == '-' && len(t) > 1:
		s.flags = append(s.flags, alternatives)
	case !strings.ContainsAny(t, "=*+:/?[.~@"):
		s.subs = append(s.subs, alternatives)
	default:
		s.operands = append(s.operands, alternatives)
	}
	return nil
}

func plainWord(s string) bool {
	return s != "" && !strings.ContainsAny(s, "=*+:/?[-.~@")
}

// argv is a simple command as shapes see it.
type argv struct {
	name    string       // of the program, as it was written
	program string       // the last part of it
	words   []shell.Word // after the program
	subs    []string     // words that are no flags
	known   int          // so many of subs stand first for certain
}

// newArgv looks at a command whose name is known. Where the flags before a
// subcommand are known (data/values.txt), its words are certain up to the next flag. What
// it returns lies in room, if that is large enough.
func newArgv(words []shell.Word, room []string) argv {
	a := argv{name: words[0].Text, program: base(words[0].Text), words: words[1:], subs: room}
	at, certain := a.subcommand()
	for i, w := range a.words[at:] {
		if strings.HasPrefix(w.Text, "-") || !w.Literal() && w.Text == "" {
			certain = false
			continue
		}
		certain = certain && w.Literal()
		if a.subs = append(a.subs, w.Text); certain && i == a.known {
			a.known++
		}
	}
	return a
}

// subcommand finds where the flags end that stand before a subcommand.
func (a *argv) subcommand() (at int, certain bool) {
	takes, ok := values()[a.program]
	if !ok {
		return 0, false
	}
	for at < len(a.words) && a.words[at].Literal() && strings.HasPrefix(a.words[at].Text, "-") {
		if slices.Contains(takes, a.words[at].Text) {
			at++
		}
		at++
	}
	return min(at, len(a.words)), true
}

// values are the flags that take the next word, by program. A line without flags
// names programs that have none.
var values = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for e := range entries("values.txt", valuesText) {
		var programs, flags string
		e.cut(&programs, &flags)
		for p := range strings.SplitSeq(programs, ",") {
			out[p] = strings.Fields(flags)
		}
	}
	return out
})

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// matches reports whether all conditions hold. Where the subcommand is not
// known exactly, words count wherever they stand: a danger is rather seen
// once too often.
func (s *shape) matches(a *argv) bool {
	return slices.ContainsFunc(s.programs, func(p string) bool { return wild(p, a.program) }) && s.holds(a)
}

// permits is matches for a rule that allows: what other spellings of a danger
// are to be found would here let through what nobody named. The program is
// named as it was written, and the words follow in the order of the pattern,
// after git's -C at most.
func (s *shape) permits(a *argv) bool {
	words := a.words
	for a.program == "git" && len(words) > 2 && words[0].Literal() && words[0].Text == "-C" && words[1].Literal() {
		words = words[2:]
	}
	if !slices.Contains(s.programs, a.name) || len(words) < len(s.words) || !s.open && len(a.words) != len(s.words) {
		return false
	}
	for i, alternatives := range s.words {
		w := words[i]
		if !w.Literal() || !slices.ContainsFunc(alternatives, func(alt string) bool { return wild(alt, w.Text) }) {
			return false
		}
	}
	return !slices.ContainsFunc(s.not, func(n shape) bool { return n.holds(a) })
}

func (s *shape) holds(a *argv) bool {
	if !s.subsHold(a) {
		return false
	}
	for _, alternatives := range s.flags {
		if !slices.ContainsFunc(alternatives, a.hasFlag) {
			return false
		}
	}
	for _, alternatives := range s.operands {
		if !slices.ContainsFunc(alternatives, a.hasOperand) {
			return false
		}
	}
	return !slices.ContainsFunc(s.not, func(n shape) bool { return n.holds(a) })
}

func (s *shape) subsHold(a *argv) bool {
	rest := a.subs
	for n, alternatives := range s.subs {
		i := slices.IndexFunc(rest, func(w string) bool {
			return slices.ContainsFunc(alternatives, func(alt string) bool { return wild(alt, w) })
		})
		if i < 0 || n < a.known && i > 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// hasFlag finds a flag in any spelling: -r alone or in a bundle, --recursive
// with or without a value, -delete as one word.
func (a *argv) hasFlag(flag string) bool {
	letter := len(flag) == 2 && flag[0] == '-' && flag[1] != '-'
	for _, w := range a.words {
		t := w.Text
		if t == "--" && w.Literal() {
			return false
		}
		name, _, _ := strings.Cut(t, "=")
		switch {
		case len(t) < 2 || t[0] != '-':
		case wild(flag, name):
			return true
		case letter && t[1] != '-' && strings.IndexByte(name, flag[1]) > 0:
			return true
		case strings.HasPrefix(flag, "--") && len(name) > 3 && strings.HasPrefix(flag, name):
			return true // an abbreviation
		}
	}
	return false
}

func (a *argv) hasOperand(pattern string) bool {
	return slices.ContainsFunc(a.words, func(w shell.Word) bool { return wild(pattern, w.Text) })
}

// closed reports whether every word is named by the pattern, as a rule
// without a trailing "*" wants it.
func (s *shape) closed(a *argv) bool {
	named := 0
	for _, w := range a.words {
		named++
		if !w.Literal() {
			return false
		}
	}
	return named == len(s.subs)+len(s.flags)+len(s.operands)
}

// wild matches "*" against any text; everything else is literal. The time is
// at most the product of both lengths.
func wild(pattern, text string) bool {
	p, t, back, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			back, from = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case back >= 0:
			from++
			p, t = back+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
