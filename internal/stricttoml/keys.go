package stricttoml

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A table is what a header or an inline table opens.
type table struct {
	of   reflect.Type // what it is read into
	name string       // as it is written; "" for the file
}

// known returns an error for the first key that t does not have.
func (d *Document) known(t reflect.Type) error {
	open := table{of: t}
	var wrong error
	err := d.Each(func(n *unstable.Node) bool {
		switch n.Kind {
		case unstable.Table:
			open, wrong = d.enter(table{of: t}, n, "[%s]")
		case unstable.ArrayTable:
			open, wrong = d.enter(table{of: t}, n, "[[%s]]")
		default:
			wrong = d.keyValue(open, n)
		}
		return wrong == nil
	})
	if wrong != nil {
		return wrong
	}
	return err
}

// enter follows the key of n from a table.
func (d *Document) enter(t table, n *unstable.Node, form string) (table, error) {
	name := ""
	for it := n.Key(); it.Next(); {
		part := string(it.Node().Data)
		next, ok := inside(t.of, part)
		if !ok {
			return t, d.unknown(t, part, int(it.Node().Raw.Offset))
		}
		name = strings.TrimPrefix(name+"."+part, ".")
		t = table{next, fmt.Sprintf(form, name)}
	}
	return t, nil
}

func (d *Document) keyValue(t table, n *unstable.Node) error {
	at, err := d.enter(t, n, "%s")
	if err != nil {
		return err
	}
	return d.value(at, n.Value())
}

// value looks at the keys of inline tables.
func (d *Document) value(t table, n *unstable.Node) (err error) {
	for it := n.Children(); err == nil && it.Next(); {
		switch n.Kind {
		case unstable.InlineTable:
			err = d.keyValue(t, it.Node())
		case unstable.Array:
			err = d.value(t, it.Node())
		}
	}
	return err
}

func (d *Document) unknown(t table, key string, offset int) error {
	problem := fmt.Sprintf("unknown key %q", key)
	if t.name != "" {
		problem += fmt.Sprintf(" in %q", t.name)
	}
	hint := "it has no keys"
	if list := names(t.of); len(list) > 0 {
		hint = "want " + strings.Join(list, ", ")
	}
	return d.errorAt(offset, problem, hint)
}

// base is t without pointers, and for a list what its tables are read into.
func base(t reflect.Type) reflect.Type {
	for !isText(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

// isText reports whether t is read from a string, whatever it is made of.
func isText(t reflect.Type) bool {
	text := reflect.TypeFor[encoding.TextUnmarshaler]()
	return t.Name() != "" && (t.Implements(text) || reflect.PointerTo(t).Implements(text))
}

// inside is the type of a key of t.
func inside(t reflect.Type, name string) (reflect.Type, bool) {
	switch t = base(t); {
	case t.Kind() == reflect.Interface:
		return t, true
	case t.Kind() == reflect.Map:
		return t.Elem(), true
	case t.Kind() == reflect.Struct && !isText(t):
		of, ok := shapeOf(t)[name]
		return of, ok
	}
	return nil, false
}

// shapes keep the keys of each struct: reading them anew for every key of a file
// takes longer than parsing it.
var shapes sync.Map

func shapeOf(t reflect.Type) map[string]reflect.Type {
	if kept, ok := shapes.Load(t); ok {
		return kept.(map[string]reflect.Type)
	}
	shape := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" {
			shape[name] = f.Type
		}
	}
	shapes.Store(t, shape)
	return shape
}

// nameOf is the key of a field, "" for a field that has none.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return strings.TrimPrefix(name, "-")
}

// names are the keys of t, as they are written.
func names(t reflect.Type) []string {
	t = base(t)
	if t.Kind() != reflect.Struct || isText(t) {
		return nil
	}
	var list []string
	for _, f := range reflect.VisibleFields(t) {
		name := nameOf(f)
		if name == "" {
			continue
		}
		switch wanted(f.Type, name) {
		case "a table":
			name = "[" + name + "]"
		case "tables [[" + name + "]]":
			name = "[[" + name + "]]"
		}
		list = append(list, name)
	}
	return list
}

// wanted says what the key of that name takes.
func wanted(t reflect.Type, name string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isText(t):
		return "a string"
	case t.Kind() == reflect.Slice && wanted(t.Elem(), name) == "a table":
		return "tables [[" + name + "]]"
	case t.Kind() == reflect.Slice:
		return "a list of strings"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "a table"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "a whole number"
	case t.Kind() == reflect.Float32, t.Kind() == reflect.Float64:
		return "a number with a point, such as 1.5"
	}
	return "a string"
}

// Lines says on which line each key of a document stands, from 1, by its dotted
// name. The third [[rule]] is "rule[2]". The document is one that Decode has read.
func (d *Document) Lines() map[string]int {
	lines, open := map[string]int{}, ""
	count := map[string]int{}
	_ = d.Each(func(n *unstable.Node) bool {
		if n.Kind == unstable.KeyValue {
			d.note(lines, open, n)
			return true
		}
		var at int
		if open, at = dotted("", n); n.Kind == unstable.ArrayTable {
			open, count[open] = fmt.Sprintf("%s[%d]", open, count[open]), count[open]+1
		}
		lines[open], _ = d.Position(at)
		return true
	})
	return lines
}

// note notes a key, and the keys of inline tables in its value.
func (d *Document) note(lines map[string]int, open string, n *unstable.Node) {
	name, at := dotted(open, n)
	lines[name], _ = d.Position(at)
	i := 0
	for it := n.Value().Children(); it.Next(); i++ {
		switch n.Value().Kind {
		case unstable.InlineTable:
			d.note(lines, name, it.Node())
		case unstable.Array:
			lines[fmt.Sprintf("%s[%d]", name, i)] = lines[name]
		}
	}
}

func dotted(open string, n *unstable.Node) (name string, offset int) {
	for it := n.Key(); it.Next(); {
		open += "." + string(it.Node().Data)
		offset = int(it.Node().Raw.Offset)
	}
	return strings.TrimPrefix(open, "."), offset
}
