package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
)

// A protection is a pattern of paths that nothing may touch, or only read.
type protection struct {
	system  string // "all", "linux", "darwin", "windows"
	reads   bool   // reading is denied as well
	pattern string
	reason  string
	name    string // by which it is opened for a project, or ""
	login   bool   // it counts where a home directory may be, and at the top of a workspace
	plain   bool   // a wildcard that matches it is not meant to, perhaps
	literal string // a text that every matching path contains
}

type protections = index[*protection]

func parseProtected(file, data string) (out protections, err error) {
	list := make([]protection, 0, strings.Count(data, "\n")+1)
	out = newIndex[*protection](cap(list))
	for e := range entries(file, data) {
		list = append(list, protection{})
		p, operations := &list[len(list)-1], ""
		if !e.cut(&p.system, &operations, &p.pattern, &p.reason) || !e.ended {
			return out, e.errorf("want SYSTEM | OPERATIONS | PATTERN | REASON")
		}
		p.pattern = strings.ToLower(p.pattern)
		p.literal = longest(p.pattern)
		switch operations {
		case "read,write":
			p.reads = true
		case "write":
		default:
			return out, e.errorf("unknown operations %q; want write or read,write", operations)
		}
		if !slices.Contains([]string{"all", "linux", "darwin", "windows"}, p.system) {
			return out, e.errorf("unknown system %q", p.system)
		}
		out.add(p.pattern, p)
	}
	return out, nil
}

// protectedBy returns the protection that stands against an operation on a
// clean absolute path. Letter case never makes a difference: a file system
// that ignores it may hold the path.
func (k *knowledge) protectedBy(q *Question, op bawn.Operation, p string, pattern bool) (*protection, bool) {
	if pattern {
		return k.protectedPattern(q, op, strings.ToLower(p))
	}
	for _, spelled := range slices.Compact([]string{strings.ToLower(p), protect.Fold(p)}) {
		if pr := k.protectedPath(q, op, spelled); pr != nil {
			return pr, true
		}
	}
	return nil, false
}

func (k *knowledge) protectedPath(q *Question, op bawn.Operation, lower string) (found *protection) {
	home := strings.ToLower(q.Home)
	protected := k.protected()
	protected.each(lower, func(pr *protection) bool {
		if pr.speaks(q, op) && strings.Contains(lower, pr.literal) && pr.covers(lower, home, false) && !pr.opened(q, op, lower) && !pr.deep(q, lower) {
			found = pr
			return false
		}
		return true
	})
	return found
}

// protectedPattern prefers names that a wildcard hardly means.
func (k *knowledge) protectedPattern(q *Question, op bawn.Operation, lower string) (found *protection, ok bool) {
	home := strings.ToLower(q.Home)
	for _, pr := range k.protected().list {
		if (found == nil || !pr.plain) && pr.speaks(q, op) && pr.covers(lower, home, true) && !pr.opened(q, op, lower) {
			if found = pr; !pr.plain {
				break
			}
		}
	}
	return found, found != nil
}

func (pr *protection) speaks(q *Question, op bawn.Operation) bool {
	system := q.System == "" || pr.system == "all" || pr.system == q.System
	return system && (op != bawn.Read || pr.reads)
}

// opened reports whether a path lies in the project and may have its name there: because
// the user has opened the name, or because the change stays in a copy until a human
// applies it.
func (pr *protection) opened(q *Question, op bawn.Operation, lower string) bool {
	onCopy := q.Copy && !pr.reads && (op == bawn.Write || op == bawn.Create || op == bawn.Delete)
	if !onCopy && (pr.name == "" || !slices.Contains(q.Unprotected, pr.name)) {
		return false
	}
	inner := Question{Workspace: strings.ToLower(q.Workspace), Home: strings.ToLower(q.Home)}
	return inner.inWorkspace(lower)
}

