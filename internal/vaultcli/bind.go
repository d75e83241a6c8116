package vaultcli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/verb"
)

// where are the flags that say a place in requests, and what the guest sees.
type where struct {
	host, header, basic, query, aws string
	bearer                          bool
	file, format, env               string
}

func (w *where) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&w.host, "host", "", "only for this host, or \"*.example.com\"; with a port if it is not 443")
	f.StringVar(&w.header, "header", "", "the value of this header")
	f.BoolVar(&w.bearer, "bearer", false, "Authorization: Bearer VALUE")
	f.StringVar(&w.basic, "basic", "", "the password of this user in Authorization: Basic; \"*\" for any user")
	f.StringVar(&w.query, "query", "", "this parameter of the query")
	f.StringVar(&w.aws, "aws", "", "requests that AWS clients sign (Signature Version 4) are signed with it; =REGION/SERVICE narrows it")
	f.Lookup("aws").NoOptDefVal = "*/*"
	f.StringVar(&w.file, "file", "", "the guest finds the placeholder in this file; give --format")
	f.StringVar(&w.format, "format", "", "how the file is written: "+strings.Join(secrets.Formats, ", ")+", or \"raw:text with {}\"")
	f.StringVar(&w.env, "env", "", "the guest finds the placeholder in this variable; the last resort")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(secrets.Formats, cobra.ShellCompDirectiveNoFileComp))
}

// binding turns the flags into a binding, with at most one place.
func (w *where) binding(c *cobra.Command, name string) (bawn.Binding, error) {
	b := bawn.Binding{Secret: name, Host: w.host, File: w.file, Format: w.format, Env: w.env}
	n := 0
	for flag, place := range map[string]struct {
		place bawn.Place
		name  string
	}{
		"header": {bawn.Header, w.header}, "bearer": {bawn.Bearer, ""}, "query": {bawn.InQuery, w.query},
		"aws": {bawn.Signed, strings.TrimSuffix(w.aws, "*/*")}, "basic": {bawn.Basic, strings.TrimSuffix(w.basic, "*")},
	} {
		if c.Flags().Changed(flag) {
			n++
			b.Place, b.Name = place.place, place.name
		}
	}
	if n > 1 {
		return b, verb.Usage("bind a second time for a second place", "%d places are given; want one of --header, --bearer, --basic, --query, --aws", n)
	}
	return b, nil
}

func newBind(o *common) *cobra.Command {
	var w where
	c := &cobra.Command{
		Use:   "bind NAME --host HOST (--header H | --bearer | --basic USER | --query P | --aws[=REGION/SERVICE])",
		Short: "Say into which requests a secret is put",
		Long: "The value goes into requests to that host, at that place, and nowhere else. A secret can be bound several times.\n" +
			"The guest finds a placeholder in a file (--file, --format) or, if its program takes nothing else, in a variable (--env).\n" +
			"Where you have such a file, the guest sees your other settings in it, and no other credential.",
		Example: "  bawn secret bind anthropic --host api.anthropic.com --header x-api-key --env ANTHROPIC_API_KEY\n" +
			"  bawn secret bind github --host api.github.com --bearer --file ~/.config/gh/hosts.yml --format gh\n" +
			"  bawn secret bind github --host github.com --basic '*' --file ~/.git-credentials --format git-credentials\n" +
			"  bawn secret bind tracker --host tracker.example.com --bearer --file ~/.tracker --format 'raw:token={}'\n" +
			"  bawn secret bind aws --aws=eu-central-1/s3      # --host '*.amazonaws.com' --file ~/.aws/credentials --format aws",
		ValidArgsFunction: o.names,
		Args:              oneName,
		RunE: func(c *cobra.Command, args []string) error {
			b, err := w.binding(c, args[0])
			if err != nil {
				return err
			}
			if b.Place == bawn.Signed {
				usual(&b)
			}
			if b.Host == "" || b.Place == 0 {
				return verb.Usage("for example: bawn secret bind "+args[0]+" --host api.example.com --bearer", "the host or the place is missing; want --host and one of --header, --bearer, --basic, --query")
			}
			b.File = o.homely(b.File)
			return o.with(func(v *secrets.Vault) error {
				if err := v.Bind(c.Context(), b); err != nil {
					return err
				}
				if b.Env != "" {
					fmt.Fprintf(o.env.Stderr, "bawn: warning: %s will be in the environment of every process of a session, as a placeholder; programs print and log their environment. "+
						"Where the program reads a file, bind it with --file instead\n", b.Env)
				}
				return nil
			})
		},
	}
	w.flags(c)
	return c
}

// usual says for an access key of AWS what is not said otherwise.
func usual(b *bawn.Binding) {
	if b.Host == "" {
		b.Host = secrets.AWSHost
	}
	if b.File == "" && b.Env == "" {
		b.File, b.Format = secrets.AWSFile, cmp.Or(b.Format, secrets.AWSFormat)
	}
}

// homely writes a path below the home directory with "~", so that the binding means
// the home directory of the user who uses it.
func (o *common) homely(file string) string {
	if file == "" || strings.HasPrefix(file, "~/") {
		return file
	}
	file = o.absolute(file)
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(o.env.Getenv("HOME"), "/")+"/"); ok {
		return "~/" + rest
	}
	return file
}

func newUnbind(o *common) *cobra.Command {
	var w where
	c := &cobra.Command{
		Use:               "unbind NAME [--host HOST] [--header H | --bearer | --basic USER | --query P | --aws] …",
		Short:             "Take bindings of a secret away",
		Long:              "Takes away the bindings that agree with all flags, without flags all of them. Running sessions are refused from then on.",
		Example:           "  bawn secret unbind github --host github.com\n  bawn secret unbind github",
		ValidArgsFunction: o.names,
		Args:              oneName,
		RunE: func(c *cobra.Command, args []string) error {
			like, err := w.binding(c, args[0])
			if err != nil {
				return err
			}
			like.File = o.homely(like.File)
			return o.with(func(v *secrets.Vault) error {
				n, err := v.Unbind(c.Context(), like)
				if err == nil && n == 0 {
					return verb.Usage("see bawn secret list", "no binding of %q agrees with that", args[0])
				}
				return err
			})
		},
	}
	w.flags(c)
	return c
}
