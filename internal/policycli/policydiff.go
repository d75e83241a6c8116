package policycli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newPolicyDiff(e *launch.Env) *cobra.Command {
	var s situation
	var corpus string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say which actions one policy decides otherwise than another",
		Long: `Decide a corpus of actions by two policy files, and list those whose verdict
differs: first what becomes reachable, then what no longer is. The corpus is a
file of actions, one a line: command lines, or JSON objects as "bawn policy
decide" reads them; "#" begins a comment line. Without one, the examples of both
files and of the built-in rules and dangers are the corpus. Each file counts
together with the built-in rules alone; /dev/null is a file without rules.

The exit code is 1 if something becomes reachable, 0 if not.`,
		Example: `  bawn policy diff ~/.config/bawn/policy.toml new.toml
  bawn policy diff /dev/null .bawn/policy.toml
  bawn policy diff --corpus actions.txt --contained old.toml new.toml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return verb.Usage("for example: bawn policy diff ~/.config/bawn/policy.toml new.toml", "%s named; want two, the old one and the new one", count1(len(args), "file is", "files are"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.check(e); err != nil {
				return err
			}
			d := differ{decider: decider{e: e, base: s}, asJSON: asJSON}
			return d.run(c, args, corpus)
		},
	}
	s.declare(c)
	c.Flags().StringVar(&corpus, "corpus", "", "`file` of actions, one a line")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object a line")
	c.ValidArgsFunction = policyCompletion
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
	Reason string       `json:"reason"`
}

// An entry is one action of a corpus and where it stands.
type entry struct{ place, text string }

func (d *differ) run(c *cobra.Command, names []string, corpus string) error {
	var sides [2]*policy.Policy
	var list []entry
	for i, name := range names {
		rules, err := d.rules(name)
		if err != nil {
			return err
		}
		if sides[i], err = settings.NewPolicy(rules, policy.Options{}); err != nil {
			return err
		}
		list = append(list, examples(rules)...)
	}
	if corpus == "" {
		list = append(list, examples(policy.Builtins())...)
		for _, line := range policy.Examples() {
			list = append(list, entry{"built-in", line})
		}
	} else {
		var err error
		if list, err = d.lines(corpus); err != nil {
			return err
		}
	}
	more, fewer, err := d.compare(sides[0], sides[1], list)
	if err != nil {
		return err
	}
	if err := d.print(c, "becomes reachable", "become reachable", more); err != nil {
		return err
	}
	if err := d.print(c, "is no longer reachable", "are no longer reachable", fewer); err != nil {
		return err
	}
	if len(more) > 0 {
		return verb.Status(1)
	}
	return nil
}

// rules reads one of the two files.
func (d *differ) rules(name string) ([]bawn.Rule, error) {
	data, err := os.ReadFile(settings.Absolute(&d.e.World, name))
	if err != nil {
		return nil, verb.Usage("name two policy files", "%w", err)
	}
	rules, err := policy.ParseFile(name, data, sourceOf(d.e, name))
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "mend the file; nothing is decided by half a policy"}
	}
	return rules, nil
}

// examples are the actions that rules are about by their own examples.
func examples(rules []bawn.Rule) (out []entry) {
	names := map[bawn.Kind]string{bawn.Filesystem: "path", bawn.Network: "host", bawn.Command: "command", bawn.Tool: "tool"}
	for _, r := range rules {
		for _, e := range append(append([]string{}, r.Match...), r.NotMatch...) {
			action := map[string]string{"kind": r.Kind.String(), names[r.Kind]: e}
			if r.Kind == bawn.Command {
				out = append(out, entry{"rule " + r.ID, e})
				continue
			}
			if len(r.Operations) > 0 {
				action["operation"] = r.Operations[0].String()
			}
			if line, err := json.Marshal(action); err == nil {
				out = append(out, entry{"rule " + r.ID, string(line)})
			}
		}
	}
	return out
}

func (d *differ) lines(name string) (out []entry, err error) {
	data, err := os.ReadFile(settings.Absolute(&d.e.World, name))
	if err != nil {
		return nil, verb.Usage("name a file of actions", "%w", err)
	}
	s := bufio.NewScanner(bytes.NewReader(data))
	s.Buffer(nil, maxAction)
	n := 1
	for ; s.Scan(); n++ {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			out = append(out, entry{fmt.Sprintf("%s:%d", name, n), line})
		}
	}
	if err := s.Err(); err != nil {
		return nil, verb.Usage("want one action a line", "%s:%d: %w", name, n, err)
	}
	return out, nil
}

func (d *differ) compare(a, b *policy.Policy, list []entry) (more, fewer []change, err error) {
	seen := map[string]bool{}
	for _, one := range list {
		if seen[one.text] {
			continue
		}
		seen[one.text] = true
		action, err := d.parse(one.text)
		if err != nil {
			return nil, nil, verb.Usage("see \"bawn policy decide --help\" for what an action has", "%s: %w", one.place, err)
		}
		q, err := d.question(action)
		if err != nil {
			return nil, nil, verb.Usage("see \"bawn policy decide --help\" for what an action has", "%s: %w", one.place, err)
		}
		was, is := a.Decide(q), b.Decide(q)
		ch := change{one.text, was.Verdict, is.Verdict, is.Rule, is.Reason}
		switch {
		case is.Verdict > was.Verdict:
			more = append(more, ch)
		case is.Verdict < was.Verdict:
			fewer = append(fewer, ch)
		}
	}
	return more, fewer, nil
}

func (d *differ) print(c *cobra.Command, one, many string, list []change) (err error) {
	out := c.OutOrStdout()
	if !d.asJSON {
		_, err = fmt.Fprintln(out, count1(len(list), "action "+one, "actions "+many))
	}
	enc := verb.JSONLines(out)
	for _, ch := range list {
		if err != nil {
			return err
		}
		if d.asJSON {
			err = enc.Encode(ch)
		} else {
			_, err = fmt.Fprintf(out, "  %-5s → %-5s  %s  (%s)\n", ch.Old, ch.New, verb.Visible(ch.Action), ch.Rule)
		}
	}
	return err
}
