package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
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
		c, err := compile(rule)
		if err == nil {
			err = c.check()
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
		return fmt.Errorf("%s:%d:%d: unknown key %q; want id, kind, operations, pattern, verdict, priority, reason, match or not_match in [[rule]]",
			file, row, column, strings.Join(strict.Errors[0].Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return fmt.Errorf("%s:%d:%d: %s", file, row, column, decode.Error())
	}
	return fmt.Errorf("%s: %w", file, err)
}
