package workcopy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A Step is one change to carry out.
type Step struct {
	Change Change
	Path   string
	Was    Entry // what the host had there, and has to have still; a zero one for nothing
	To     Returned
}

// Compare says what a guest has changed, in an order in which it can be carried
// out, and what of that is left as it is.
func Compare(taken Manifest, got *Contents, r Rules) (steps []Step, left []Left) {
	c := &comparison{taken: taken, got: got, rules: r, links: linksOf(taken, got), astray: map[string]string{}}
	c.detours()
	c.removed()
	for _, rel := range got.Order {
		c.returned(rel)
	}
	return c.steps, c.left
}

type comparison struct {
	taken Manifest
	got   *Contents
	rules Rules
	links map[string]way
	steps []Step
	left  []Left
	// astray are links that come, in small letters, with which one of the host's
	// would lead to what is not the session's, and why they don't come back.
	astray map[string]string
}

// removed finds what is gone, or is another kind of thing now, deepest first.
func (c *comparison) removed() {
	var gone []string
	for rel, was := range c.taken {
		now, there := c.got.At[rel]
		if !there || (now.Kind != was.Kind && (was.Kind == Dir || now.Kind == Dir)) {
			gone = append(gone, rel)
		}
	}
	slices.SortFunc(gone, func(a, b string) int { return strings.Compare(b, a) })
	for _, rel := range gone {
		was := c.taken[rel]
		c.add(Step{Change: Remove, Path: rel, Was: was}, was.Kind == Dir)
	}
}

// returned compares one entry.
func (c *comparison) returned(rel string) {
	now, was := c.got.At[rel], c.taken[rel]
	switch {
	case now.odd != "":
		c.left = append(c.left, Left{rel, now.odd})
	case now.same(was):
	case now.Kind == Dir:
		c.add(Step{Change: Make, Path: rel, To: now}, true)
	case now.Kind == Link:
		if why := c.leads(rel, now.To); why != "" {
			c.left = append(c.left, Left{rel, why})
			return
		}
		c.add(c.put(PutLink, rel, now, was), false)
	default:
		c.add(c.put(Put, rel, now, was), false)
	}
}

// put replaces a file or a link. A directory in its place is removed before.
func (c *comparison) put(change Change, rel string, now Returned, was Entry) Step {
	if was.Kind == Dir {
		was = Entry{}
	}
	return Step{Change: change, Path: rel, Was: was, To: now}
}

// add keeps a step that the rules allow.
func (c *comparison) add(s Step, isDir bool) {
	if why := c.rules.closed(s.Change, s.Path, isDir); why != "" {
		c.left = append(c.left, Left{s.Path, why})
		return
	}
	c.steps = append(c.steps, s)
}

// leads says why a link may not be brought back, or "". It must lead up first
// and then down: then it stays inside, whatever its parts become. And wherever it
// leads through other links, there and here, must be the session's.
func (c *comparison) leads(rel, to string) string {
	if path.IsAbs(to) || strings.ContainsRune(to, '\\') {
		return leadsOut
	}
	rest := to
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
	}
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return leadsOut
	}
	at := path.Join(path.Dir(rel), to)
	if at == ".." || strings.HasPrefix(at, "../") {
		return leadsOut
	}
	end, _, why := c.follow(rel, to, false)
	if why != "" {
		return why
	}
	return cmp.Or(c.foreign(at), c.foreign(end), c.astray[strings.ToLower(rel)])
}

// foreign says why a link may not lead to a place, or "".
func (c *comparison) foreign(at string) string {
	if at == "." {
		return ""
	}
	if why := c.rules.closed(Put, at, false); why != "" {
		return "it leads to what is not the session's: " + why
	}
	return ""
}
