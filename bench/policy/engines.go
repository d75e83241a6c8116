package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// An engine has the rules ready; prepare makes what it wants of a request,
// which is not measured, and returns the decision, which is.
type engine struct {
	name    string
	prepare func(request) (func() (bawn.Verdict, error), error)
}

// engines builds all of them with the same rules.
func engines(list []statement) ([]engine, error) {
	builders := []func([]statement) (engine, error){
		func(l []statement) (engine, error) { return ours("bawn", l, func(path string) string { return path }) },
		func(l []statement) (engine, error) { return ours("bawn, cached", l, nil) },
		cedarEngine, opaEngine,
	}
	var out []engine
	for _, build := range builders {
		e, err := build(list)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// ours is Bawn's policy. A resolver keeps it from caching decisions; this one
// follows no links.
func ours(name string, list []statement, resolve func(string) string) (engine, error) {
	p, err := policy.New(ourRules(list), policy.Options{Resolve: resolve})
	return engine{name, func(r request) (func() (bawn.Verdict, error), error) {
		q := &policy.Question{
			Action:    bawn.Action{Kind: r.kind, Operation: ourOperations[r.kind], Resource: r.value, Dir: "/home/user/app"},
			Workspace: "/home/user/app", Home: "/home/user", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate,
		}
		return func() (bawn.Verdict, error) { return p.Decide(q).Verdict, nil }, nil
	}}, err
}

var ourOperations = map[bawn.Kind]bawn.Operation{bawn.Filesystem: bawn.Write, bawn.Command: bawn.Exec, bawn.Network: bawn.Connect}

func ourRules(list []statement) (out []bawn.Rule) {
	for i, s := range list {
		pattern := map[bawn.Kind]string{bawn.Filesystem: s.prefix + "**", bawn.Command: s.prefix + "*", bawn.Network: "*" + s.prefix}[s.kind]
		out = append(out, bawn.Rule{ID: fmt.Sprint("r", i), Kind: s.kind, Pattern: pattern, Verdict: s.verdict, Priority: 100, Source: bawn.User})
	}
	return out
}

// cedarEngine has one policy for each rule. Cedar knows permit and forbid:
// which of the permissions are questions is told by the policies it names.
func cedarEngine(list []statement) (engine, error) {
	set := cedar.NewPolicySet()
	verdicts := map[cedar.PolicyID]bawn.Verdict{}
	for i, s := range list {
		var p cedar.Policy
		if err := p.UnmarshalCedar([]byte(cedarText(s))); err != nil {
			return engine{}, err
		}
		id := cedar.PolicyID(fmt.Sprint("r", i))
		set.Add(id, &p)
		verdicts[id] = s.verdict
	}
	return engine{"cedar-go", func(r request) (func() (bawn.Verdict, error), error) {
		req := cedar.Request{
			Principal: cedar.NewEntityUID("Agent", "a"), Action: cedar.NewEntityUID("Action", cedar.String(r.kind.String())),
			Resource: cedar.NewEntityUID("Resource", "r"), Context: cedar.NewRecord(cedar.RecordMap{"value": cedar.String(r.value)}),
		}
		return func() (bawn.Verdict, error) { return cedarDecide(set, verdicts, req) }, nil
	}}, nil
}

func cedarDecide(set *cedar.PolicySet, verdicts map[cedar.PolicyID]bawn.Verdict, req cedar.Request) (bawn.Verdict, error) {
	_, why := cedar.Authorize(set, cedar.EntityMap{}, req)
	if len(why.Errors) > 0 {
		return bawn.Deny, fmt.Errorf("cedar: %v", why.Errors)
	}
	if len(why.Reasons) == 0 {
		return bawn.Ask, nil
	}
	v := bawn.Allow
	for _, r := range why.Reasons {
		v = min(v, verdicts[r.PolicyID])
	}
	return v, nil
}

func cedarText(s statement) string {
	effect, like := "permit", s.prefix+"*"
	if s.verdict == bawn.Deny {
		effect = "forbid"
	}
	if s.kind == bawn.Network {
		like = "*" + s.prefix
	}
	return fmt.Sprintf("%s (principal, action == Action::%q, resource) when { context.value like %q };", effect, s.kind, like)
}

// module is the policy in Rego. The rules are data, as its documentation
// advises for rules of one form.
const module = `package bench

hits contains r.verdict if {
	some r in data.rules[input.kind]
	startswith(input.value, r.text)
}

hits contains r.verdict if {
	input.kind == "network"
	some r in data.suffixes
	endswith(input.value, r.text)
}

verdict := "deny" if "deny" in hits

else := "ask" if "ask" in hits

else := "allow" if "allow" in hits

else := "ask"
`

func opaEngine(list []statement) (engine, error) {
	ctx := context.Background()
	query, err := rego.New(rego.Query("data.bench.verdict"), rego.Module("bench.rego", module), rego.Store(inmem.NewFromObject(opaData(list)))).PrepareForEval(ctx)
	return engine{"OPA, prepared query", func(r request) (func() (bawn.Verdict, error), error) {
		input, err := ast.InterfaceToValue(map[string]any{"kind": r.kind.String(), "value": r.value})
		return func() (bawn.Verdict, error) { return opaDecide(ctx, query, input) }, err
	}}, err
}

func opaDecide(ctx context.Context, query rego.PreparedEvalQuery, input ast.Value) (v bawn.Verdict, err error) {
	rs, err := query.Eval(ctx, rego.EvalParsedInput(input))
	if err != nil || len(rs) != 1 {
		return bawn.Deny, fmt.Errorf("opa: %d results, %v", len(rs), err)
	}
	text, _ := rs[0].Expressions[0].Value.(string)
	return v, v.UnmarshalText([]byte(text))
}

func opaData(list []statement) map[string]any {
	byKind := map[string]any{}
	var suffixes []any
	for _, s := range list {
		row := map[string]any{"text": strings.Clone(s.prefix), "verdict": s.verdict.String()}
		if s.kind == bawn.Network {
			suffixes = append(suffixes, row)
			continue
		}
		rows, _ := byKind[s.kind.String()].([]any)
		byKind[s.kind.String()] = append(rows, row)
	}
	return map[string]any{"rules": byKind, "suffixes": suffixes}
}
