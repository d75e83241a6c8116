package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// Members that hold patterns of names, in one agent or another. If a tool
// searches in files, its "pattern" matches their contents.
var globMembers = []string{"include", "include_pattern", "glob", "globs", "glob_pattern", "file_pattern"}

// globs are the patterns of names with which a tool is called.
func (c *Call) globs() (list []string, err error) {
	members := globMembers
	switch c.Tool {
	case "read_many_files":
		members = append(members[:len(members):len(members)], "paths")
	case "Glob", "glob", "find", "file_search", "list_files", "LS", "ls", "list", "list_directory", "list_dir":
		members = append(members[:len(members):len(members)], "pattern", "patterns", "query")
	}
	for _, m := range members {
		more, err := c.paths(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		list = append(list, more...)
	}
	return list, nil
}

// matched adds what patterns of names may match and is not judged otherwise:
// everything that a tool reads by a pattern, and patterns that leave the
// searched directories.
func (c *Call) matched(a bawn.Action, u use) error {
	patterns, err := c.globs()
	if err != nil {
		return err
	}
	dirs := make([]string, len(c.Actions))
	for i := range c.Actions {
		dirs[i] = c.Actions[i].Resource
	}
	for _, pattern := range patterns {
		all, err := alternatives(strings.ReplaceAll(pattern, `\`, ""))
		for _, p := range all {
			if err == nil {
				err = c.match(a, u, dirs, p)
			}
		}
		if err != nil {
			return fmt.Errorf("the pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// match adds what one pattern without braces may match.
func (c *Call) match(a bawn.Action, u use, dirs []string, p string) error {
	base, away, err := baseOf(p)
	switch {
	case err != nil:
		return err
	case u == reads && away && base != p:
		return errors.New("it leads out of the working directory; name the files")
	case u == reads:
		dirs = []string{c.Cwd}
	case !away:
		return nil
	}
	for _, dir := range dirs {
		if a.Resource, err = join(c.Cwd, dir); err == nil {
			a.Resource, err = join(a.Resource, base)
		}
		if err != nil {
			return err
		}
		c.once(a)
	}
	if u == reads && base != p { // a name may have such characters
		a.Resource = path.Join(c.Cwd, p)
		c.once(a)
	}
	return nil
}

// once adds an action that is not there yet.
func (c *Call) once(a bawn.Action) {
	if !slices.ContainsFunc(c.Actions, func(b bawn.Action) bool { p, err := join(c.Cwd, b.Resource); return err == nil && p == a.Resource }) {
		c.Actions = append(c.Actions, a)
	}
}

// wild reports whether a part of a pattern leaves something open.
func wild(part string) bool { return strings.ContainsAny(part, "*?[(") || strings.HasPrefix(part, "!") }

// baseOf is the path below which all that a pattern matches lies: itself, where
// nothing is left open. It leads away where it may be no longer below the
// directory where it is looked for.
func baseOf(pattern string) (base string, away bool, err error) {
	parts := strings.Split(pattern, "/")
	open := slices.IndexFunc(parts, wild)
	up := slices.Contains(parts, "..")
	switch {
	case open < 0:
		base = pattern
	case slices.Contains(parts[open:], ".."):
		return "", true, errors.New(`it has ".." behind what it leaves open; name the directory`)
	default:
		base = strings.Join(parts[:open], "/")
		if base == "" && open > 0 {
			base = "/"
		}
	}
	return cmp.Or(base, "."), up || path.IsAbs(pattern) || strings.HasPrefix(pattern, "~"), nil
}

// maxAlternatives bounds the alternatives of one pattern.
const maxAlternatives = 64

// alternatives are the patterns that one with braces stands for.
func alternatives(pattern string) ([]string, error) {
	done, open := []string{}, []string{pattern}
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		head, choices, tail, ok := braces(p)
		if !ok {
			done = append(done, p)
			continue
		}
		for _, choice := range choices {
			open = append(open, head+choice+tail)
		}
		if len(open)+len(done) > maxAlternatives {
			return nil, fmt.Errorf("it stands for more than %d; want fewer", maxAlternatives)
		}
	}
	return done, nil
}

// braces takes the first pair apart.
func braces(p string) (head string, choices []string, tail string, ok bool) {
	begin := strings.IndexByte(p, '{')
	if begin < 0 {
		return "", nil, "", false
	}
	depth, from := 0, begin+1
	for i := begin; i < len(p); i++ {
		switch c := p[i]; {
		case c == '{':
			depth++
		case c == ',' && depth == 1:
			choices, from = append(choices, p[from:i]), i+1
		case c == '}':
			depth--
		}
		if depth == 0 {
			return p[:begin], append(choices, p[from:i]), p[i+1:], true
		}
	}
	return "", nil, "", false
}

// readMembers are those by which a call is judged.
func readMembers() []string {
	return slices.Concat(commandMembers, pathMembers, dirMembers, patchMembers, globMembers, []string{"url", "urls", "prompt", "pattern", "patterns", "query"})
}

// Distinct reads one JSON object in which every reader finds the same members: as
// Strict requires, and without names that differ only in case from each other or
// from a known one.
func Distinct(data []byte, known ...string) (map[string]json.RawMessage, error) {
	o, err := parse(data)
	if err != nil {
		return nil, err
	}
	return o, o.distinct(known)
}

// distinct refuses names that a reader which does not mind upper and lower case
// takes for another one: Go's does, and the last of them wins.
func (o object) distinct(known []string) error {
	seen := map[string]string{}
	for _, name := range known {
		seen[fspath.Fold(name)] = name
	}
	for name := range o {
		f := fspath.Fold(name)
		if other, is := seen[f]; is && other != name {
			return fmt.Errorf("the members %q and %q are one for some readers; want the one that the tool documents", name, other)
		}
		seen[f] = name
	}
	return nil
}
