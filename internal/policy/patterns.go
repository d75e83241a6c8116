package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/grammar"
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

// executes reports whether a command runs or reads as a script a file that the
// same line has written, whatever its ending.
func (r *reading) executes(a []string, k part) (string, bool) {
	if k.wild != runsRepository {
		return "", false
	}
	for _, w := range a {
		for _, v := range strings.FieldsFunc(w, func(c rune) bool { return c == '=' || c == '@' }) {
			if i := slices.Index(r.data, path.Base(v)); i >= 0 {
				return r.data[i], true
			}
		}
	}
	return "", false
}

// texts are the words of a command.
func texts(words []grammar.Word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.Text
	}
	return out
}

// readsFiles reports whether a command reads what is in files.
func readsFiles(c *shell.Command) bool {
	return slices.ContainsFunc(c.Meaning.Claims, func(cl grammar.Claim) bool { return cl.Verb == grammar.Read || cl.Verb == grammar.ReadTree }) ||
		slices.ContainsFunc(c.Redirects, func(rd shell.Redirect) bool { return rd.Reads() })
}

// leadsOut reports whether a link is made to what is not in the workspace.
func (r *reading) leadsOut(c *shell.Command) bool {
	for _, cl := range c.Meaning.Claims {
		if cl.Verb == grammar.Write {
			continue
		}
		if slices.ContainsFunc(r.places(c, cl), func(name string) bool { return !r.q.inWorkspace(name) }) {
			return true
		}
	}
	return false
}

// movesAway asks where files of the workspace are moved to a directory for
// temporary files, which a sandbox throws away.
func (r *reading) movesAway(c *shell.Command, j *judgement) {
	moves, target := false, ""
	for _, cl := range c.Meaning.Claims {
		for _, name := range r.places(c, cl) {
			switch {
			case cl.Verb == grammar.Move:
				moves = moves || r.q.inWorkspace(name)
			case (cl.Verb == grammar.Write || cl.Verb == grammar.WriteTree) && !r.q.inWorkspace(name):
				target = name
			}
		}
	}
	if moves && target != "" {
		j.lower(stageClaim, bawn.Ask, "builtin:moves-away", bawn.Builtin, "it moves files of the workspace to "+target)
		j.fixed = true
	}
}
