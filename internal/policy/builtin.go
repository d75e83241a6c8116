package policy

import (
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Builtins are the rules of every policy (SPEC C3), from data/rules.txt.
func Builtins() []bawn.Rule {
	var out []bawn.Rule
	for _, e := range embedded("data/rules.txt") {
		out = append(out, must(parseRule(e)))
	}
	return out
}

// parseRule reads ID | KIND | OPERATIONS | PATTERN | VERDICT | PRIORITY |
// REASON | MATCH | NOMATCH.
func parseRule(e entry) (r bawn.Rule, err error) {
	if len(e.fields) != 9 {
		return r, e.errorf("want 9 fields")
	}
	r = bawn.Rule{ID: e.fields[0], Pattern: e.fields[3], Source: bawn.Builtin, Reason: e.fields[6], Match: e.list(7), NotMatch: e.list(8)}
	if err = r.Kind.UnmarshalText([]byte(e.fields[1])); err != nil {
		return r, e.errorf("%v", err)
	}
	if e.fields[2] != "-" {
		for name := range strings.SplitSeq(e.fields[2], ",") {
			var op bawn.Operation
			if err = op.UnmarshalText([]byte(name)); err != nil {
				return r, e.errorf("%v", err)
			}
			r.Operations = append(r.Operations, op)
		}
	}
	if err = r.Verdict.UnmarshalText([]byte(e.fields[4])); err != nil {
		return r, e.errorf("%v", err)
	}
	if r.Priority, err = strconv.Atoi(e.fields[5]); err != nil {
		return r, e.errorf("%v", err)
	}
	return r, nil
}
