package policy

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// Builtins are the rules of every policy, from data/rules.txt.
func Builtins() []bawn.Rule {
	var out []bawn.Rule
	for e := range entries("rules.txt", rulesText) {
		r := must(parseRule(&e))
		var match, not string
		e.cut(&match, &not)
		r.Match, r.NotMatch = listOf(match), listOf(not)
		out = append(out, r)
	}
	return out
}

// compiledBuiltins are they, ready to be asked, without their examples. These
// are tried by a test: each start of a process would pay for it.
var compiledBuiltins = sync.OnceValue(func() (out []*rule) {
	for e := range entries("rules.txt", rulesText) {
		out = append(out, must(compile(must(parseRule(&e)))))
	}
	return slices.Clip(out)
})

// Prepare reads what most decisions need of the embedded data, which they would
// do otherwise. It may run beside a decision, and panics as one would if the
// data were broken.
func Prepare() {
	builtin().protected()
	compiledBuiltins()
}

// parseRule reads ID | KIND | OPERATIONS | PATTERN | VERDICT | PRIORITY | WHEN |
// REASON | MATCH | NOMATCH and leaves the examples.
func parseRule(e *entry) (r bawn.Rule, err error) {
	r.Source = bawn.Builtin
	var kind, ops, verdict, priority, when string
	if !e.cut(&r.ID, &kind, &ops, &r.Pattern, &verdict, &priority, &when, &r.Reason) || strings.Count(e.text, " | ") != 1 {
		return r, e.errorf("want 10 fields")
	}
	if err = r.Kind.UnmarshalText([]byte(kind)); err != nil {
		return r, e.errorf("%v", err)
	}
	if ops != "-" {
		for name := range strings.SplitSeq(ops, ",") {
			var op bawn.Operation
			if err = op.UnmarshalText([]byte(name)); err != nil {
				return r, e.errorf("%v", err)
			}
			r.Operations = append(r.Operations, op)
		}
	}
	if err = r.Verdict.UnmarshalText([]byte(verdict)); err != nil {
		return r, e.errorf("%v", err)
	}
	if err = r.When.UnmarshalText([]byte(when)); err != nil {
		return r, e.errorf("%v", err)
	}
	if r.Priority, err = strconv.Atoi(priority); err != nil {
		return r, e.errorf("%v", err)
	}
	return r, nil
}
