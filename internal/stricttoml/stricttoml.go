// Package stricttoml reads TOML in one way only: a key that the reader does not
// know, or that another reader could take for one of its keys, is an error. Errors
// say where they are, what was wanted and what to do.
package stricttoml

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// An Error is a mistake in a file.
type Error struct {
	File         string
	Line, Column int // from 1
	Problem      string
	Hint         string // what to do, or ""
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

const format = "the format is TOML 1.0 (https://toml.io)"

// Decode reads a file into v, a pointer to a struct or a map. A key is one of
// v's by its exact name. (go-toml takes NAME for name.) Its errors are of type
// *Error.
func Decode(file string, text []byte, v any) error {
	d, err := Read(file, text)
	if err != nil {
		return err
	}
	return d.Decode(v)
}

// A Document is the text of a file. It is read anew by each method.
type Document struct {
	file  string
	text  []byte
	lines []int // offsets of the line starts
}

// Read takes a text that can be TOML: UTF-8 without a byte order mark and NUL.
func Read(file string, text []byte) (*Document, error) {
	d := &Document{file: file, text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return nil, d.errorAt(0, "the file begins with a byte order mark; want plain UTF-8", "save it as UTF-8 without BOM")
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, d.errorAt(i, "the file has a NUL byte; want TOML text", "")
	}
	if !utf8.Valid(text) {
		return nil, d.errorAt(invalidUTF8(text), "the file is not UTF-8 here; want TOML text in UTF-8", "")
	}
	return d, nil
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return 0
}

// Position returns the line and the column of an offset, from 1.
func (d *Document) Position(offset int) (line, column int) {
	line = sort.SearchInts(d.lines, offset+1)
	return line, offset - d.lines[line-1] + 1
}

func (d *Document) errorAt(offset int, problem, hint string) *Error {
	line, column := d.Position(offset)
	return &Error{d.file, line, column, problem, hint}
}

// Each calls f with each header and each key with its value, until f returns
// false. What f is given is valid until it returns.
func (d *Document) Each(f func(*unstable.Node) bool) error {
	var p unstable.Parser
	p.Reset(d.text)
	for p.NextExpression() {
		if !f(p.Expression()) {
			return nil
		}
	}
	err := p.Error()
	if err == nil {
		return nil
	}
	at := 0
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) && len(syntax.Highlight) > 0 {
		at = int(p.Range(syntax.Highlight).Offset)
	}
	return d.errorAt(at, plain(err), format)
}

// plain is the message of the TOML library. A control character in it, which may
// come from a key, is shown as an escape.
func plain(err error) string {
	quoted := fmt.Sprintf("%q", strings.TrimPrefix(err.Error(), "toml: "))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Decode reads the document into v as the function Decode does.
//
// The order matters: telling duplicate keys takes the TOML library a time that
// grows with the square of their number, so it only gets to see what v has.
func (d *Document) Decode(v any) error {
	t := reflect.TypeOf(v)
	if err := d.known(t); err != nil {
		return err
	}
	err := toml.Unmarshal(d.text, v)
	if err == nil {
		return nil
	}
	e := &Error{File: d.file, Line: 1, Column: 1, Problem: plain(err), Hint: format}
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return e
	}
	e.Line, e.Column = decode.Position()
	if e.Hint = ""; strings.HasPrefix(e.Problem, "cannot decode TOML ") { // and then Go's types
		name := strings.Join(decode.Key(), ".")
		e.Problem = fmt.Sprintf("%q has a value of another type; want %s", name, wantedAt(t, decode.Key()))
	}
	return e
}

// wantedAt says what a key takes that is known.
func wantedAt(t reflect.Type, key []string) string {
	for _, part := range key {
		if next, ok := inside(t, part); ok {
			t = next
		}
	}
	return wanted(t, strings.Join(key, "."))
}
