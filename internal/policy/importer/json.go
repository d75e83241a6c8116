package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A node is a value of JSON with its line.
type node struct {
	line    int
	kind    byte // '{', '[' or 0
	value   any  // string, bool, json.Number or nil
	members []member
	items   []*node
}

// A member is a key of an object with its value, in the order of the file.
type member struct {
	key   string
	value *node
}

// maxDepth bounds how deep values may be nested.
const maxDepth = 100

// parseJSON reads one value and nothing behind it. A key that an object has
// twice is an error: programs disagree about which one counts.
func (r *reader) parseJSON(data []byte) (*node, error) {
	p := jsonParser{dec: json.NewDecoder(bytes.NewReader(data)), data: data}
	p.dec.UseNumber()
	n, err := p.whole()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, r.errorAt(p.line(err), "%v", err)
	}
	return n, nil
}

// whole reads one value to the end of the file.
func (p *jsonParser) whole() (*node, error) {
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, end := p.dec.Token(); !errors.Is(end, io.EOF) {
		return nil, fmt.Errorf("something follows the value")
	}
	return n, nil
}

type jsonParser struct {
	dec  *json.Decoder
	data []byte
}

func (p *jsonParser) line(err error) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset := int(syntax.Offset)
		if strings.HasPrefix(syntax.Error(), `invalid character '\n'`) {
			offset-- // it stands at the end of its own line
		}
		return lineOf(p.data, offset)
	}
	return lineOf(p.data, int(p.dec.InputOffset()))
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d values are nested", maxDepth)
	}
	t, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.line(nil), value: t}
	switch t {
	case json.Delim('{'):
		n.kind, n.value, err = '{', nil, p.object(n, depth)
	case json.Delim('['):
		n.kind, n.value, err = '[', nil, p.array(n, depth)
	}
	return n, err
}

func (p *jsonParser) object(n *node, depth int) error {
	for p.dec.More() {
		if err := p.member(n, depth); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

func (p *jsonParser) member(n *node, depth int) error {
	key, err := p.dec.Token()
	name, _ := key.(string)
	if err == nil && n.get(name) != nil {
		err = fmt.Errorf("the key %q is there twice", name)
	}
	if err != nil {
		return err
	}
	v, err := p.value(depth + 1)
	n.members = append(n.members, member{name, v})
	return err
}

func (p *jsonParser) array(n *node, depth int) error {
	for p.dec.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, v)
	}
	_, err := p.dec.Token()
	return err
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// is reports whether the node is there and has a value.
func (n *node) is(v any) bool { return n != nil && n.kind == 0 && n.value == v }

// string is the value of a string.
func (n *node) string() (string, bool) {
	if n == nil {
		return "", false
	}
	s, ok := n.value.(string)
	return s, ok
}

// text is the value as it is shown in a report.
func (n *node) text() string {
	switch {
	case n == nil:
		return ""
	case n.kind == '{':
		return "{...}"
	case n.kind == '[':
		return "[...]"
	case n.value == nil:
		return "null"
	}
	return fmt.Sprint(n.value)
}

// item is a key with its value as it stands in a report.
func (m member) item() Item {
	return Item{Line: m.value.line, Text: m.key + ": " + m.value.text()}
}

// parseObject is parseJSON for a file that must be an object.
func (r *reader) parseObject(data []byte, what string) (*node, error) {
	n, err := r.parseJSON(data)
	if err == nil && n.kind != '{' {
		err = r.errorAt(n.line, "it is no object; want %s", what)
	}
	return n, err
}

// members are those of an object; it reports a value that is not an object.
func (r *reader) members(m member) []member {
	if m.value.kind != '{' {
		r.left(m.item(), "it is no object")
	}
	return m.value.members
}

// strings returns the items of a list, and reports those that are not strings.
func (r *reader) strings(name string, n *node) (out []Item) {
	if n == nil {
		return nil
	}
	if n.kind != '[' {
		r.left(Item{Line: n.line, Text: name + ": " + n.text()}, "it is no list of strings")
		return nil
	}
	for _, it := range n.items {
		s, ok := it.value.(string)
		if !ok {
			r.left(Item{Line: it.line, Text: name + ": " + it.text()}, "it is no string")
			continue
		}
		out = append(out, Item{Line: it.line, Text: s})
	}
	return out
}

// uncommented blanks the comments of JSON with comments, line for line.
func uncommented(data []byte) []byte {
	out := bytes.Clone(data)
	inString := false
	for i := 0; i < len(out); i++ {
		switch {
		case inString && out[i] == '\\':
			i++
		case out[i] == '"':
			inString = !inString
		case inString || out[i] != '/' || i+1 == len(out):
		case out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case out[i+1] == '*':
			end := bytes.Index(out[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i = blank(out, i, i+2+end+2)
		}
	}
	return out
}

// blank overwrites out[from:to] except for line ends, and returns the last
// index.
func blank(out []byte, from, to int) int {
	for i := from; i < to; i++ {
		if out[i] != '\n' {
			out[i] = ' '
		}
	}
	return to - 1
}
