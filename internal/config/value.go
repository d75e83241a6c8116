package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// setting reads the value of a key; ok is false where it noted an error.
func (ps *parser) setting(k *key, n *unstable.Node, at Place) (s setting, ok bool) {
	s = setting{key: k, at: at}
	if k.kind == list {
		s.items, ok = ps.list(k, n, at)
		return s, ok
	}
	v, err := scalarValue(k, n, ps.paths)
	if err != nil {
		if n.Raw.Length > 0 {
			at = ps.at(int(n.Raw.Offset))
		}
		err.Place = at
		ps.errs.add(err)
		return s, false
	}
	s.value = v
	return s, true
}

// list reads the entries, each with its own place.
func (ps *parser) list(k *key, n *unstable.Node, at Place) ([]item, bool) {
	if n.Kind != unstable.Array {
		ps.errs.add(&Error{Place: at, Problem: wrongType(k, n.Kind)})
		return nil, false
	}
	var items []item
	for it := n.Children(); it.Next(); {
		one, ok := ps.item(k, it.Node(), at)
		if !ok {
			return nil, false
		}
		if items = append(items, one); len(items) > maxEntries {
			ps.errs.addf(at, "%s has more than %d entries", k.path, maxEntries)
			return nil, false
		}
	}
	return items, true
}

func (ps *parser) item(k *key, n *unstable.Node, at Place) (item, bool) {
	if n.Raw.Length > 0 {
		at = ps.at(int(n.Raw.Offset))
	}
	if n.Kind != unstable.String {
		ps.errs.add(&Error{Place: at, Problem: fmt.Sprintf("an entry of %s must be a string, not %s", k.path, kindOf(n.Kind))})
		return item{}, false
	}
	s, err := k.entry(string(n.Data), ps.paths)
	if err != nil {
		ps.errs.addf(at, "%v", err)
	}
	return item{s, at}, err == nil
}

// scalarValue reads one value that is not a list. The error lacks its place.
func scalarValue(k *key, n *unstable.Node, p paths) (any, *Error) {
	data := string(n.Data)
	switch {
	case k.kind == boolean && n.Kind == unstable.Bool:
		return data == "true", nil
	case k.kind == whole && n.Kind == unstable.Integer:
		v, _ := strconv.ParseInt(data, 0, 64) // a number that is too large becomes the largest, which no key's range has
		return v, k.inRange(float64(v), data)
	case k.kind == number && (n.Kind == unstable.Integer || n.Kind == unstable.Float):
		return numberValue(k, data)
	case (k.kind == text || k.kind == duration) && n.Kind == unstable.String:
		return textValue(k, data, p)
	}
	return nil, &Error{Problem: wrongType(k, n.Kind)}
}

func numberValue(k *key, data string) (any, *Error) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(data, "_", ""), 64)
	if err != nil { // 0x10 is TOML, but no decimal number
		v = math.NaN()
	}
	return v, k.inRange(v, data)
}

// textValue reads a string for a key of kind text or duration.
func textValue(k *key, data string, p paths) (any, *Error) {
	if k.kind == duration {
		d, err := time.ParseDuration(data)
		if err != nil {
			return nil, &Error{Problem: fmt.Sprintf("%s is %s; want %s", k.path, quote(data), kindNames[duration])}
		}
		return d, k.inRange(d.Seconds(), data)
	}
	if k.oneOf != nil {
		return data, k.among(data)
	}
	s, err := k.entry(data, p)
	if err != nil {
		return nil, &Error{Problem: fmt.Sprintf("%s: %v", k.path, err)}
	}
	return s, nil
}

func (k *key) among(data string) *Error {
	if slices.Contains(k.oneOf, data) {
		return nil
	}
	hint := unavailable[k.path+"="+data]
	if hint == "" {
		hint = didYouMean(data, k.oneOf)
	}
	return &Error{Problem: fmt.Sprintf("%s is %s; want one of %q", k.path, quote(data), k.oneOf), Hint: hint}
}

func (k *key) inRange(v float64, data string) *Error {
	if v >= k.min && v <= k.max { // false for NaN
		return nil
	}
	low, high := bound(k, k.min), bound(k, k.max)
	return &Error{Problem: fmt.Sprintf("%s is %s; want %s to %s", k.path, quote(data), low, high)}
}

func bound(k *key, v float64) string {
	if k.kind == duration {
		return (time.Duration(v) * time.Second).String()
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func wrongType(k *key, got unstable.Kind) string {
	return fmt.Sprintf("%s must be %s, not %s", k.path, kindNames[k.kind], kindOf(got))
}

func kindOf(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a string"
	case unstable.Bool:
		return "a boolean"
	case unstable.Integer:
		return "an integer"
	case unstable.Float:
		return "a number"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	}
	return "a date or time"
}

// show writes a value as TOML.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return tomlString(v)
	case time.Duration:
		return tomlString(shortDuration(v))
	case float64:
		s := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return fmt.Sprint(v)
}

// shortDuration writes 12h, not 12h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// tomlString writes a basic string: printable characters as they are,
// everything else escaped.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
