package policy

import (
	"strings"

	"github.com/bawn-dev/bawn/internal/protect"
)

// allProtected are the paths of the system, which text lists, and the table of
// names.
func allProtected(text string) (protections, error) {
	out, err := parseProtected("protected.txt", text)
	if err != nil {
		return out, err
	}
	all := protect.All()
	list := make([]protection, 0, len(all))
	for i := range all {
		e := &all[i]
		if e.Class == protect.Guard { // within an agent's own place, which is protected whole
			continue
		}
		list = append(list, protection{system: e.System, reads: e.Secret(), pattern: patternOf(e), reason: e.Why})
		p := &list[len(list)-1]
		p.literal = longest(p.pattern)
		if !e.Secret() {
			p.reason = e.By + " obeys it: " + e.Why
		}
		if e.Opens() {
			p.name, p.plain, p.login = e.Path(), e.Path()[0] != '.', e.Class == protect.Login
		}
		out.add(p.pattern, p)
	}
	return out, nil
}

// patternOf writes an entry as a pattern of paths.
func patternOf(e *protect.Entry) string {
	p := strings.ToLower(e.Pattern)
	if e.Dir() {
		p += "**"
	}
	if e.Home() {
		return p
	}
	return "**/" + p
}

// longest is the longest part of a pattern between wildcards.
func longest(pattern string) string {
	best := ""
	for _, s := range strings.FieldsFunc(strings.TrimPrefix(pattern, "~"), func(r rune) bool { return r == '*' || r == '?' }) {
		if s = strings.Trim(s, "/"); len(s) > len(best) {
			best = s
		}
	}
	return best
}
