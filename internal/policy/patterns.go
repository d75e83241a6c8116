package policy

import (
	"path"
	"strings"

	"github.com/bawn-dev/bawn"
)

// couldMatch reports whether a pattern of names that a command reads or writes
// can stand for a name of which the rule warns. Only rules about names
// anywhere ("**/.env") are asked, and only patterns that say enough of the
// name: "*.json" is not taken for credentials.json, "cred*" is.
func (r *rule) couldMatch(pattern string) bool {
	name, anywhere := strings.CutPrefix(r.path, "**/")
	if r.Verdict == bawn.Allow || !anywhere || strings.Contains(name, "/") {
		return false
	}
	p := path.Base(pattern)
	if r.Source == bawn.Builtin {
		name, p = strings.ToLower(name), strings.ToLower(p)
	}
	if !strings.ContainsAny(p, wildcards) {
		return false
	}
	before, after := p[:strings.IndexAny(p, wildcards)], p[strings.LastIndexAny(p, wildcards)+1:]
	if i := strings.IndexByte(name, '*'); i >= 0 {
		start, end := name[:i], name[strings.LastIndexByte(name, '*')+1:]
		said := len(before) > 2 || strings.HasPrefix(before, ".") || start == ""
		return said && alike(start, before, strings.HasPrefix) && alike(end, after, strings.HasSuffix) && (start != "" || strings.HasSuffix(after, end))
	}
	said := len(before) > 2 || strings.HasPrefix(before, ".") || len(after) > 3 && after[0] != '.'
	return said && wildSegment(p, name)
}

const wildcards = "*?["

// alike reports whether one of two ends of names can be the end of the other.
func alike(a, b string, ends func(s, end string) bool) bool { return ends(a, b) || ends(b, a) }
