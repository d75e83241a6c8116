package dockerapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a JSON body.
const (
	maxBody   = 1 << 20 // bytes
	maxDepth  = 16      // of objects and arrays
	maxValues = 16_000  // in all of them: an empty one takes much more memory than text
)

// readBody reads the one JSON object of a request into v, a pointer to a
// structure, and refuses all that is not a field of it. No body at all is an
// empty object.
func readBody(r *http.Request, v any) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return refuse(RuleBody, "", "the body can't be read").status(http.StatusBadRequest)
	case len(data) > maxBody:
		return refuse(RuleBody, "", "the body is larger than %d bytes", maxBody).status(http.StatusRequestEntityTooLarge)
	case len(bytes.TrimSpace(data)) == 0:
		return nil
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return refuse(RuleBody, "", "the body has to be application/json").status(http.StatusBadRequest)
	}
	return decode(data, v)
}

// decode reads one JSON object strictly. A name occurs once, exactly as in the
// structure; members that the structure lacks are empty, or ignored by engines.
// (Go reads names in any case and takes the last of several; Docker is written
// in Go.)
func decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return refuse(RuleBody, "", "the body is not UTF-8").status(http.StatusBadRequest)
	}
	dec := &reader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	dec.UseNumber()
	tree, err := dec.value(0)
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else {
			err = errors.New("something follows the JSON text")
		}
	}
	if err != nil {
		return refuse(RuleBody, "", "the body is not one JSON text: %v", err).status(http.StatusBadRequest)
	}
	if err := prune(tree, reflect.TypeOf(v).Elem(), ""); err != nil {
		return err
	}
	clean, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(clean, v)
	}
	if err != nil {
		return refuse(RuleBody, "", "the body does not have the form of the Docker API: %v", err).status(http.StatusBadRequest)
	}
	return nil
}

// A reader counts the values that it has read.
type reader struct {
	*json.Decoder
	values int
}

// value reads one value: a map, a slice, or what json.Token has.
func (dec *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is deeper than %d levels", maxDepth)
	}
	if dec.values++; dec.values > maxValues {
		return nil, fmt.Errorf("it holds more than %d values", maxValues)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return dec.object(depth)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := dec.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return t, nil
}

func (dec *reader) object(depth int) (map[string]any, error) {
	m := map[string]any{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("a name is no string")
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%.100q is there twice", name)
		}
		if m[name], err = dec.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return m, err
}

// prune removes from tree what t does not have, if it is empty or engines ignore
// it, and refuses it otherwise. A name that differs from one of t's in case alone is refused
// either way: it is there to be read differently by two readers.
func prune(tree any, t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		m, ok := tree.(map[string]any)
		if !ok {
			return nil // null, or what Unmarshal refuses
		}
		return pruneObject(m, t, at)
	case reflect.Slice:
		list, _ := tree.([]any)
		for i, v := range list {
			if err := prune(v, t.Elem(), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		m, _ := tree.(map[string]any)
		for name, v := range m {
			if err := prune(v, t.Elem(), at+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func pruneObject(m map[string]any, t reflect.Type, at string) error {
	known := fields(t)
	for name, v := range m {
		full := strings.TrimPrefix(at+"."+name, ".")
		if f, ok := known[name]; ok {
			if err := prune(v, f, full); err != nil {
				return err
			}
			continue
		}
		for k := range known {
			if strings.EqualFold(k, name) {
				return refuse(RuleField, "write it so", "the field %.100q is called %q", full, strings.TrimPrefix(at+"."+k, ".")).status(http.StatusBadRequest)
			}
		}
		if why := forbidden[full]; why != "" && !empty(v) {
			return refuse(RuleHost, "leave it out; what containers of guests may have is in docs/docker-api.md", "%s can't be set: %s", full, why)
		}
		if !empty(v) && !ignored(t, name) {
			return refuse(RuleField, "leave it out; what containers of guests may have is in docs/docker-api.md", "the field %.100q is not among those that a guest may set", full)
		}
		delete(m, name)
	}
	return nil
}

// fields are the names of t's fields in JSON, embedded structures included.
func fields(t reflect.Type) map[string]reflect.Type {
	list := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for n, ft := range fields(f.Type) {
				list[n] = ft
			}
		case name == "":
			list[f.Name] = f.Type
		default:
			list[name] = f.Type
		}
	}
	return list
}

// empty reports whether a value is that of an unset field.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !empty(e) })
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return false
}

// oneOf reports whether s is among list.
func oneOf(s string, list ...string) bool { return slices.Contains(list, s) }
