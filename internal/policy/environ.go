package policy

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// An environRule says whether a variable may be set for a command.
type environRule struct {
	allow        bool
	name, reason string
}

func parseEnviron(list []entry) (out []environRule, err error) {
	for _, e := range list {
		if len(e.fields) != 3 || e.fields[0] != "allow" && e.fields[0] != "deny" {
			return nil, e.errorf("want allow | NAME | REASON or deny | NAME | REASON")
		}
		out = append(out, environRule{e.fields[0] == "allow", e.fields[1], e.fields[2]})
	}
	return out, nil
}

// setting judges NAME=VALUE. The first rule that names the variable speaks; a
// variable that none names may have a short plain value, which is no path and
// no program.
func (k *knowledge) setting(name, value string, known bool) (bawn.Verdict, string) {
	upper := strings.ToUpper(name)
	for _, r := range k.environ {
		switch {
		case !wild(r.name, upper):
		case r.allow && known && !strings.ContainsAny(value, "/`$\n"):
			return bawn.Allow, name + ": " + r.reason
		default:
			return bawn.Ask, name + ": " + r.reason
		}
	}
	if known && len(value) <= 64 && plainValue(value) {
		return bawn.Allow, name + " is no variable that changes what runs"
	}
	return bawn.Ask, name + " may change what runs"
}

func plainValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(" ._,+-", c))
	})
}

// secret reports whether a variable's name says that it holds a secret.
func (k *knowledge) secret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(k.secrets, func(p string) bool { return wild(p, upper) })
}
