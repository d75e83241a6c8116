package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/bawn-dev/bawn/internal/stricttoml"
)

// Limits of one file: far above what people write, and low enough that
// checking a hostile file takes no time worth speaking of.
const (
	maxBytes    = 1 << 20
	maxEntries  = 1024 // of one list
	maxProfiles = 32
	maxChain    = 8 // profiles that extend one another
)

// A setting is one key with its value, where it stands.
type setting struct {
	key   *key
	value any    // string, bool, int64, float64 or time.Duration
	items []item // for a list
	at    Place
}

// An item is one entry of a list.
type item struct {
	text string
	at   Place
}

// A file is what one configuration file says.
type file struct {
	settings []setting
	profiles []*profile
}

// profile returns the profile of that name, and creates it if it does not exist.
func (f *file) profile(name string, at Place) *profile {
	for _, p := range f.profiles {
		if p.name == name {
			return p
		}
	}
	p := &profile{name: name, at: at}
	f.profiles = append(f.profiles, p)
	return p
}

// A part is one part of a dotted key.
type part struct {
	name   string
	offset int
}

type parser struct {
	doc   *stricttoml.Document
	file  Place // the layer and the name
	paths paths
	out   *file
	skip  bool // inside a table that was refused
	errs  Errors
}

// parse reads one file. The error is of type Errors and has positions.
//
// The order matters: the TOML library needs quadratic time to find duplicate
// keys. So it only sees files whose keys are all known.
func parse(data []byte, in Place, p paths) (*file, error) {
	ps := &parser{file: in, paths: p, out: &file{}}
	var err error
	if ps.doc, err = stricttoml.Read(in.File, data); err != nil {
		ps.invalid(err)
		return nil, ps.errs
	}
	var prefix []part
	ps.invalid(ps.doc.Each(func(n *unstable.Node) bool {
		prefix = ps.expression(n, prefix)
		return len(ps.errs) < maxErrors
	}))
	if len(ps.errs) == 0 {
		ps.invalid(ps.doc.Decode(new(map[string]any)))
	}
	return ps.out, ps.errs.err()
}

// at returns the place of an offset.
func (ps *parser) at(offset int) Place {
	p := ps.file
	p.Line, p.Column = ps.doc.Position(offset)
	return p
}

// invalid notes text that is not TOML, and keys or tables stated twice.
func (ps *parser) invalid(err error) {
	var e *stricttoml.Error
	if errors.As(err, &e) {
		at := ps.file
		at.Line, at.Column = e.Line, e.Column
		ps.errs.add(&Error{Place: at, Problem: e.Problem, Hint: e.Hint})
	}
}

// expression reads one line or header and returns the table that is open
// after it.
func (ps *parser) expression(n *unstable.Node, prefix []part) []part {
	parts := keyParts(n.Key())
	switch n.Kind {
	case unstable.Table:
		ps.skip = !ps.header(parts)
		return parts
	case unstable.ArrayTable:
		ps.errs.addf(ps.at(parts[0].offset), "[[%s]] is a list of tables, and there is invalid; want a table in single brackets", escaped(dotted(parts)))
		ps.skip = true
		return parts
	}
	if !ps.skip {
		ps.assign(slices.Concat(prefix, parts), n.Value())
	}
	return prefix
}

func keyParts(it unstable.Iterator) []part {
	var parts []part
	for it.Next() {
		n := it.Node()
		parts = append(parts, part{string(n.Data), int(n.Raw.Offset)})
	}
	return parts
}

func dotted(parts []part) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return strings.Join(names, ".")
}

// escaped is quote without the quotes, for keys.
func escaped(s string) string { return strings.Trim(quote(s), `"`) }

// header checks a table's name and reports whether it is one; a profile exists
// once it is named.
func (ps *parser) header(parts []part) bool {
	last := parts[len(parts)-1]
	if k := resolve(parts); k != nil {
		ps.errs.addf(ps.at(last.offset), "%s must be %s, not a table", k.path, kindNames[k.kind])
		return false
	}
	switch {
	case isTable(parts) && plainParts(parts), len(parts) == 3 && parts[0].name == "profiles" && last.name == "resources":
	default:
		ps.unknown(parts, "table")
		return false
	}
	if parts[0].name == "profiles" && len(parts) > 1 {
		ps.profile(parts[1])
	}
	return true
}

