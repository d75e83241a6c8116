package grammar

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed data/*.txt
var files embed.FS

// library is the embedded data: per program the lines that speak of it, not
// yet parsed, since a session uses few of them.
var library = sync.OnceValue(func() *book {
	b := newBook()
	data := dataFiles()
	for _, name := range slices.Sorted(maps.Keys(data)) { // the order of forms counts
		must(0, b.add(name, data[name]))
	}
	return b
})

// dataFiles are the embedded files by their names.
func dataFiles() map[string]string {
	out := map[string]string{}
	for _, f := range must(files.ReadDir("data")) {
		out[f.Name()] = string(must(files.ReadFile("data/" + f.Name())))
	}
	return out
}

// must makes a panic of an error in embedded data, which tests load.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A book is an index of data: which lines speak of which program.
type book struct {
	lines map[string][]line
	sets  map[string]string   // "FILE@NAME" to flags
	help  map[string][]string // program to the flags that only inform

	mu       sync.Mutex
	programs map[string]*node
}

// A line is one entry with its continuation.
type line struct {
	file string
	at   int // line number, from 1
	text string
}

func (l line) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", l.file, l.at, fmt.Sprintf(format, args...))
}

func newBook() *book {
	return &book{
		lines: map[string][]line{}, sets: map[string]string{},
		help: map[string][]string{}, programs: map[string]*node{},
	}
}

// add indexes one file. Forms are not parsed here.
func (b *book) add(file, data string) error {
	for _, l := range split(file, data) {
		var err error
		switch {
		case strings.HasSuffix(file, "help.txt"):
			err = b.addHelp(l)
		case strings.HasPrefix(l.text, "@"):
			err = b.addSet(l)
		default:
			err = b.addForm(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// split joins continued lines and drops comments and empty lines.
func split(file, data string) (out []line) {
	n := 0
	for text := range strings.Lines(data) {
		n++
		text = strings.TrimRight(text, " \t\r\n")
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case (text[0] == ' ' || text[0] == '\t') && len(out) > 0:
			out[len(out)-1].text += " " + strings.TrimSpace(text)
		default:
			out = append(out, line{file, n, strings.TrimSpace(text)})
		}
	}
	return out
}

func (b *book) addSet(l line) error {
	name, flags, ok := strings.Cut(l.text, "=")
	name = strings.TrimSpace(name)
	if !ok || len(name) < 2 || strings.ContainsAny(name, " \t") {
		return l.errorf("want @SET = FLAGS")
	}
	if _, twice := b.sets[l.file+name]; twice {
		return l.errorf("%s is defined twice", name)
	}
	b.sets[l.file+name] = strings.TrimSpace(flags)
	return nil
}

func (b *book) addForm(l line) error {
	head, _, ok := strings.Cut(l.text, ": ")
	words := strings.Fields(strings.TrimSuffix(head, ":"))
	if !ok || len(words) == 0 {
		return l.errorf("want NAME[ SUB…]: EFFECT; FLAGS; OPERANDS")
	}
	for name := range strings.SplitSeq(words[0], "|") {
		if name == "" || strings.ContainsRune(name, '/') {
			return l.errorf("%q is no program's name", name)
		}
		b.lines[name] = append(b.lines[name], l)
	}
	return nil
}

func (b *book) addHelp(l line) error {
	words := strings.Fields(l.text)
	flags := words[1:]
	for _, f := range flags {
		if !strings.HasPrefix(f, "-") && f != "version" && f != "help" {
			return l.errorf("%q is neither a flag nor help or version", f)
		}
	}
	if len(flags) == 0 {
		flags = []string{"--help", "--version"}
	}
	b.help[words[0]] = append(b.help[words[0]], flags...)
	return nil
}

// program returns the parsed forms of a program, nil where there are none.
func (b *book) program(name string) (*node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.programs[name]; ok {
		return n, nil
	}
	lines := b.lines[name]
	if len(lines) == 0 {
		return nil, nil
	}
	root := &node{}
	for _, l := range lines {
		if err := b.parse(root, l); err != nil {
			return nil, err
		}
	}
	b.programs[name] = root
	return root, nil
}

// Check parses a data file as a whole. Its errors name the line. The name
// decides how it is read: help.txt lists programs, every other holds forms.
func Check(name, data string) error {
	b := newBook()
	if err := b.add(name, data); err != nil {
		return err
	}
	for program := range b.lines {
		if _, err := b.program(program); err != nil {
			return err
		}
	}
	return nil
}