// deep reports whether a name of a login lies below the top of a workspace that holds
// no home directory, where no program executes it.
func (pr *protection) deep(q *Question, lower string) bool {
	if !pr.login || !q.Project {
		return false
	}
	inner := Question{Workspace: strings.ToLower(q.Workspace), Home: strings.ToLower(q.Home)}
	below := strings.TrimPrefix(lower, inner.Workspace)
	return inner.inWorkspace(lower) && pr.match(pr.pattern, below, false) && !pr.match(strings.TrimPrefix(pr.pattern, "**"), below, false)
}

// verdict is what becomes of a use that a protection stands against.
func (pr *protection) verdict(u use) bawn.Verdict {
	if u.pattern && pr.plain {
		return bawn.Ask
	}
	return bawn.Deny
}

// remedy is the reason, with what opens the name where something does.
func (pr *protection) remedy() string {
	if pr.name == "" {
		return pr.reason
	}
	return pr.reason + "; isolation.unprotect = [\"" + pr.name + "\"] opens it for a project"
}

// covers matches the path, or paths that a pattern could match.
func (pr *protection) covers(p, home string, pattern bool) bool {
	want := pr.pattern
	if rest, ok := strings.CutPrefix(want, "~/"); ok {
		// The home directory is the session's own, or any that looks like a home.
		if pr.coversBelow(p, home, rest, pattern) {
			return true
		}
		return slices.ContainsFunc(homes, func(h string) bool { return pr.match(h+"/"+rest, p, pattern) })
	}
	return pr.match(want, p, pattern)
}

// homes are patterns of home directories.
var homes = []string{"/home/*", "/users/*", "/root", "/var/root"}

func (pr *protection) coversBelow(p, home, rest string, pattern bool) bool {
	return home != "" && home != "/" && pr.match(home+"/"+rest, p, pattern)
}

func (pr *protection) match(want, p string, pattern bool) bool {
	if !pattern {
		return fspath.Match(want, p)
	}
	return overlap(strings.Split(want, "/"), strings.Split(p, "/"))
}

// overlap reports whether some path can match both patterns; it is rather
// true once too often. "**" stands for any number of segments in a only.
func overlap(a, b []string) bool {
	switch {
	case len(a) == 0:
		return len(b) == 0
	case a[0] == "**":
		return overlap(a[1:], b) || len(b) > 0 && overlap(a, b[1:])
	case len(b) == 0:
		return false
	}
	return segments(a[0], b[0]) && overlap(a[1:], b[1:])
}

// segments reports whether two segments, each maybe with wildcards, can be
// the same: their literal beginnings and ends must agree. A leading dot is
// matched only by a dot, as in the shell.
func segments(a, b string) bool {
	const special = "*?["
	i, j := strings.IndexAny(a, special), strings.IndexAny(b, special)
	switch {
	case i < 0 && j < 0:
		return a == b
	case i < 0:
		return wildSegment(b, a)
	case j < 0:
		return wildSegment(a, b)
	}
	n := min(i, j)
	return a[:n] == b[:n] && (j > 0 || a[0] != '.') && sameEnd(a, b)
}

// sameEnd reports whether two segments with wildcards can end alike: as far as the
// shorter of the texts after their last wildcard.
func sameEnd(a, b string) bool {
	const special = "*?[]{}()!+@,"
	i, j := a[strings.LastIndexAny(a, special)+1:], b[strings.LastIndexAny(b, special)+1:]
	n := min(len(i), len(j))
	return i[len(i)-n:] == j[len(j)-n:]
}

// wildSegment matches a shell pattern of one segment; an unknown construct
// matches.
func wildSegment(pattern, text string) bool {
	if strings.HasPrefix(text, ".") && pattern[0] != '.' {
		return false
	}
	if strings.ContainsAny(pattern, "[({!+@") {
		n := strings.IndexAny(pattern, "*?[({!+@")
		return strings.HasPrefix(text, pattern[:n])
	}
	ok, err := path.Match(pattern, text)
	return ok || err != nil
}
