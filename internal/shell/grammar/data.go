package grammar

import (
	"fmt"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/shell/lexicon"
)

// library is the embedded data. Reading all of it would be most of what a
// process costs that asks about one command, such as an agent's hook.
var library = newBook(index, embedded)

// A book is data of which as much is read as is asked about.
type book struct {
	index string // which files speak of which program
	text  func(file string) string

	mu       sync.Mutex
	programs map[string]*program
	sets     map[string]map[string]string // by file: "@NAME" to flags
}

// A program is what the data say of one.
type program struct {
	forms *node    // nil for a program without forms
	help  []string // the flags that only inform
}

func newBook(index string, text func(file string) string) *book {
	return &book{index: index, text: text, programs: map[string]*program{}, sets: map[string]map[string]string{}}
}

// helpFile lists programs and the flags that only inform; every other file
// holds forms.
const helpFile = "help.txt"

// A line is one entry with its continuation.
type line struct {
	file string
	at   int // line number, from 1
	text string
	more []string // what is continued behind the colon, which whole joins
}

// whole is the entry's text.
func (l line) whole() string { return strings.Join(append([]string{l.text}, l.more...), " ") }

// continued adds a continuation. What stands behind the colon is joined when it
// is read: of most programs one entry is.
func (l *line) continued(text string) {
	if strings.Contains(l.text, ": ") {
		l.more = append(l.more, text)
		return
	}
	l.text += " " + text
}

func (l line) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", l.file, l.at, fmt.Sprintf(format, args...))
}

// split returns the entries that are wanted for how they begin, with their
// continued lines joined. It drops comments and empty lines.
func split(file, data string, wanted func(text string) bool) (out []line) {
	n, first, takes := 0, true, false
	for text := range strings.Lines(data) {
		n++
		text = strings.TrimRight(text, " \t\r\n")
		switch {
		case text == "" || text[0] == '#':
		case (text[0] == ' ' || text[0] == '\t') && !first:
			if takes {
				out[len(out)-1].continued(strings.TrimSpace(text))
			}
		default:
			text, first = strings.TrimSpace(text), false
			if takes = wanted(text); takes {
				out = append(out, line{file: file, at: n, text: text})
			}
		}
	}
	return out
}

// names are the programs of which an entry speaks, with bars between them.
func names(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return strings.TrimSuffix(strings.TrimSuffix(word, ":"), ":")
}

// speaks reports whether an entry speaks of a program.
func speaks(text, program string) bool {
	list := names(text)
	if !strings.Contains(list, program) {
		return false // most of them
	}
	for name := range strings.SplitSeq(list, "|") {
		if name == program {
			return true
		}
	}
	return false
}

func isSet(text string) bool { return text[0] == '@' }

func isForm(text string) bool { return !isSet(text) }

// readSets reads the sets of flags that a file defines.
func readSets(file, data string) (map[string]string, error) {
	sets := map[string]string{}
	for _, l := range split(file, data, isSet) {
		name, flags, ok := strings.Cut(l.whole(), "=")
		name = strings.TrimSpace(name)
		if !ok || len(name) < 2 || strings.ContainsAny(name, " \t") {
			return nil, l.errorf("want @SET = FLAGS")
		}
		if _, twice := sets[name]; twice {
			return nil, l.errorf("%s is defined twice", name)
		}
		sets[name] = strings.TrimSpace(flags)
	}
	return sets, nil
}

// set returns the flags of a set of the line's file.
func (b *book) set(l line, name string) (flags string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sets, ok := b.sets[l.file]
	if !ok {
		if sets, err = readSets(l.file, b.text(l.file)); err != nil {
			return "", err
		}
		b.sets[l.file] = sets
	}
	if flags, ok = sets[name]; !ok {
		err = l.errorf("%s is not defined in this file", name)
	}
	return flags, err
}

// head returns the words before an entry's colon, and whether it is about the
// flags before a subcommand.
func (l line) head() (words []string, before bool, err error) {
	head, _, ok := strings.Cut(l.text, ": ")
	head, before = strings.CutSuffix(head, ":")
	words = strings.Fields(head)
	if !ok || len(words) == 0 || words[0] != names(l.text) {
		return nil, false, l.errorf("want NAME[ SUB…]: EFFECT; FLAGS; OPERANDS")
	}
	for name := range strings.SplitSeq(words[0], "|") {
		if name == "" || strings.ContainsRune(name, '/') {
			return nil, false, l.errorf("%q is no program's name", name)
		}
	}
	return words, before, nil
}

// helps reads an entry of the file of those that only inform.
func (p *program) helps(l line) error {
	flags := strings.Fields(l.whole())[1:]
	for _, f := range flags {
		if !strings.HasPrefix(f, "-") && f != "version" && f != "help" {
			return l.errorf("%q is neither a flag nor help or version", f)
		}
	}
	if len(flags) == 0 {
		flags = []string{"--help", "--version"}
	}
	p.help = append(p.help, flags...)
	return nil
}

// add takes what an entry says of the program. Forms are read when a command
// comes to them.
func (p *program) add(b *book, l line) error {
	if strings.HasSuffix(l.file, helpFile) {
		return p.helps(l)
	}
	words, _, err := l.head()
	if err != nil {
		return err
	}
	if p.forms == nil {
		p.forms = &node{book: b}
	}
	for _, n := range p.forms.below(words[1:]) {
		n.lines = append(n.lines, l)
	}
	return nil
}

// program returns what is known of a program.
func (b *book) program(name string) (*program, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.programs[name]; p != nil {
		return p, nil
	}
	p := &program{}
	found := lexicon.Find(b.index, name)
	for _, file := range found { // the order of forms counts
		for _, l := range split(file, b.text(file), func(text string) bool { return speaks(text, name) }) {
			if err := p.add(b, l); err != nil {
				return nil, err
			}
		}
	}
	if found != nil { // else the names would be without number
		b.programs[name] = p
	}
	return p, nil
}

// indexOf makes the index of files.
func indexOf(texts map[string]string) string {
	var entries []lexicon.Entry
	for file, text := range texts {
		for _, l := range split(file, text, isForm) {
			for name := range strings.SplitSeq(names(l.text), "|") {
				entries = append(entries, lexicon.Entry{Name: name, File: file})
			}
		}
	}
	return lexicon.Make(entries)
}

// Check reads a data file as a whole. Its errors name the line. The name
// decides how it is read: help.txt lists programs, every other holds forms.
func Check(name, data string) error {
	if _, err := readSets(name, data); err != nil {
		return err
	}
	b := newBook(indexOf(map[string]string{name: data}), func(string) string { return data })
	for _, l := range split(name, data, isForm) {
		if err := (&program{}).add(b, l); err != nil {
			return err
		}
	}
	for _, program := range lexicon.Names(b.index) {
		p, err := b.program(program)
		if err == nil && p.forms != nil {
			err = p.forms.check()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
