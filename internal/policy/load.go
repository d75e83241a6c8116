package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/stricttoml"
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
// errors name file, line and the expected form. A file of the project may only
// narrow, so a rule of it that allows is an error.
func ParseFile(file string, data []byte, source bawn.Source) ([]bawn.Rule, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: it has %d bytes; want at most %d", file, len(data), MaxFile)
	}
	doc, err := stricttoml.Read(file, data)
	if err != nil {
		return nil, err
	}
	var d document
	if err := doc.Decode(&d); err != nil {
		return nil, err
	}
	lines := doc.Lines()
	seen := map[string]int{}
	var out []bawn.Rule
	var wrong []error
	for i, r := range d.Rule {
		fail := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s:%d: rule %d: %s", file, lines[fmt.Sprintf("rule[%d]", i)], i+1, fmt.Sprintf(format, args...)))
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

// operations are those of each kind of resource.
var operations = map[bawn.Kind][]bawn.Operation{
	bawn.Filesystem: {bawn.Read, bawn.Write, bawn.Create, bawn.Delete, bawn.Exec},
	bawn.Network:    {bawn.Connect}, bawn.Command: {bawn.Exec}, bawn.Tool: {bawn.Call},
}

// suits refuses operations that the kind does not have: a rule about them
// would never speak.
func suits(k bawn.Kind, ops []bawn.Operation) error {
	for _, op := range ops {
		if known := operations[k]; len(known) > 0 && !slices.Contains(known, op) {
			return fmt.Errorf("the operation %q is not of the kind %s; want one of %v", op, k, known)
		}
	}
	return nil
}
