package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyDiff(e *Env) *cobra.Command {
	var s situation
	var corpus string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say which actions one policy decides otherwise than another",
		Long: `Decide a corpus of actions by two policy files, and list those whose verdict
differs: first what becomes reachable, then what no longer is. The corpus is a
file of actions, one a line: command lines, or JSON objects as "bawn policy
decide" reads them. Without one, the examples of both files and of the built-in
rules and dangers are the corpus.

The exit code is 1 if something becomes reachable.`,
		Example: "  bawn policy diff ~/.config/bawn/policy.toml new.toml\n  bawn policy diff --corpus actions.txt --contained old.toml new.toml",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			d := differ{decider: decider{e: e, base: s}, asJSON: asJSON}
			return d.run(c, args[0], args[1], corpus)
		},
	}
	s.declare(c)
	c.Flags().StringVar(&corpus, "corpus", "", "`file` of actions, one a line")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	return c
}

// A differ compares two policies.
type differ struct {
	decider
	asJSON bool
}

// A change is one action with both verdicts.
type change struct {
	Action string       `json:"action"`
	Old    bawn.Verdict `json:"old"`
	New    bawn.Verdict `json:"new"`
	Rule   string       `json:"rule"`
}

func (d *differ) run(c *cobra.Command, older, newer, corpus string) error {
	var sides [2]*policy.Policy
	var lines []string
	for i, name := range []string{older, newer} {
		data, err := os.ReadFile(absolute(d.e, name))
		if err != nil {
			return usageError("name two policy files", "%v", err)
		}
		rules, err := policy.ParseFile(name, data, sourceOf(name))
		if err != nil {
			return &Error{Code: ExitUsage, Err: err}
		}
		if sides[i], err = policy.New(rules, policy.Options{}); err != nil {
			return &Error{Code: ExitUsage, Err: err}
		}
		lines = append(lines, examples(rules)...)
	}
	if corpus != "" {
		var err error
		if lines, err = d.lines(corpus); err != nil {
			return err
		}
	} else {
		lines = append(lines, policy.Examples()...)
	}
	more, fewer, err := d.compare(sides[0], sides[1], lines)
	if err != nil {
		return err
	}
	if err := d.print(c, "becomes reachable", more); err != nil {
		return err
	}
	if err := d.print(c, "is no longer reachable", fewer); err != nil {
		return err
	}
	if len(more) > 0 {
		return exitStatus(1)
	}
	return nil
}

// examples are the actions that rules are about by their own examples.
func examples(rules []bawn.Rule) (out []string) {
	names := map[bawn.Kind]string{bawn.Filesystem: "path", bawn.Network: "host", bawn.Command: "command", bawn.Tool: "tool"}
	for _, r := range rules {
		for _, e := range append(r.Match, r.NotMatch...) {
			line, err := json.Marshal(map[string]string{"kind": r.Kind.String(), names[r.Kind]: e})
			if err == nil {
				out = append(out, string(line))
			}
		}
	}
	return out
}

func (d *differ) lines(name string) (out []string, err error) {
	data, err := os.ReadFile(absolute(d.e, name))
	if err != nil {
		return nil, usageError("name a file of actions", "%v", err)
	}
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, maxAction)
	for s.Scan() {
		if line := s.Text(); line != "" {
			out = append(out, line)
		}
	}
	return out, s.Err()
}

func (d *differ) compare(a, b *policy.Policy, lines []string) (more, fewer []change, err error) {
	seen := map[string]bool{}
	for _, line := range lines {
		if seen[line] {
			continue
		}
		seen[line] = true
		q, err := d.testAction(line)
		if err != nil {
			return nil, nil, usageError("see \"bawn policy decide --help\" for what an action has", "%q: %v", line, err)
		}
		was, is := a.Decide(q), b.Decide(q)
		ch := change{line, was.Verdict, is.Verdict, is.Rule}
		switch {
		case is.Verdict > was.Verdict:
			more = append(more, ch)
		case is.Verdict < was.Verdict:
			fewer = append(fewer, ch)
		}
	}
	return more, fewer, nil
}

func (d *differ) print(c *cobra.Command, what string, list []change) error {
	enc := json.NewEncoder(c.OutOrStdout())
	enc.SetEscapeHTML(false)
	if !d.asJSON {
		fmt.Fprintf(c.OutOrStdout(), "%d %s\n", len(list), what)
	}
	for _, ch := range list {
		var err error
		if d.asJSON {
			err = enc.Encode(ch)
		} else {
			_, err = fmt.Fprintf(c.OutOrStdout(), "  %s → %s  %s  (%s)\n", ch.Old, ch.New, visible(ch.Action), ch.Rule)
		}
		if err != nil {
			return outputError(d.e, err)
		}
	}
	return nil
}
