package vaultcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newImport(o *common) *cobra.Command {
	var env []string
	var from, file string
	var yes, replace bool
	c := &cobra.Command{
		Use:   "import (--env NAME … | --from KIND [--file FILE])",
		Short: "Take over credentials from files and variables",
		Long: "Finds credentials and says where they would be bound; with --yes it keeps and binds them. No value is shown,\n" +
			"and the original stays as it is: remove it yourself, once all works. Kinds of files: " + strings.Join(kinds(), ", ") + ".",
		Example: "  bawn secret import                              # what is there, in all files that are known\n" +
			"  bawn secret import --env ANTHROPIC_API_KEY --yes\n" +
			"  bawn secret import --from npmrc --yes\n" +
			"  bawn secret import --from kubeconfig --file ./kubeconfig",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.with(func(v *secrets.Vault) error {
				finds, err := o.find(env, from, file)
				if err != nil {
					return err
				}
				if err := o.show(finds, yes); err != nil || !yes {
					return err
				}
				return v.Import(c.Context(), finds, replace)
			})
		},
	}
	f := c.Flags()
	f.StringArrayVar(&env, "env", nil, "the variable of this name (may be repeated)")
	f.StringVar(&from, "from", "", "the kind of file: "+strings.Join(kinds(), ", "))
	f.StringVar(&file, "file", "", "with --from: another file than the usual one")
	f.BoolVar(&yes, "yes", false, "keep and bind what was found")
	f.BoolVar(&replace, "replace", false, "replace the values of names that are there")
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(kinds(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func kinds() []string {
	var out []string
	for _, s := range secrets.Sources {
		out = append(out, s.Kind)
	}
	return out
}

// find looks where the flags say, or in every file that is known.
func (o *common) find(env []string, from, file string) ([]secrets.Find, error) {
	var out []secrets.Find
	if file != "" && from == "" {
		return nil, verb.Usage("say what kind of file it is with --from", "--file goes with --from")
	}
	for _, name := range env {
		f, err := secrets.LookEnv(o.env.Environ, name)
		if err != nil { // the variable is not set
			_, hint := Explain(err)
			return nil, verb.Usage(hint, "%w", err)
		}
		out = append(out, f)
	}
	known := false
	for _, s := range secrets.Sources {
		known = known || s.Kind == from
		if s.Kind != from && (from != "" || len(env) > 0) {
			continue
		}
		finds, err := s.Look(o.absolute(file), o.env.Getenv("HOME"))
		if err != nil && (from != "" || !secrets.Absent(err)) {
			if from == "" { // one file that can't be understood hides none of the others
				fmt.Fprintf(o.env.Stderr, "bawn: note: %v\n", err)
				continue
			}
			return nil, err
		}
		out = append(out, finds...)
	}
	if from != "" && !known {
		return nil, verb.Usage("see \"bawn secret import --help\"", "--from is %q; want one of %s", from, strings.Join(kinds(), ", "))
	}
	return out, nil
}

// show prints what was found, without values.
func (o *common) show(finds []secrets.Find, yes bool) error {
	if len(finds) == 0 {
		fmt.Fprintln(o.env.Stderr, "bawn: note: no credential was found")
		return nil
	}
	var text strings.Builder
	for _, f := range finds {
		fmt.Fprintf(&text, "%s  from %s\n", f.Name, f.From)
		for _, b := range f.Bindings {
			fmt.Fprintf(&text, "  %s\n", Describe(b))
		}
		if len(f.Bindings) == 0 {
			fmt.Fprintf(&text, "  bound to nothing: the service is not known; use bawn secret bind %s\n", f.Name)
		}
	}
	if !yes {
		text.WriteString("nothing was changed; add --yes to keep and bind these\n")
	}
	_, err := fmt.Fprint(o.env.Stdout, text.String())
	return err
}
