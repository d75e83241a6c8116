package fspath

import (
	"path"
	"slices"
	"strings"
)

// LinkInside returns where a link leads that lies at name in a directory, as a name there,
// and reports whether it stays in the directory whatever becomes of what it leads through.
// It must be relative, and lead up first and then down. A backslash may be a separator
// elsewhere.
func LinkInside(name, to string) (at string, ok bool) {
	if to == "" || path.IsAbs(to) || strings.ContainsAny(to, "\\\x00") {
		return "", false
	}
	rest := to
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	at = path.Join(path.Dir(name), to)
	return at, !slices.Contains(strings.Split(rest, "/"), "..") && at != ".." && !strings.HasPrefix(at, "../")
}
