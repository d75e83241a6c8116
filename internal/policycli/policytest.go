package policycli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newPolicyTest(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run files of actions and the verdicts they should get",
		Long: `Run policy tests. A file is a txtar archive: before its first section, lines
such as "mode: auto" or "contained: true" set the situation; the sections
"allow", "ask" and "deny" hold one action a line: a command line, or a JSON
object as "bawn policy decide" reads it; "#" begins a comment line. A section
"policy.toml" holds rules that are added to the built-in ones instead of your
own policy. Relative directories start in the file's.

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
		Args: someFiles,
		RunE: func(c *cobra.Command, args []string) error {
			failed := 0
			for _, name := range args {
				r := testRun{c: c, d: decider{e: e}, name: name, asJSON: asJSON}
				if err := r.run(); err != nil {
					return asUsage(err, "see \"bawn policy test --help\" for how a file looks")
				}
				failed += r.failed
			}
			if failed > 0 {
				return &verb.Error{Code: 1, Err: fmt.Errorf("%s another verdict than the wanted one", count1(failed, "action got", "actions got")), Hint: "\"bawn policy explain\" shows why an action is decided so"}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object for each action")
	c.ValidArgsFunction = cobra.FixedCompletions([]string{"txtar"}, cobra.ShellCompDirectiveFilterFileExt)
	return c
}

// someFiles are the arguments of a command that needs at least one file.
func someFiles(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "no file is named")
}

// A testRun is one file of tests on its way.
type testRun struct {
	c           *cobra.Command
	d           decider
	name        string
	asJSON      bool
	ran, failed int
}

// A testLine is the outcome of one action as JSON.
type testLine struct {
	File   string       `json:"file"`
	Line   int          `json:"line"`
	Action string       `json:"action"`
	Want   bawn.Verdict `json:"want"`
	Got    bawn.Verdict `json:"got"`
	Reason string       `json:"reason"`
	Rule   string       `json:"rule"`
	OK     bool         `json:"ok"`
}

func (r *testRun) run() error {
	data, err := os.ReadFile(settings.Absolute(&r.d.e.World, r.name))
	if err != nil {
		return err
	}
	a := txtar.Parse(data)
	if err := r.settings(a.Comment); err != nil {
		return err
	}
	if err := r.policy(a); err != nil {
		return err
	}
	at := bytes.Count(a.Comment, []byte("\n")) + 1
	for _, f := range a.Files {
		if f.Name != settings.PolicyFile {
			if err := r.section(f, at); err != nil {
				return err
			}
		}
		at += bytes.Count(f.Data, []byte("\n")) + 1
	}
	switch {
	case r.ran == 0:
		return fmt.Errorf("%s: it has no action; want sections \"-- allow --\", \"-- ask --\" or \"-- deny --\" with one action a line", r.name)
	case r.asJSON:
		return nil
	}
	_, err = fmt.Fprintf(r.c.OutOrStdout(), "%s: %d of %s as wanted\n", r.name, r.ran-r.failed, count1(r.ran, "action", "actions"))
	return err
}

// section runs the actions below a marker on line at.
func (r *testRun) section(f txtar.File, at int) error {
	var want bawn.Verdict
	if err := want.UnmarshalText([]byte(f.Name)); err != nil {
		return fmt.Errorf("%s:%d: section %q; want allow, ask, deny or %s", r.name, at, f.Name, settings.PolicyFile)
	}
	lines := bufio.NewScanner(bytes.NewReader(f.Data))
	lines.Buffer(nil, maxAction)
	for lines.Scan() {
		at++
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		a, err := r.d.parse(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, at, err)
		}
		got, err := r.d.decide(a)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, at, err)
		}
		if err := r.report(testLine{r.name, at, line, want, got.Verdict, got.Reason, got.Rule, got.Verdict == want}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", r.name, at+1, err)
	}
	return nil
}

func (r *testRun) report(l testLine) (err error) {
	r.ran++
	if !l.OK {
		r.failed++
	}
	switch {
	case r.asJSON:
		err = verb.JSONLines(r.c.OutOrStdout()).Encode(l)
	case !l.OK:
		_, err = fmt.Fprintf(r.c.OutOrStdout(), "%s:%d: %s: want %s, got %s: %s\n", l.File, l.Line, verb.Visible(l.Action), l.Want, l.Got, verb.Visible(l.Reason))
	}
	return err
}

// settingKeys are the keys before the first section.
var settingKeys = []string{"mode", "autonomy", "contained", "untrusted", "private", "cwd", "workspace", "home", "system"}

// settings reads the lines before the first section.
func (r *testRun) settings(comment []byte) error {
	n := 0
	for line := range strings.Lines(string(comment)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.setting(line); err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, n, err)
		}
	}
	return nil
}

func (r *testRun) setting(line string) error {
	s := &r.d.base
	key, v, ok := strings.Cut(line, ":")
	v = strings.TrimSpace(v)
	text, truth := s.field(key)
	switch {
	case !ok || text == nil && truth == nil:
		err := fmt.Errorf("%q is no setting; want one of %s, as in \"mode: auto\"", line, strings.Join(settingKeys, ", "))
		return nearly(err, key, settingKeys)
	case truth != nil:
		is, err := strconv.ParseBool(v)
		if *truth = is; err != nil {
			return fmt.Errorf("%s is %q; want true or false", key, v)
		}
		return nil
	case (key == "cwd" || key == "workspace" || key == "home") && v != "" && !filepath.IsAbs(v):
		v = filepath.Join(filepath.Dir(settings.Absolute(&r.d.e.World, r.name)), v)
	}
	*text = v
	var q policy.Question
	return knob(s, &q)
}

// policy is that of the archive, or else the one in force.
func (r *testRun) policy(a *txtar.Archive) (err error) {
	for _, f := range a.Files {
		if f.Name != settings.PolicyFile {
			continue
		}
		rules, err := policy.ParseFile(filepath.Join(r.name, settings.PolicyFile), f.Data, bawn.User)
		if err != nil {
			return err
		}
		p, err := policy.New(rules, policy.Options{})
		r.d.policies = &policies{only: p}
		return err
	}
	d, err := newDecider(r.d.e, r.d.base)
	if err == nil {
		r.d = *d
	}
	return err
}

// parse reads an action of a list: a command line, or an object.
func (d *decider) parse(line string) (*actionLine, error) {
	if line[0] != '{' {
		return &actionLine{situation: d.base, Kind: "command", Command: line}, nil
	}
	a := &actionLine{situation: d.base}
	return a, parseAction([]byte(line), a)
}
