package hooksetup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// TOML has no parser here that keeps comments, so a file is edited as lines.
// What the lines say is read before and after, and an edit that has changed
// anything but what it was to change is an error.

// A table is where the lines of a [table] stand: its header at from, the last
// line that says something of it before to.
type table struct {
	path     []string
	from, to int
}

// A tomlFile is a settings file in TOML.
type tomlFile struct{ lines []string }

func readTOML(text []byte) (*tomlFile, error) {
	if _, err := tomlMeaning(text); err != nil {
		return nil, err
	}
	return &tomlFile{strings.SplitAfter(string(text), "\n")}, nil
}

func (f *tomlFile) bytes() []byte { return []byte(strings.Join(f.lines, "")) }

func tomlMeaning(text []byte) (map[string]any, error) {
	v := map[string]any{}
	err := toml.Unmarshal(text, &v)
	return v, err
}

// find returns where a table stands that has a header of its own.
func (f *tomlFile) find(path []string) (table, bool) {
	for i, line := range f.lines {
		if t, ok := header(line); ok && slices.Equal(t, path) {
			return table{path, i, f.end(i)}, true
		}
	}
	return table{}, false
}

// end is the line behind the last that says something of the table at from.
func (f *tomlFile) end(from int) int {
	last := from
	for i := from + 1; i < len(f.lines); i++ {
		line := strings.TrimSpace(f.lines[i])
		if strings.HasPrefix(line, "[") {
			break
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			last = i
		}
	}
	return last + 1
}

// header returns the path of a line that begins a [table]. It returns false for the
// line of an array of tables.
func header(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "[") || strings.HasPrefix(line, "[[") {
		return nil, false
	}
	v, err := tomlMeaning([]byte(line + "\n"))
	if err != nil {
		return nil, false
	}
	var path []string
	for len(v) == 1 {
		for name, next := range v {
			path = append(path, name)
			v, _ = next.(map[string]any)
		}
	}
	return path, len(v) == 0
}

// key returns the name that a line of a table gives a value, or "".
func key(line string) string {
	name, _, ok := strings.Cut(strings.TrimSpace(line), "=")
	if !ok || strings.HasPrefix(name, "#") {
		return ""
	}
	return strings.Trim(strings.TrimSpace(name), `"'`)
}

// setTOML returns a file in which path, a table and a name in it, has a value.
// Where it has it already the file is what it was. A table is put at the end of
// the file where it has no header of its own.
func setTOML(old []byte, value any, path ...string) ([]byte, error) {
	want, err := tomlMeaning(old)
	if err != nil {
		return nil, err
	}
	if v, ok := lookup(want, path); ok && same(v, value) {
		return old, nil
	}
	f, err := readTOML(old)
	if err != nil {
		return nil, err
	}
	table, name := path[:len(path)-1], path[len(path)-1]
	line := name + " = " + tomlValue(value) + "\n"
	if at, ok := f.find(table); ok {
		i := slices.IndexFunc(f.lines[at.from:at.to], func(l string) bool { return key(l) == name })
		if i >= 0 {
			f.lines[at.from+i] = line
		} else {
			f.lines[at.from] = strings.TrimSuffix(f.lines[at.from], "\n") + "\n"
			f.lines = slices.Insert(f.lines, at.from+1, line)
		}
	} else {
		f.append(tomlHeader(table) + "\n" + line)
	}
	if err := assign(want, value, path); err != nil {
		return nil, err
	}
	return f.verified(want)
}

// append adds lines at the end, behind an empty one.
func (f *tomlFile) append(text string) {
	whole := strings.TrimRight(strings.Join(f.lines, ""), "\n")
	if whole != "" {
		whole += "\n\n"
	}
	f.lines = strings.SplitAfter(whole+text, "\n")
}

// unsetTOML takes a value out again, and its table's header where that has
// nothing else.
func unsetTOML(old []byte, path ...string) ([]byte, error) {
	want, err := tomlMeaning(old)
	if err != nil {
		return nil, err
	}
	f, err := readTOML(old)
	if err != nil {
		return nil, err
	}
	table, name := path[:len(path)-1], path[len(path)-1]
	at, ok := f.find(table)
	if !ok {
		return old, nil
	}
	i := slices.IndexFunc(f.lines[at.from:at.to], func(l string) bool { return key(l) == name })
	if i < 0 {
		return old, nil
	}
	f.lines = slices.Delete(f.lines, at.from+i, at.from+i+1)
	if rest := f.lines[at.from+1 : f.end(at.from)]; len(rest) == 0 {
		from := at.from
		if from > 0 && strings.TrimSpace(f.lines[from-1]) == "" {
			from-- // the line that was put before it
		}
		f.lines = slices.Delete(f.lines, from, at.from+1)
	}
	clear := func(m map[string]any) { delete(m, name) }
	if err := within(want, table, clear); err != nil {
		return nil, err
	}
	return f.verified(want)
}

// verified returns the text if it says what is wanted, but for tables that are
// empty.
func (f *tomlFile) verified(want map[string]any) ([]byte, error) {
	text := f.bytes()
	got, err := tomlMeaning(text)
	if err != nil {
		return nil, fmt.Errorf("the edit would have made the file unreadable (%w); nothing was written", err)
	}
	if !same(full(got), full(want)) {
		return nil, fmt.Errorf("the edit would have changed more than bawn's own; nothing was written")
	}
	return text, nil
}

// full is a table without tables that hold nothing.
func full(m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		if t, ok := v.(map[string]any); ok {
			if t = full(t); len(t) == 0 {
				continue
			}
			v = t
		}
		out[name] = v
	}
	return out
}

func lookup(m map[string]any, path []string) (any, bool) {
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			return nil, false
		}
		m = next
	}
	v, ok := m[path[len(path)-1]]
	return v, ok
}

func assign(m map[string]any, value any, path []string) error {
	return within(m, path[:len(path)-1], func(m map[string]any) { m[path[len(path)-1]] = value })
}

// within calls f with the table at path, and creates the table if it does not
// exist.
func within(m map[string]any, path []string, f func(map[string]any)) error {
	for i, name := range path {
		next, ok := m[name].(map[string]any)
		if !ok && m[name] != nil {
			return fmt.Errorf("%q is no table", strings.Join(path[:i+1], "."))
		}
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	f(m)
	return nil
}

func tomlHeader(path []string) string {
	quoted := make([]string, len(path))
	for i, name := range path {
		if quoted[i] = name; strings.ContainsFunc(name, func(r rune) bool { return !wordRune(r) }) || name == "" {
			quoted[i] = tomlValue(name)
		}
	}
	return "[" + strings.Join(quoted, ".") + "]"
}

func wordRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// tomlValue writes a boolean, a number or a string.
func tomlValue(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
