// Package strictjson reads JSON in one way only: what two readers could take for
// two things is an error.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// An Error says at which byte Decode stopped. The offset is 0 where encoding/json
// does not tell it.
type Error struct {
	Offset int64
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Decode reads exactly one JSON value into v, a pointer. It refuses text that is not
// UTF-8, fields that v does not have or that differ in case, a name that an object has
// twice, and anything but white space after the value. Its errors are of type *Error.
// (encoding/json takes the last of several fields, compares their names without case,
// and replaces bytes that are not UTF-8.)
func Decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return &Error{0, errors.New("it is not UTF-8")}
	}
	if err := once(data, reflect.TypeOf(v)); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &Error{offset(data, dec, err), err}
	}
	return nil
}

// maxDepth bounds how deep values lie in one another.
const maxDepth = 1000

// once checks the syntax, and that each object has each of its names once, in the case
// of the type that it is read into.
func once(data []byte, of reflect.Type) error {
	w := walker{json.NewDecoder(bytes.NewReader(data)), data, map[reflect.Type][]field{}}
	if err := w.value(of, 0); err != nil {
		return err
	}
	switch _, err := w.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return &Error{offset(data, w.Decoder, err), err}
	}
	return w.wrong("something follows its end")
}

type walker struct {
	*json.Decoder
	data  []byte
	known map[reflect.Type][]field
}

func (w *walker) wrong(form string, args ...any) error {
	return &Error{w.InputOffset(), fmt.Errorf(form, args...)}
}

// next is the next token.
func (w *walker) next() (json.Token, error) {
	t, err := w.Token()
	switch {
	case errors.Is(err, io.EOF):
		return nil, &Error{w.InputOffset(), io.ErrUnexpectedEOF}
	case err != nil:
		return nil, &Error{offset(w.data, w.Decoder, err), err}
	}
	return t, nil
}

// value checks a value that is read into t; a nil t takes any names.
func (w *walker) value(t reflect.Type, depth int) error {
	first, err := w.next()
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return w.wrong("more than %d values lie in one another", maxDepth)
	case first == json.Delim('{'):
		return w.object(t, depth)
	case first != json.Delim('['):
		return nil
	}
	t = pointed(t)
	if t != nil && t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		t = nil
	} else if t != nil {
		t = t.Elem()
	}
	for w.More() {
		if err := w.value(t, depth+1); err != nil {
			return err
		}
	}
	_, err = w.next()
	return err
}

// object checks the rest of an object.
func (w *walker) object(t reflect.Type, depth int) error {
	seen := map[string]bool{}
	for w.More() {
		key, err := w.next()
		if err != nil {
			return err
		}
		name, _ := key.(string) // no other token comes here
		if seen[name] {
			return w.wrong("%.100q is there twice", name)
		}
		seen[name] = true
		field, other := w.member(t, name)
		if other != "" {
			return w.wrong("unknown field %.100q; want %q", name, other)
		}
		if err := w.value(field, depth+1); err != nil {
			return err
		}
	}
	_, err := w.next()
	return err
}

// pointed is what a type points at; nil where the type itself reads its text.
func pointed(t reflect.Type) reflect.Type {
	for t != nil && !t.Implements(unmarshaler) && !reflect.PointerTo(t).Implements(unmarshaler) {
		if t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// A field is one that encoding/json fills.
type field struct {
	name string
	of   reflect.Type
}

// fields are those of a struct.
func (w *walker) fields(t reflect.Type) []field {
	list, ok := w.known[t]
	if ok {
		return list
	}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := cmp.Or(tag, f.Name)
		if f.IsExported() && name != "-" && (tag != "" || !f.Anonymous) {
			list = append(list, field{name, f.Type})
		}
	}
	w.known[t] = list
	return list
}

// member is the type of a member of an object that is read into t. Other is the name of
// a field that encoding/json would take it for, since it compares without case.
func (w *walker) member(t reflect.Type, name string) (of reflect.Type, other string) {
	switch t = pointed(t); {
	case t == nil:
		return nil, ""
	case t.Kind() == reflect.Map:
		return t.Elem(), ""
	case t.Kind() != reflect.Struct:
		return nil, ""
	}
	for _, f := range w.fields(t) {
		switch {
		case f.name == name:
			return f.of, ""
		case strings.EqualFold(f.name, name):
			other = f.name
		}
	}
	return nil, other
}

// offset is where an error of encoding/json is, as far as that tells.
func offset(data []byte, dec *json.Decoder, err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case unknown:
		return int64(max(bytes.Index(data, []byte(name)), 0))
	case errors.As(err, &syntax):
		return syntax.Offset
	case errors.As(err, &kind):
		return kind.Offset
	case dec.InputOffset() > 0 && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0 // a type of ours refused it
	}
	return dec.InputOffset()
}
