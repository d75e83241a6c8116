package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// An object is a JSON object with its members as they were written.
type object map[string]json.RawMessage

// parse reads one JSON object and nothing else. It is stricter than
// encoding/json: a member that occurs twice, anywhere, and text that is not
// UTF-8 are errors, since two readers would disagree about them (RFC 8259,
// sections 4 and 8.1).
func parse(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := once(data); err != nil {
		return nil, err
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it is no JSON object")
	}
	return o, nil
}

// Strict returns an error for JSON that two readers could take for different
// things: a member that an object has twice, anywhere.
func Strict(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	return once(data)
}

// once reports a member that an object has twice.
func once(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := value(d); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it ends too early")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the message")
	}
	return nil
}

// maxDepth is how deep values lie in others.
const maxDepth = 100

func value(d *json.Decoder) error { return below(d, 0) }

// below reads one value.
func below(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, is := t.(json.Delim)
	switch {
	case !is:
		return nil
	case depth >= maxDepth:
		return fmt.Errorf("values lie deeper than %d in each other", maxDepth)
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			if err := name(d, seen); err != nil {
				return err
			}
		}
		if err := below(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end
	return err
}

// name reads the name of a member, which is a string: the decoder sees to that.
func name(d *json.Decoder, seen map[string]bool) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	n, _ := t.(string)
	if seen[n] {
		return fmt.Errorf("the member %q is given twice", n)
	}
	seen[n] = true
	return nil
}

// has reports whether a member is there and not null.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && string(raw) != "null"
}

// text returns a member that is a string, or "" if the object has no such member.
func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	s, err := textOf(o[name])
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// texts returns the strings of the named members.
func (o object) texts(to map[string]*string) error {
	for name, at := range to {
		s, err := o.text(name)
		if err != nil {
			return err
		}
		*at = s
	}
	return nil
}

// textOf reads a string. It refuses half a surrogate pair and a NUL: the agent
// would use another text than the one that was read.
func textOf(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || raw[0] != '"' {
		return "", fmt.Errorf("it is %.40q; want a string", raw)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", err
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", errors.New("it has a NUL, at which the kernel would cut it")
	}
	if strings.Count(s, "\ufffd") != bytes.Count(raw, []byte("\ufffd"))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return "", errors.New("it has half a surrogate pair")
	}
	return s, nil
}

// list returns a member that is a list of strings.
func (o object) list(name string) ([]string, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(o[name], &all); err != nil {
		return nil, fmt.Errorf("%s: want a list of strings", name)
	}
	out := make([]string, len(all))
	for i, raw := range all {
		var err error
		if out[i], err = textOf(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// object returns a member that is an object; a missing one is empty.
func (o object) object(name string) (object, error) {
	if !o.has(name) {
		return object{}, nil
	}
	var in object
	if err := json.Unmarshal(o[name], &in); err != nil {
		return nil, fmt.Errorf("%s: want an object", name)
	}
	return in, nil
}

// write writes a value on one line. Text is written as it is, not for HTML.
func write(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil // strings and values that were read can always be written
	}
	return b.Bytes()
}
