package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

// An entry is one line of a data file, with fields between " | ".
type entry struct {
	file  string
	line  int
	text  string // without the fields that were taken off
	ended bool   // none is left
}

func (e entry) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", e.file, e.line, fmt.Sprintf(format, args...))
}

// cut takes the first fields off. It reports whether there were as many.
func (e *entry) cut(fields ...*string) bool {
	for _, f := range fields {
		if e.ended {
			return false
		}
		text, rest, more := strings.Cut(e.text, " | ")
		*f, e.text, e.ended = strings.TrimSpace(text), rest, !more
	}
	return true
}

// listOf splits a field at " ;; ".
func listOf(field string) []string {
	if field = strings.TrimSpace(field); field == "" || field == "-" {
		return nil
	}
	return strings.Split(field, " ;; ")
}

// entries are those of a data file: one per line, "#" begins a comment line.
func entries(file, data string) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		n := 0
		for text := range strings.Lines(data) {
			n++
			text = strings.TrimSpace(text)
			if text != "" && text[0] != '#' && !yield(entry{file: file, line: n, text: text}) {
				return
			}
		}
	}
}

// must makes a panic of an error in embedded data, which tests load.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// knowledge is the contents of the data files, each part read on first use.
type knowledge struct {
	dangers   *dangers
	protected func() protections
	secrets   func() []string
}

// builtin is read from the embedded data.
func builtin() *knowledge { return &embeddedKnowledge }

var embeddedKnowledge = knowledge{
	dangers:   &dangers{files: dangerFiles},
	protected: sync.OnceValue(func() protections { return must(allProtected(protectedText)) }),
	secrets:   sync.OnceValue(func() []string { return parseNames("secretvars.txt", secretText) }),
}

// parseNames reads a file with a name a line.
func parseNames(file, data string) (out []string) {
	for e := range entries(file, data) {
		out = append(out, e.text)
	}
	return out
}

// secret reports whether a variable's name says that it holds a secret.
func (k *knowledge) secret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(k.secrets(), func(p string) bool { return wild(p, upper) })
}
