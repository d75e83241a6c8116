package policycli

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/suggest"
)

// advice is what rules would allow an action, or why none can.
type advice struct {
	file  string
	rules []bawn.Rule
	none  string
}

func (a *advice) text() string {
	switch {
	case len(a.rules) == 1:
		return "this rule in " + a.file + " would allow it; widen the pattern with care"
	case len(a.rules) > 1:
		return "these rules in " + a.file + " would allow it; widen their patterns with care"
	case a.none != "":
		return "no rule can allow it: " + a.none
	}
	return ""
}

// advise looks for the narrowest rules that would allow what x explains.
func advise(p *policy.Policy, o policy.Options, x *explanation) advice {
	a := suggest.Allow(suggest.Input{Question: *x.question, Rules: p.Rules(), Options: o})
	return advice{rules: a.Rules, none: a.None}
}
