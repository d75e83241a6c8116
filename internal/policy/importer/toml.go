package importer

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/stricttoml"
)

// parseTOML reads a file of TOML 1.0.
func (r *reader) parseTOML(data []byte) (map[string]any, error) {
	out := map[string]any{}
	err := stricttoml.Decode(r.File, data, &out)
	var e *stricttoml.Error
	if errors.As(err, &e) {
		return nil, r.errorAt(e.Line, "%s", e.Problem)
	}
	return out, err
}

// keyLine is the first line that sets a key or opens a table of that name. Keys
// of the same name in other tables may be mistaken for it, which only misplaces
// a report.
func keyLine(data []byte, key string) int {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		name, _, _ := strings.Cut(string(text), "=")
		name = strings.Trim(strings.TrimSpace(name), "[]\"' ")
		if name == key || strings.HasSuffix(name, "."+key) || strings.HasPrefix(name, key+".") {
			return n
		}
	}
	return 1
}

// tableLines are the lines of the headers [[name]].
func tableLines(data []byte, name string) func(int) int {
	var lines []int
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if head, _, _ := strings.Cut(string(text), "#"); strings.Join(strings.Fields(head), "") == "[["+name+"]]" {
			lines = append(lines, n)
		}
	}
	return func(i int) int {
		if i < len(lines) {
			return lines[i]
		}
		return 1
	}
}

// texts are the strings of a value that is one string or a list of them.
func texts(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []any:
		var out []string
		for _, it := range v {
			s, ok := it.(string)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	return nil, false
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// shown is a value as it is shown in a report.
func shown(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "{...}"
	case []any:
		if list, ok := texts(v); ok {
			return fmt.Sprintf("%q", list)
		}
		return "[...]"
	}
	return fmt.Sprint(v)
}