// profile opens the profile of that name, or notes why it can't be.
func (ps *parser) profile(name part) *profile {
	at := ps.at(name.offset)
	switch err := wantName("profile", name.name); {
	case err != nil:
		ps.errs.addf(at, "%v", err)
	case slices.Contains(builtinNames, name.name):
		ps.errs.add(&Error{Place: at, Problem: fmt.Sprintf("profile %q is built in and can't be redefined; want another name", name.name),
			Hint: fmt.Sprintf("a profile of yours can start from it: extends = %q", name.name)})
	case len(ps.out.profiles) >= maxProfiles:
		ps.errs.addf(at, "there are more than %d profiles", maxProfiles)
	default:
		return ps.out.profile(name.name, at)
	}
	return &profile{} // collects what nobody reads
}

// assign takes one key and its value; an inline table is taken key by key.
func (ps *parser) assign(parts []part, n *unstable.Node) {
	if n.Kind == unstable.InlineTable {
		if !ps.header(parts) {
			return
		}
		for it := n.Children(); it.Next(); {
			child := it.Node()
			ps.assign(slices.Concat(parts, keyParts(child.Key())), child.Value())
		}
		return
	}
	k := resolve(parts)
	if k == nil {
		ps.unknown(parts, "key")
		return
	}
	s, ok := ps.setting(k, n, ps.at(parts[len(parts)-1].offset))
	if ok {
		ps.keep(parts, s)
	}
}

// keep files a setting under its profile, or under the file.
func (ps *parser) keep(parts []part, s setting) {
	if parts[0].name != "profiles" {
		if s.key.path == "pinned" && ps.file.Layer != Managed {
			ps.errs.addf(s.at, "pinned may only be set in the managed file")
		}
		ps.out.settings = append(ps.out.settings, s)
		return
	}
	p := ps.profile(parts[1])
	if s.key == extendsKey {
		p.extends, p.extendsAt = s.value.(string), s.at
		return
	}
	p.settings = append(p.settings, s)
}

// resolve finds the key that the parts name, or returns nil if the key is unknown.
func resolve(parts []part) *key {
	if !plainParts(parts) {
		return nil
	}
	if parts[0].name != "profiles" {
		return find(dotted(parts))
	}
	if len(parts) < 3 {
		return nil
	}
	rest := dotted(parts[2:])
	if rest == extendsKey.path {
		return extendsKey
	}
	if k := find("isolation." + rest); k != nil && k.profile {
		return k
	}
	return nil
}

// plainParts reports whether joining the parts with dots is unambiguous: a
// quoted "isolation.network" is one part and names nothing.
func plainParts(parts []part) bool {
	for i, p := range parts {
		isProfile := i == 1 && parts[0].name == "profiles"
		if strings.Contains(p.name, ".") && !isProfile {
			return false
		}
	}
	return true
}

// unknown notes a key or table that does not exist, with the nearest one.
func (ps *parser) unknown(parts []part, what string) {
	path := dotted(parts)
	e := &Error{Place: ps.at(parts[len(parts)-1].offset)}
	if what == "key" && isTable(parts) {
		e.Problem = fmt.Sprintf("%s is a table; want [%s] and its keys", escaped(path), escaped(path))
	} else {
		e.Problem = fmt.Sprintf("unknown %s %s", what, quote(path))
		if e.Hint = unavailable[path]; e.Hint == "" {
			e.Hint = suggest(parts, what)
		}
	}
	ps.errs.add(e)
}

func isTable(parts []part) bool {
	return table(dotted(parts)) || parts[0].name == "profiles" && len(parts) <= 2
}

// suggest names a key that the parts may mean: one of the table that they name,
// or else any: "network" is likely "isolation.network".
func suggest(parts []part, what string) string {
	known := append(slices.Clone(tables), "profiles")
	if what == "key" {
		known = knownKeys(parts)
	}
	table := dotted(parts[:len(parts)-1])
	here := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return strings.TrimSuffix(k, lastName(k)) != table+"." })
	for _, known := range [][]string{here, known} {
		names := each(slices.Clone(known), lastName)
		if i := slices.Index(names, nearest(parts[len(parts)-1].name, names)); i >= 0 {
			return fmt.Sprintf("did you mean %q", known[i])
		}
	}
	return ""
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// knownKeys lists the keys that may stand where the parts do.
func knownKeys(parts []part) []string {
	if parts[0].name != "profiles" || len(parts) < 3 {
		return keyPaths("", func(*key) bool { return true })
	}
	inside := append(keyPaths("isolation.", func(k *key) bool { return k.profile }), extendsKey.path)
	for i := range inside {
		inside[i] = dotted(parts[:2]) + "." + inside[i]
	}
	return inside
}
