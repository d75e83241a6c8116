// Package vaultcli holds "bawn secret": the vault's verbs. They are linked
// into bawnd, since the vault's ciphers would cost every start of bawn.
package vaultcli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/verb"
)

// An Env is what a verb may use of the world around it.
type Env struct {
	verb.World
}

// Main runs "bawn secret" with args and returns the exit code.
func Main(args []string, e *Env) int {
	root := &cobra.Command{Use: "bawn", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(NewCommand(e))
	words := append([]string{"secret"}, args...)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		words = append([]string{args[0], "secret"}, args[1:]...)
	}
	return verb.Run(root, words, &e.World, func(err error) int {
		code, hint := Explain(err)
		verb.Report(&e.World, err, hint)
		return code
	})
}

// Explain returns the exit code of a verb's error and what to do about it.
func Explain(err error) (code int, hint string) {
	var mine *verb.Error
	var vault *secrets.Error
	switch {
	case errors.As(err, &mine):
		return mine.Code, mine.Hint
	case errors.As(err, &vault):
		if errors.Is(err, secrets.ErrNotFound) {
			return verb.ExitUsage, vault.Hint
		}
		return verb.ExitInternal, vault.Hint
	}
	return verb.ExitInternal, ""
}

// common are the flags of every verb.
type common struct {
	env                       *Env
	store, identity, passFile string
}

// NewCommand returns the command tree of "bawn secret", for a root command
// that is called bawn.
func NewCommand(e *Env) *cobra.Command {
	o := &common{env: e}
	c := &cobra.Command{
		Use:   "secret",
		Short: "Keep credentials outside, and say where they may be put in",
		Long: "A secret's value is in the system's keyring, or in encrypted files where there is none; never plain.\n" +
			"A guest gets a placeholder of the same shape, in a file or a variable. Where a request goes to the\n" +
			"host that the secret is bound to, the value is put in outside of the sandbox, at that place only.",
		Example: "  bawn secret set anthropic                       # asks for the value\n" +
			"  bawn secret bind anthropic --host api.anthropic.com --header x-api-key --env ANTHROPIC_API_KEY\n" +
			"  bawn secret import --env ANTHROPIC_API_KEY      # both at once\n" +
			"  bawn secret list",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return verb.Usage("see \"bawn secret --help\"", "unknown command %q for %q; want one of set, list, rm, bind, unbind, import", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%w", err)
	})
	f := c.PersistentFlags()
	f.StringVar(&o.store, "store", "", "where new secrets go: keyring or file (default: the keyring if there is one)")
	f.StringVar(&o.identity, "identity", "", "an age identity file, mode 0600, in place of a passphrase for encrypted files")
	f.StringVar(&o.passFile, "passphrase-file", "", "a file, mode 0600, whose first line is the passphrase of the encrypted files")
	_ = c.RegisterFlagCompletionFunc("store", cobra.FixedCompletions([]string{secrets.Keyring, secrets.File}, cobra.ShellCompDirectiveNoFileComp))
	c.AddCommand(newSet(o), newList(o), newRemove(o), newBind(o), newUnbind(o), newImport(o))
	return c
}

// open opens the human's vault. It hardens the process before the first value.
func (o *common) open() (*secrets.Vault, error) {
	if o.store != "" && o.store != secrets.Keyring && o.store != secrets.File {
		return nil, verb.Usage("see \"bawn secret --help\"", "--store is %q; want %s or %s", o.store, secrets.Keyring, secrets.File)
	}
	if err := secrets.Harden(); err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("protect this process: %w", err), Hint: "no value is read by a process that could be dumped"}
	}
	opts, err := secrets.Standard(o.env.Environ, o.absolute(o.passFile))
	if err != nil {
		return nil, err
	}
	opts.Store, opts.Identity = o.store, o.absolute(o.identity)
	return secrets.Open(opts)
}

// with opens the vault, runs f and tells of the vault's notes.
func (o *common) with(f func(*secrets.Vault) error) error {
	v, err := o.open()
	if err != nil {
		return err
	}
	defer v.Close()
	err = f(v)
	for _, n := range v.Notes() {
		fmt.Fprintf(o.env.Stderr, "bawn: note: %s\n", n)
	}
	return err
}

func (o *common) absolute(file string) string {
	if file == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return strings.TrimSuffix(o.env.Dir, "/") + "/" + file
}

// oneName are the arguments of verbs that take one secret.
func oneName(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%q takes the name of one secret; got %d arguments", c.CommandPath(), len(args))
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return verb.Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%q is one argument too many: %q takes none", args[0], c.CommandPath())
}

// names completes the names of secrets. It opens no store.
func (o *common) names(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	opts, err := secrets.Standard(o.env.Environ, "")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	v, err := secrets.Open(opts)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := v.List()
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
