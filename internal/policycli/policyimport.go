package policycli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy/importer"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func NewPolicyImport(e *launch.Env) *cobra.Command {
	var from string
	var asJSON, asConfig bool
	c := &cobra.Command{
		Use:   "import [flags] FILE...",
		Short: "Turn the permissions of other agents into rules",
		Long: `Read what other programs may do and write a policy.toml to standard output:

  claude  settings.json of Claude Code (permissions)
  codex   config.toml and *.rules of Codex
  gemini  policies (TOML) and settings.json of Gemini CLI
  cadre   cadre.config.json of Cadre (isolation)

Nothing is widened: what has no exact equal is narrowed or left out. Each such
item is printed to standard error with its file, line and reason. What is a
setting and no rule stands at the end as a comment; --config prints only that.

The exit code is 0 if everything was carried over, 1 if something was not, and
2 if a file can't be read; then nothing is written.`,
		Example: `  bawn policy import ~/.claude/settings.json > policy.toml
  bawn policy check policy.toml
  bawn policy import --from codex ~/.codex/config.toml ~/.codex/rules/default.rules
  bawn policy import --config cadre.config.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if from != "" && !slices.Contains(importer.Formats(), from) {
				return verb.Usage("leave it out to go by the file's name and content", "--from %q; want one of %q", from, importer.Formats())
			}
			res, err := importFiles(e, from, args)
			if err != nil {
				return err
			}
			return printImport(c, e, res, asJSON, asConfig)
		},
	}
	c.Flags().StringVar(&from, "from", "", "whose files they are: "+strings.Join(importer.Formats(), ", "))
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object with rules, settings and what was left")
	c.Flags().BoolVar(&asConfig, "config", false, "write the settings for config.toml instead of the rules")
	c.MarkFlagsMutuallyExclusive("json", "config")
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(importer.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// importFiles reads all files before anything is written.
func importFiles(e *launch.Env, from string, names []string) (*importer.Result, error) {
	var list []*importer.Import
	for _, name := range names {
		im, err := importFile(e, from, name)
		if err != nil {
			return nil, err
		}
		list = append(list, im)
	}
	res, err := importer.Merge(list)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return res, nil
}

func importFile(e *launch.Env, from, name string) (*importer.Import, error) {
	path := settings.Absolute(&e.World, name)
	data, err := atomicfile.Read(path, importer.MaxFile)
	if err != nil {
		return nil, verb.Usage("name a file of another agent's", "%v", err)
	}
	user := e.Getenv("HOME") != "" && filepath.Dir(filepath.Dir(path)) == filepath.Clean(e.Getenv("HOME"))
	im, err := importer.Read(from, name, data, user)
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "nothing was imported; see \"bawn policy import --help\" for the formats"}
	}
	return im, nil
}

func printImport(c *cobra.Command, e *launch.Env, res *importer.Result, asJSON, asConfig bool) error {
	printLeft(c, res)
	var err error
	switch {
	case asJSON:
		err = importJSON(c, res)
	case asConfig:
		_, err = fmt.Fprint(c.OutOrStdout(), res.Config())
	default:
		_, err = fmt.Fprint(c.OutOrStdout(), res.Policy())
	}
	if err != nil {
		return verb.OutputError(e.Stdout, err)
	}
	if n := len(res.Left); n > 0 {
		return &verb.Error{Code: 1, Err: fmt.Errorf("%d items were not carried over as they were", n), Hint: "each is named above; what was carried over is complete"}
	}
	return nil
}

// printLeft writes what was not carried over, one item a line.
func printLeft(c *cobra.Command, res *importer.Result) {
	for _, l := range res.Left {
		line := fmt.Sprintf("%s:%d: %s: %s", l.File, l.Line, l.Text, l.Why)
		fmt.Fprintln(c.ErrOrStderr(), strings.ReplaceAll(verb.Visible(line), "\n", `\n`))
	}
}

func importJSON(c *cobra.Command, res *importer.Result) error {
	out := struct {
		Rules    []ruleLine         `json:"rules"`
		Settings []importer.Setting `json:"settings"`
		Left     []importer.Report  `json:"left"`
	}{[]ruleLine{}, append([]importer.Setting{}, res.Settings...), append([]importer.Report{}, res.Left...)}
	for _, r := range res.Rules {
		out.Rules = append(out.Rules, ruleLine(r))
	}
	return verb.WriteJSON(c.OutOrStdout(), out)
}
