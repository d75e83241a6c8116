package plugin

import (
	"bytes"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// linesOf says on which line each key of a manifest stands, from 1, by its
// dotted name. The text is known to be TOML.
func linesOf(text []byte) map[string]int {
	var p unstable.Parser
	p.Reset(text)
	lines, prefix := map[string]int{}, ""
	for p.NextExpression() {
		n := p.Expression()
		name, offset := keyName(n.Key())
		if n.Kind == unstable.Table || n.Kind == unstable.ArrayTable {
			prefix = name + "."
		} else {
			name = prefix + name
		}
		note(lines, text, name, offset)
		if n.Kind == unstable.KeyValue {
			inside(lines, text, name, n.Value())
		}
	}
	return lines
}

// inside notes the keys of an inline table.
func inside(lines map[string]int, text []byte, name string, n *unstable.Node) {
	if n.Kind != unstable.InlineTable {
		return
	}
	for it := n.Children(); it.Next(); {
		key, offset := keyName(it.Node().Key())
		note(lines, text, name+"."+key, offset)
		inside(lines, text, name+"."+key, it.Node().Value())
	}
}

func keyName(it unstable.Iterator) (name string, offset int) {
	var parts []string
	for it.Next() {
		parts = append(parts, string(it.Node().Data))
		offset = int(it.Node().Raw.Offset)
	}
	return strings.Join(parts, "."), offset
}

func note(lines map[string]int, text []byte, name string, offset int) {
	lines[name] = 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// NameIn returns what a manifest calls its plugin, "" where it does not say, or
// is no TOML.
func NameIn(text []byte) string {
	var d struct {
		Name string `toml:"name"`
	}
	if len(text) > maxManifest || toml.Unmarshal(text, &d) != nil {
		return ""
	}
	return d.Name
}
