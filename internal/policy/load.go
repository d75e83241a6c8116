package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/bawn-dev/bawn"
)

// MaxFile is the largest policy file that is read, in bytes.
const MaxFile = 4 << 20

// document is a policy file.
type document struct {
	Rule []struct {
		ID         string           `toml:"id"`
		Kind       bawn.Kind        `toml:"kind"`
		Operations []bawn.Operation `toml:"operations"`
		Pattern    string           `toml:"pattern"`
		Verdict    *bawn.Verdict    `toml:"verdict"`
		Priority   int              `toml:"priority"`
		Reason     string           `toml:"reason"`
		Match      []string         `toml:"match"`
		NotMatch   []string         `toml:"not_match"`
	} `toml:"rule"`
}

// ParseFile reads the rules of a policy file: a list of [[rule]] tables. The
// errors name file, line and what was wanted. A file of the project may only
// narrow, so a rule of it that allows is an error.
func ParseFile(file string, data []byte, source bawn.Source) ([]bawn.Rule, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: it has %d bytes; want at most %d", file, len(data), MaxFile)
	}
	var d document
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, positioned(file, err)
	}
	at := ruleLines(data)
	seen := map[string]int{}
	var out []bawn.Rule
	var wrong []error
	for i, r := range d.Rule {
		fail := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s:%d: rule %d: %s", file, at(i), i+1, fmt.Sprintf(format, args...)))
		}
		id := cmp.Or(r.ID, fmt.Sprintf("%s:%d", source, i+1))
		rule := bawn.Rule{
			ID: id, Kind: r.Kind, Operations: r.Operations, Pattern: r.Pattern, Priority: r.Priority,
			Source: source, Reason: r.Reason, Match: r.Match, NotMatch: r.NotMatch,
		}
		if first, twice := seen[id]; twice {
			fail("the id %q is rule %d's already", id, first)
		}
		seen[id] = i + 1
		if r.Verdict == nil {
			fail("it lacks verdict = \"deny\", \"ask\" or \"allow\"")
			continue
		}
		if rule.Verdict = *r.Verdict; source == bawn.Project && rule.Verdict == bawn.Allow {
			fail("a project's policy may only narrow, and %q allows; move the rule to your own policy", id)
		}
		err := suits(r.Kind, r.Operations)
		if err == nil {
			err = Check(rule)
		}
		if err != nil {
			fail("%v", err)
		}
		out = append(out, rule)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return out, nil
}

// operations are what can be done to each kind of resource.
var operations = map[bawn.Kind][]bawn.Operation{
	bawn.Filesystem: {bawn.Read, bawn.Write, bawn.Create, bawn.Delete, bawn.Exec},
	bawn.Network:    {bawn.Connect}, bawn.Command: {bawn.Exec}, bawn.Tool: {bawn.Call},
}

// suits refuses operations that the kind does not have: a rule about them
// would never speak.
func suits(k bawn.Kind, ops []bawn.Operation) error {
	for _, op := range ops {
		if known := operations[k]; len(known) > 0 && !slices.Contains(known, op) {
			return fmt.Errorf("the operation %q is none of the kind %s; want one of %v", op, k, known)
		}
	}
	return nil
}

// ruleLines returns the line on which the i-th [[rule]] stands.
func ruleLines(data []byte) func(int) int {
	var lines []int
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if strings.Join(strings.Fields(string(text)), "") == "[[rule]]" {
			lines = append(lines, n)
		}
	}
	return func(i int) int {
		if i < len(lines) {
			return lines[i]
		}
		return 1
	}
}

// positioned writes a decoder's error as file:line:column.
func positioned(file string, err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, column := strict.Errors[0].Position()
		key := strict.Errors[0].Key()
		if len(key) > 0 && key[0] != "rule" {
			return fmt.Errorf("%s:%d:%d: unknown key %q; a policy is a list of [[rule]] tables", file, row, column, strings.Join(key, "."))
		}
		return fmt.Errorf("%s:%d:%d: unknown key %q; want id, kind, operations, pattern, verdict, priority, reason, match or not_match in [[rule]]",
			file, row, column, strings.Join(key[min(1, len(key)):], "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		what := strings.TrimPrefix(decode.Error(), "toml: ")
		if strings.HasPrefix(what, "cannot decode TOML ") { // and then Go's types
			what = valueWanted(strings.Join(decode.Key(), "."))
		}
		return fmt.Errorf("%s:%d:%d: %s", file, row, column, what)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// wanted says what a key takes.
var wanted = map[string]string{
	"rule": "tables [[rule]]", "rule.priority": "a whole number", "rule.operations": "a list of operations", "rule.match": "a list of strings", "rule.not_match": "a list of strings",
}

// valueWanted says that a key has a value of the wrong type.
func valueWanted(key string) string {
	want, ok := wanted[key]
	if !ok {
		want = "a string"
	}
	return fmt.Sprintf("%s has a value of another type; want %s", strings.TrimPrefix(key, "rule."), want)
}
