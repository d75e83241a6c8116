package policycli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/learn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/importer"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func NewPolicyLearned(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "learned",
		Short: "See, forget or export what your answers have taught",
		Long: `Your answers are remembered under the shape of what was asked: program and
subcommand, names of flags, directories. From ` + percent(policy.Suggest) + ` of confidence on the likelier
answer is suggested, from ` + percent(policy.Sure) + ` on it is given without asking; answers lose weight
when they are not repeated. What is dangerous is always asked about.`,
		Example: "  bawn policy learned\n  bawn policy learned forget 'npm run'\n  bawn policy learned export > learned.toml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return listLearned(c, e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.AddCommand(NewLearnedList(e), newLearnedForget(e), NewLearnedExport(e))
	return c
}

func percent(f float64) string { return strconv.Itoa(int(f*100+0.5)) + " %" }

// openLearned opens the store of what was learned, or returns nil if the store does
// not exist.
func openLearned(e *launch.Env) (*learn.Store, error) {
	dir, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, nil // nowhere to remember anything
	}
	file := filepath.Join(dir, "learned.json")
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s, err := learn.Open(file, time.Now)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "nothing is decided by half of what was learned"}
	}
	return s, nil
}

// A lessonLine is one lesson as JSON.
type LessonLine struct {
	Shape      string       `json:"shape"`
	Verdict    bawn.Verdict `json:"verdict"`
	Confidence float64      `json:"confidence"`
	Allowed    float64      `json:"allowed"` // answers, as they counted at Last
	Denied     float64      `json:"denied"`
	Fixed      bool         `json:"fixed"` // said to be so always
	Last       time.Time    `json:"last"`
	State      string       `json:"state"` // applies, suggested or nothing yet
}

// lessons lists what was learned, by shape.
func lessons(e *launch.Env) ([]LessonLine, error) {
	s, err := openLearned(e)
	if err != nil || s == nil {
		return nil, err
	}
	var out []LessonLine
	for _, l := range s.Lessons() {
		v, sure := l.Confidence(time.Now())
		out = append(out, LessonLine{l.Shape, v, sure, l.Allow, l.Deny, l.Fixed != "", l.Last, learnedState(sure)})
	}
	return out, nil
}

func learnedState(sure float64) string {
	switch {
	case sure >= policy.Sure:
		return "applies"
	case sure >= policy.Suggest:
		return "suggested"
	}
	return "nothing yet"
}

func NewLearnedList(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List what was learned, with how sure it is",
		Example: "  bawn policy learned list --json",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return listLearned(c, e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func listLearned(c *cobra.Command, e *launch.Env, asJSON bool) error {
	list, err := lessons(e)
	if err != nil {
		return err
	}
	if asJSON {
		return verb.WriteJSON(c.OutOrStdout(), map[string]any{"lessons": append([]LessonLine{}, list...)})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.OutOrStdout(), "nothing was learned yet")
		return err
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STATE\tVERDICT\tSURE\tYES\tNO\tLAST\tSHAPE")
	for _, l := range list {
		fmt.Fprintln(t, l.row())
	}
	return t.Flush()
}

// row is a lesson as a line of the list.
func (l LessonLine) row() string {
	state := l.State
	if l.Fixed {
		state += ", always"
	}
	return strings.Join([]string{
		state, l.Verdict.String(), percent(l.Confidence), count(l.Allowed), count(l.Denied), l.Last.Format(time.DateOnly), verb.Visible(l.Shape),
	}, "\t")
}

func newLearnedForget(e *launch.Env) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "forget [PREFIX]",
		Short:   "Forget what was learned about the shapes that begin with a text",
		Example: "  bawn policy learned forget 'npm run'\n  bawn policy learned forget --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			if all == (prefix != "") {
				return verb.Usage("see \"bawn policy learned list\" for what there is", "want either the beginning of a shape or --all")
			}
			return forgetLearned(c, e, prefix)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (shapes []string, _ cobra.ShellCompDirective) {
			list, _ := lessons(e) // there is nothing to complete then
			for _, l := range list {
				if len(args) == 0 {
					shapes = append(shapes, l.Shape)
				}
			}
			return shapes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "forget everything")
	return c
}

func forgetLearned(c *cobra.Command, e *launch.Env, prefix string) error {
	s, err := openLearned(e)
	if err != nil {
		return err
	}
	n := 0
	if s != nil {
		if n, err = s.Forget(prefix); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err}
		}
	}
	if n == 0 && prefix != "" {
		return verb.Usage("see \"bawn policy learned list\"", "nothing was learned about a shape that begins with %q", prefix)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d forgotten\n", n)
	return err
}

func NewLearnedExport(e *launch.Env) *cobra.Command {
	var wide bool
	c := &cobra.Command{
		Use:   "export",
		Short: "Write what applies by itself as rules of a policy file",
		Long: `Write rules for what was learned so surely that it applies, of the lowest
priority. Rules can't be limited to directories: a rule that would allow more
than was learned is written as a comment, unless --wide is given.`,
		Example: "  bawn policy learned export > learned.toml\n  bawn policy check learned.toml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := lessons(e)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.OutOrStdout(), exported(list, wide))
			return err
		},
	}
	c.Flags().BoolVar(&wide, "wide", false, "also write rules that allow more than was learned")
	return c
}

// exported is the text of a policy file.
func exported(list []LessonLine, wide bool) string {
	var b strings.Builder
	b.WriteString("# Written by \"bawn policy learned export\".\n")
	for i, l := range list {
		if l.State != "applies" {
			continue
		}
		fmt.Fprintf(&b, "\n# learned: %s (%s yes, %s no, last %s)\n", verb.Visible(l.Shape), count(l.Allowed), count(l.Denied), l.Last.Format(time.DateOnly))
		r, wider := learnedRule(l, i+1)
		b.WriteString(learnedText(r, wider && !wide))
	}
	return b.String()
}

// learnedText is a rule, or what stands in its place.
func learnedText(r bawn.Rule, wider bool) string {
	program, _, _ := strings.Cut(r.Pattern, " ")
	if policy.Check(r) != nil || policy.RunsAnything(program) {
		return "# no rule can say this\n"
	}
	var b strings.Builder
	importer.WriteRule(&b, r)
	if wider {
		return commented(b.String())
	}
	return b.String()
}

func count(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }

// commented turns a rule into a comment that says why it is one.
func commented(rule string) string {
	var b strings.Builder
	b.WriteString("# It would hold for other directories as well; take the marks away if it may.\n")
	for line := range strings.Lines(rule) {
		b.WriteString("# " + line)
	}
	return b.String()
}

// learnedRule makes a rule of the command part of a shape. It is wider than
// what was learned if it allows and the shape names places.
func learnedRule(l LessonLine, n int) (r bawn.Rule, wider bool) {
	words := strings.Fields(l.Shape)
	placed := slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/*") })
	command := strings.Join(slices.DeleteFunc(words, func(w string) bool { return strings.HasSuffix(w, "/*") }), " ")
	r = bawn.Rule{
		ID: "learned:" + strconv.Itoa(n), Kind: bawn.Command, Operations: []bawn.Operation{bawn.Exec}, Pattern: strings.Join(strings.Fields(command), " "),
		Verdict: l.Verdict, Priority: 1, Source: bawn.User, Reason: "answered so before",
	}
	if slices.ContainsFunc(strings.Fields(command), func(w string) bool { return strings.ContainsAny(w, "*,!") }) {
		r.Pattern = ""
	}
	if placed && r.Pattern != "" {
		r.Pattern += " *"
	}
	return r, placed && l.Verdict == bawn.Allow
}
