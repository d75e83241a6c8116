package plugin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of texts in canonical form: far above those of servers' lists.
const (
	maxToolBytes = 1 << 20
	maxDepth     = 64
)

// canonical writes one JSON value as RFC 8785 says, so that two that mean the
// same are the same bytes.
func canonical(text []byte) ([]byte, error) { return canonicalUpTo(text, maxToolBytes) }

func canonicalUpTo(text []byte, limit int) ([]byte, error) {
	if len(text) > limit {
		return nil, fmt.Errorf("the JSON has %d bytes; want at most %d", len(text), limit)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the JSON is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	c := canon{dec: dec}
	if err := c.value(0); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the JSON goes on after its end")
	}
	return c.out, nil
}

type canon struct {
	dec *json.Decoder
	out []byte
}

func (c *canon) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the JSON is nested deeper than %d", maxDepth)
	}
	t, err := c.dec.Token()
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	switch t := t.(type) {
	case nil:
		c.out = append(c.out, "null"...)
	case bool:
		c.out = strconv.AppendBool(c.out, t)
	case string:
		return c.text(t)
	case json.Number:
		return c.number(t)
	case json.Delim:
		if t == '{' {
			return c.object(depth + 1)
		}
		return c.array(depth + 1)
	}
	return nil
}

func (c *canon) array(depth int) error {
	c.out = append(c.out, '[')
	for first := true; c.dec.More(); first = false {
		if !first {
			c.out = append(c.out, ',')
		}
		if err := c.value(depth); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	_, err := c.dec.Token()
	return err
}

// A field is a member of an object, its value in canonical form.
type field struct {
	name  string
	order []uint16
	value []byte
}

// object sorts the members by the UTF-16 code units of their names.
func (c *canon) object(depth int) error {
	fields, err := c.fields(depth)
	if err != nil {
		return err
	}
	slices.SortFunc(fields, func(a, b field) int { return slices.Compare(a.order, b.order) })
	c.out = append(c.out, '{')
	for i, f := range fields {
		if i > 0 {
			if fields[i-1].name == f.name {
				return fmt.Errorf("an object has the key %q twice", f.name)
			}
			c.out = append(c.out, ',')
		}
		if err := c.text(f.name); err != nil {
			return err
		}
		c.out = append(append(c.out, ':'), f.value...)
	}
	c.out = append(c.out, '}')
	return nil
}

func (c *canon) fields(depth int) ([]field, error) {
	var fields []field
	for c.dec.More() {
		t, err := c.dec.Token()
		if err != nil {
			return nil, fmt.Errorf("no JSON: %w", err)
		}
		name, _ := t.(string) // the decoder lets nothing else stand there
		inner := canon{dec: c.dec}
		if err := inner.value(depth); err != nil {
			return nil, err
		}
		fields = append(fields, field{name, utf16.Encode([]rune(name)), inner.out})
	}
	_, err := c.dec.Token()
	return fields, err
}

// number writes what ECMAScript does, which encoding/json does too but for -0.
func (c *canon) number(n json.Number) error {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("the number %s has no float64", cut(string(n)))
	}
	text, err := json.Marshal(cmp.Or(f, 0)) // -0 is 0
	c.out = append(c.out, text...)
	return err
}

func cut(s string) string { return s[:min(len(s), 40)] }

// text writes a string with the fewest escapes. The replacement character
// stands for text that the decoder could not read, half of a surrogate pair;
// nobody writes it, and two different texts must not become one.
func (c *canon) text(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("a text has a character that can't be read (U+FFFD)")
	}
	c.out = append(c.out, '"')
	for _, r := range s {
		c.out = appendRune(c.out, r)
	}
	c.out = append(c.out, '"')
	return nil
}

func appendRune(out []byte, r rune) []byte {
	if i := strings.IndexRune("\b\t\n\f\r\"\\", r); i >= 0 {
		return append(out, '\\', `btnfr"\`[i])
	}
	if r < ' ' {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}
