package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

func newPolicyTest(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE...",
		Short: "Run files of actions and the verdicts they should get",
		Long: `Run policy tests. A file is a txtar archive: before its first section, lines
such as "mode: auto" or "contained: true" set the situation; the sections
"allow", "ask" and "deny" hold one action a line: a command line, or a JSON
object as "bawn policy decide" reads it. A section "policy.toml" holds rules
that are added to the built-in ones instead of your own policy.

The exit code is 1 if an action gets another verdict.`,
		Example: `  bawn policy test policy_test.txtar

  # policy_test.txtar
  mode: normal
  contained: true
  -- allow --
  go test ./...
  -- ask --
  git push
  -- deny --
  {"kind":"filesystem","operation":"write","path":".git/hooks/pre-commit"}`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			failed := 0
			for _, name := range args {
				n, err := runPolicyTest(c, e, name)
				if err != nil {
					return &Error{Code: ExitUsage, Err: err, Hint: "see \"bawn policy test --help\" for how a file looks"}
				}
				failed += n
			}
			if failed > 0 {
				return &Error{Code: 1, Err: fmt.Errorf("%d actions got another verdict than the wanted one", failed)}
			}
			return nil
		},
	}
}

// runPolicyTest runs one file and says how many actions failed.
func runPolicyTest(c *cobra.Command, e *Env, name string) (failed int, err error) {
	data, err := os.ReadFile(absolute(e, name))
	if err != nil {
		return 0, err
	}
	a := txtar.Parse(data)
	d := decider{e: e}
	if d.base, err = settings(name, a.Comment); err != nil {
		return 0, err
	}
	if d.policy, err = testPolicy(e, name, a); err != nil {
		return 0, err
	}
	ran := 0
	for _, f := range a.Files {
		if f.Name == policyFile {
			continue
		}
		var want bawn.Verdict
		if err := want.UnmarshalText([]byte(f.Name)); err != nil {
			return 0, fmt.Errorf("%s: section %q: want allow, ask, deny or policy.toml", name, f.Name)
		}
		lines := bufio.NewScanner(bytes.NewReader(f.Data))
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			if line == "" || line[0] == '#' {
				continue
			}
			ran++
			q, err := d.testAction(line)
			if err != nil {
				return 0, fmt.Errorf("%s: %q: %w", name, line, err)
			}
			if got := d.policy.Decide(q); got.Verdict != want {
				failed++
				fmt.Fprintf(c.OutOrStdout(), "%s: %s: want %s, got %s: %s\n", name, visible(line), want, got.Verdict, visible(got.Reason))
			}
		}
		if err := lines.Err(); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	if ran == 0 {
		return 0, fmt.Errorf("%s: it has no action", name)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s: %d of %d actions as wanted\n", name, ran-failed, ran)
	return failed, nil
}

// settings reads the lines before the first section.
func settings(name string, comment []byte) (s situation, err error) {
	n := 0
	for line := range strings.Lines(string(comment)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, v, ok := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		texts := map[string]*string{"mode": &s.Mode, "autonomy": &s.Autonomy, "cwd": &s.Cwd, "workspace": &s.Workspace, "home": &s.Home, "system": &s.System}
		bools := map[string]*bool{"contained": &s.Contained, "untrusted": &s.Untrusted, "private": &s.Private}
		switch {
		case ok && texts[key] != nil:
			*texts[key] = v
		case ok && bools[key] != nil:
			if *bools[key], err = strconv.ParseBool(v); err != nil {
				return s, fmt.Errorf("%s:%d: %s: want true or false", name, n, key)
			}
		default:
			return s, fmt.Errorf("%s:%d: %q is no setting; want one of mode, autonomy, contained, untrusted, private, cwd, workspace, home, system", name, n, line)
		}
	}
	return s, nil
}

// testPolicy is the policy of the archive, or else the one in force.
func testPolicy(e *Env, name string, a *txtar.Archive) (*policy.Policy, error) {
	for _, f := range a.Files {
		if f.Name == policyFile {
			rules, err := policy.ParseFile(filepath.Join(name, policyFile), f.Data, bawn.User)
			if err != nil {
				return nil, err
			}
			return policy.New(rules, policy.Options{})
		}
	}
	return loadPolicy(e)
}

func (d *decider) testAction(line string) (*policy.Question, error) {
	a := actionLine{situation: d.base, Kind: "command", Command: line}
	if line[0] == '{' {
		a = actionLine{situation: d.base}
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a); err != nil {
			return nil, err
		}
	}
	return d.question(&a)
}
