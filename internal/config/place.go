package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Layer says who stated a value. Later layers win, except that the project's
// may only narrow.
type Layer uint8

const (
	Builtin Layer = iota
	Managed
	User
	Project
	Command // flags of the command line
)

var layerNames = []string{"built-in", "managed", "user", "project", "flag"}

// String returns "built-in", "managed", "user", "project" or "flag".
func (l Layer) String() string { return layerNames[l] }

// MarshalText writes the layer's name.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// A Place is where something was stated: a line of a file, a flag, or the
// program itself.
type Place struct {
	Layer  Layer  `json:"layer"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1
	Column int    `json:"column,omitempty"` // from 1, in bytes
	Via    string `json:"via,omitempty"`    // a flag such as "--net", or the profile that brought the value
}

// String writes file:line:column, the flag, or "built-in".
func (p Place) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	case p.File != "":
		return p.File
	case p.Layer == Command:
		return p.Via
	}
	return p.Layer.String()
}

// why names the place in a mount's reason.
func (p Place) why() string {
	switch {
	case p.Layer == Command && p.Via != "":
		return p.Via
	case p.Via != "" && p.Line > 0:
		return p.Via + ", " + p.String()
	case p.Via != "":
		return p.Via + ", " + p.Layer.String()
	}
	return p.Layer.String() + " config " + p.String()
}

// An Error is one thing that is wrong with the configuration, where it stands
// and what to do about it.
type Error struct {
	Place   Place
	Problem string // the error and the expected form
	Hint    string // what to do, or ""
	// Widens is set where an untrusted project file asks for more than the
	// layers before it give; it says for what. Trust would permit it.
	Widens string
	// Forbidden is set where a file is there and may not be read.
	Forbidden bool
}

// Error writes the place, where there is one, and the problem.
func (e *Error) Error() string {
	if e.Place == (Place{}) {
		return e.Problem
	}
	return e.Place.String() + ": " + e.Problem
}

// Errors are all that was found, in the order of the file, at most maxErrors.
type Errors []*Error

// maxErrors keeps a hostile file from flooding the terminal.
const maxErrors = 20

// Error writes one line for each.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Hint returns the first hint there is, or "".
func (es Errors) Hint() string {
	for _, e := range es {
		if e.Hint != "" {
			return e.Hint
		}
	}
	return ""
}

// Forbidden reports whether a file of the configuration may not be read.
func (es Errors) Forbidden() bool {
	return slices.ContainsFunc(es, func(e *Error) bool { return e.Forbidden })
}

// widening reports whether trusting the file would be enough.
func (es Errors) widening() bool {
	return !slices.ContainsFunc(es, func(e *Error) bool { return e.Widens == "" })
}

// add appends e unless it is there already or there are enough.
func (es *Errors) add(e *Error) {
	same := func(o *Error) bool { return *o == *e }
	if len(*es) < maxErrors && !slices.ContainsFunc(*es, same) {
		*es = append(*es, e)
	}
}

// addf appends an error without a hint.
func (es *Errors) addf(at Place, format string, args ...any) {
	es.add(&Error{Place: at, Problem: fmt.Sprintf(format, args...)})
}

// take appends what a step returned: Errors, one Error, or any other error,
// which gets the place at.
func (es *Errors) take(at Place, err error) {
	var list Errors
	var one *Error
	switch {
	case err == nil:
	case errors.As(err, &list):
		for _, e := range list {
			es.add(e)
		}
	case errors.As(err, &one):
		es.add(one)
	default:
		es.add(&Error{Place: at, Problem: err.Error(), Forbidden: errors.Is(err, fs.ErrPermission)})
	}
}

// err returns the list as an error, nil when it is empty.
func (es Errors) err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// quote escapes text of others so that it can't act on a terminal, and shortens
// it.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}
