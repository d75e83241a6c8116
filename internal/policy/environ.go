package policy

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// An environRule says whether a variable may be set for a command, to the one
// value if it has one.
type environRule struct {
	allow               bool
	name, value, reason string
	one                 bool
}

func parseEnviron(file, data string) (out []environRule, err error) {
	for e := range entries(file, data) {
		var says, setting, reason string
		if !e.cut(&says, &setting, &reason) || !e.ended || says != "allow" && says != "deny" {
			return nil, e.errorf("want allow | NAME | REASON, allow | NAME=VALUE | REASON or deny | NAME | REASON")
		}
		name, value, one := strings.Cut(setting, "=")
		if one && says == "deny" {
			return nil, e.errorf("only what is allowed can be for one value")
		}
		out = append(out, environRule{says == "allow", name, value, reason, one})
	}
	return out, nil
}

// setting judges NAME=VALUE. The first rule that names the variable speaks; a
// variable that none names may have a short plain value, which is no path and
// no program.
func (k *knowledge) setting(name, value string, known bool) (bawn.Verdict, string) {
	upper := strings.ToUpper(name)
	for _, r := range k.environ() {
		switch {
		case !wild(r.name, upper), r.one && !(known && value == r.value):
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
	return slices.ContainsFunc(k.secrets(), func(p string) bool { return wild(p, upper) })
}
