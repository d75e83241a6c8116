// Package strictjson reads JSON in one way only: what two readers could take for
// two things is an error.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Decode reads exactly one JSON value into v, a pointer. It refuses text that is
// not UTF-8, fields that v does not have, a name that an object has twice, and
// anything but white space after the value. Its errors are of type *Error.
// (encoding/json takes the last of several fields, and replaces bytes that are not
// UTF-8.)
func Decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return &Error{0, errors.New("it is not UTF-8")}
	}
	if err := once(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &Error{offset(data, dec, err), err}
	}
	return nil
}

// once checks the syntax, and that each object has each of its names once.
func once(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	var open []map[string]bool // the names of each object around; nil for a list
	name := false              // whether a name comes next, in an object
	for done := false; ; {
		t, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF) && done:
			return nil
		case errors.Is(err, io.EOF):
			return &Error{dec.InputOffset(), io.ErrUnexpectedEOF}
		case err != nil:
			return &Error{offset(data, dec, err), err}
		case done:
			return &Error{dec.InputOffset(), errors.New("something follows its end")}
		}
		inside := len(open) > 0 && open[len(open)-1] != nil
		if text, ok := t.(string); ok && inside && name {
			if open[len(open)-1][text] {
				return &Error{dec.InputOffset(), fmt.Errorf("%.100q is there twice", text)}
			}
			open[len(open)-1][text], name = true, false
			continue
		}
		switch t {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		name, done = len(open) > 0 && open[len(open)-1] != nil, len(open) == 0
	}
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
