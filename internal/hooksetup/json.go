package hooksetup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// deepest is how far a settings file may be nested: far above what any agent
// writes, and far below what would exhaust a stack.
const deepest = 1000

// A document is a settings file in JSON, which may have comments and trailing
// commas. What an edit does not touch keeps every byte.
type document struct {
	root    hujson.Value
	newline string
	indent  string // one level's; "" where the file is on one line
}

// readDocument reads a settings file. No file at all, and one with nothing in
// it, is an empty object. Names that stand twice in an object are refused:
// agents differ in which of the two counts.
func readDocument(text []byte) (*document, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if err := shallow(text); err != nil {
		return nil, err
	}
	v, err := hujson.Parse(slices.Clone(text))
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, errors.New("want a JSON object in braces")
	}
	if err := unique(&v); err != nil {
		return nil, err
	}
	d := &document{root: v, newline: "\n"}
	if bytes.Contains(text, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	d.indent = indentOf(v.Value.(*hujson.Object))
	return d, nil
}

func shallow(text []byte) error {
	depth := 0
	for _, c := range text { // brackets in strings count too, which only errs on the side of refusal
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > deepest {
			return fmt.Errorf("it is nested more than %d deep", deepest)
		}
	}
	return nil
}

func unique(v *hujson.Value) error {
	for v := range v.All() {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, m := range o.Members {
			name := nameOf(m)
			if seen[name] {
				return fmt.Errorf("the name %q stands twice in one object", name)
			}
			seen[name] = true
		}
	}
	return nil
}

func nameOf(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// indentOf is how far the first member stands from the margin. An object
// without one says nothing, and gets two spaces.
func indentOf(o *hujson.Object) string {
	if len(o.Members) == 0 {
		return "  "
	}
	before := string(o.Members[0].Name.BeforeExtra)
	i := strings.LastIndexByte(before, '\n')
	if i < 0 {
		return ""
	}
	space := before[i+1:]
	if strings.Trim(space, " \t") != "" || space == "" {
		return "  "
	}
	return space
}

func (d *document) bytes() []byte { return d.root.Pack() }

// member returns the value of that name, or nil.
func member(v *hujson.Value, name string) *hujson.Value {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := range o.Members {
		if nameOf(o.Members[i]) == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// array returns the array at path, and creates it if it does not exist. It errs if
// the user has another value in that place.
func (d *document) array(path ...string) (*hujson.Value, error) {
	at := &d.root
	for i, name := range path {
		next := member(at, name)
		kind, empty := hujson.Kind('{'), hujson.ValueTrimmed(&hujson.Object{})
		if i == len(path)-1 {
			kind, empty = '[', &hujson.Array{}
		}
		if next == nil {
			next = d.addMember(at, i+1, name, empty)
		}
		if next.Value.Kind() != kind {
			return nil, fmt.Errorf("%q is not what agents read there; want %c…%c", strings.Join(path[:i+1], "."), kind, kind+2)
		}
		at = next
	}
	return at, nil
}

// addMember adds a member at the end of an object that is depth levels deep.
func (d *document) addMember(v *hujson.Value, depth int, name string, value hujson.ValueTrimmed) *hujson.Value {
	o := v.Value.(*hujson.Object)
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: value}}
	var last *hujson.Value
	if n := len(o.Members); n > 0 {
		last = &o.Members[n-1].Value
	}
	m.Name.BeforeExtra, m.Value.AfterExtra, o.AfterExtra = d.room(last, o.AfterExtra, depth)
	o.Members = append(o.Members, m)
	return &o.Members[len(o.Members)-1].Value
}

// addElement adds an element, on one line, at the end of an array that is depth
// levels deep.
func (d *document) addElement(v *hujson.Value, depth int, value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // lines for a shell are to be read by humans
	if err := enc.Encode(value); err != nil {
		return err
	}
	element, err := hujson.Parse(bytes.TrimSpace(text.Bytes()))
	if err != nil {
		return err
	}
	a := v.Value.(*hujson.Array)
	var last *hujson.Value
	if n := len(a.Elements); n > 0 {
		last = &a.Elements[n-1]
	}
	element.BeforeExtra, element.AfterExtra, a.AfterExtra = d.room(last, a.AfterExtra, depth)
	a.Elements = append(a.Elements, element)
	return nil
}

// room returns the text around a new last part of a composite: before it, after
// it, and before the bracket. last is the previous last part; end is the text
// before the bracket. A comment there stays where it is, behind the part that
// it followed; a trailing comma stays one.
func (d *document) room(last *hujson.Value, end hujson.Extra, depth int) (before, after, rest hujson.Extra) {
	line, closing := d.newline+strings.Repeat(d.indent, depth), d.newline+strings.Repeat(d.indent, depth-1)
	comment := words(end) != nil
	switch {
	case comment: // it may end with its line
	case last != nil && !bytes.ContainsRune(end, '\n'): // all of it is on one line
		line = " "
	case d.indent == "":
		line, closing = "", ""
	}
	if last != nil && last.AfterExtra != nil { // a comma stands at the end
		after = hujson.Extra{}
	}
	if comment {
		said := bytes.TrimRight(end, " \t\r\n")
		if rest = slices.Clone(end[len(said):]); len(rest) == 0 {
			rest = hujson.Extra(closing)
		}
		return hujson.Extra(string(said) + line), after, rest
	}
	if last == nil {
		end = hujson.Extra(closing)
	}
	return hujson.Extra(line), after, end
}

// A side is what stands before and after one part of a composite.
type side struct{ before, after *hujson.Extra }

// sides returns those of all parts, and what stands before the bracket.
func sides(v *hujson.Value) (parts []side, end *hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			parts = append(parts, side{&c.Members[i].Name.BeforeExtra, &c.Members[i].Value.AfterExtra})
		}
		return parts, &c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			parts = append(parts, side{&c.Elements[i].BeforeExtra, &c.Elements[i].AfterExtra})
		}
		return parts, &c.AfterExtra
	}
	return nil, nil
}

// remove takes part i out of an object or an array. Comments beside it stay.
func remove(v *hujson.Value, i int) {
	parts, end := sides(v)
	gone := parts[i]
	left := append(words(*gone.before), words(*gone.after)...)
	switch {
	case i < len(parts)-1:
		prepend(parts[i+1].before, left)
	case i == 0:
		*end = append(left, words(*end)...)
	default:
		before := parts[i-1].after
		if *gone.after == nil { // no comma at the end
			left = append(words(*before), left...)
			*before = nil
		}
		prepend(end, left)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
}

func prepend(to *hujson.Extra, words hujson.Extra) {
	if len(words) > 0 {
		*to = append(words, *to...)
	}
}

// words is what of an extra is more than space.
func words(e hujson.Extra) hujson.Extra {
	if len(bytes.TrimSpace(e)) == 0 {
		return nil
	}
	return slices.Clone(e)
}

// meaning is what a program reads in a document.
func (d *document) meaning() (any, error) {
	text, err := hujson.Standardize(d.bytes())
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

func meaningOf(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decode(text)
}
