package workcopy

import (
	"fmt"
	"path"
	"strings"
)

const (
	leadsOut    = "it is a link out of the workspace"
	leadsUnsure = "it leads through a link that was changed"
	leadsOn     = "it leads through too many links"
)

// maxLinks is how many the kernel follows (path_resolution(7)).
const maxLinks = 40

// A way is where a link leads, that the host has or that comes back.
type way struct {
	to     string // of one that comes, where there are both
	comes  bool
	unsure bool // it is not the same here and there
}

// linksOf are all links, by their names in small letters: a file system may not
// tell them apart.
func linksOf(taken Manifest, got *Contents) map[string]way {
	links := map[string]way{}
	for rel, e := range taken {
		if e.Kind == Link {
			links[strings.ToLower(rel)] = way{to: e.To}
		}
	}
	for rel, e := range got.At {
		if e.Kind == Link {
			links[strings.ToLower(rel)] = way{to: e.To, comes: !e.same(taken[rel])}
		}
	}
	check := func(rel string, e Entry) {
		key := strings.ToLower(rel)
		if w, ok := links[key]; ok && (e.Kind != Link || e.To != w.to) {
			w.unsure = true
			links[key] = w
		}
	}
	for rel, e := range taken {
		check(rel, e)
	}
	for rel, e := range got.At {
		check(rel, e.Entry)
	}
	return links
}

// follow says where a link finally leads, through which other links of the copy,
// and why that is outside or unknown. A changed link is followed as it comes
// back, any other as it was.
func (c *comparison) follow(rel, to string, changed bool) (end string, comes []string, why string) {
	followed := 0
	at, rest := path.Dir(rel), strings.Split(to, "/")
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && at == ".":
			return "", comes, leadsOut
		case part == "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		w, ok := c.links[strings.ToLower(next)]
		if !ok {
			at = next
			continue
		}
		if followed++; w.comes {
			comes = append(comes, strings.ToLower(next))
		}
		switch {
		case w.unsure && !changed:
			return "", comes, leadsUnsure
		case path.IsAbs(w.to):
			return "", comes, leadsOut
		case followed > maxLinks:
			return "", comes, leadsOn
		}
		rest = append(strings.Split(w.to, "/"), rest...)
	}
	return at, comes, ""
}

// detours finds links that come, on the way of one that the host has: its words may
// lead elsewhere with them.
func (c *comparison) detours() {
	for rel, was := range c.taken {
		if was.Kind != Link {
			continue
		}
		end, comes, why := c.follow(rel, was.To, true)
		if len(comes) == 0 {
			continue
		}
		if why == "" {
			why = c.foreign(end)
		}
		for _, link := range comes {
			if why != "" {
				c.astray[link] = fmt.Sprintf("with it, of %q: %s", rel, why)
			}
		}
	}
}
