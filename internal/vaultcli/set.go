package vaultcli

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newSet(o *common) *cobra.Command {
	var aws bool
	c := &cobra.Command{
		Use:   "set NAME",
		Short: "Keep a value under a name",
		Long: "The value is asked for twice, unseen, or read from standard input, without its last line break.\n" +
			"It is never an argument: those are shown to every user of the machine, and shells remember them.\n" +
			"A name that is there gets the new value and keeps its bindings.\n" +
			"An access key of AWS (--aws) has two or three parts; they are asked for, or read as a profile of ~/.aws/credentials, as JSON, or as ID:SECRET[:TOKEN].",
		Example: "  bawn secret set github\n  pass show github | bawn secret set github\n  bawn secret set --store file --identity ~/.config/bawn/identity ci-token < token\n" +
			"  aws configure export-credentials | bawn secret set aws --aws",
		ValidArgsFunction: o.names,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return verb.Usage("type the value when asked, or pipe it in: … | bawn secret set "+args[0],
					"a value is never an argument: every user of the machine could see it, and the shell's history has it now; make a new one")
			}
			return oneName(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(func(v *secrets.Vault) error {
				read := o.readValue
				if aws {
					read = o.readKey
				}
				value, err := read(args[0])
				if err != nil {
					return err
				}
				defer clear(value)
				return v.Set(c.Context(), args[0], bawn.NewSecret(value))
			})
		},
	}
	c.Flags().BoolVar(&aws, "aws", false, "the value is an access key of AWS")
	return c
}

// readKey asks for the parts of an access key, or reads them.
func (o *common) readKey(name string) ([]byte, error) {
	if term.IsTerminal(int(o.env.Stdin.Fd())) {
		return secrets.AskKey(o.env.Stdin, name)
	}
	text, err := o.readValue(name)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	return secrets.ReadKey(text)
}

// readValue asks on the terminal, or reads standard input.
func (o *common) readValue(name string) ([]byte, error) {
	in := o.env.Stdin
	if term.IsTerminal(int(in.Fd())) {
		return secrets.AskTwice(in, fmt.Sprintf("Value of %s (not shown): ", name), "The same again: ")
	}
	buf := make([]byte, secrets.MaxValue+3) // one more than allowed, with CR LF; never grown: no copy is left behind
	n, err := io.ReadFull(in, buf)
	if err == nil {
		clear(buf)
		return nil, verb.Usage("secrets are short; keep files in an encrypted file system", "the value has more than %d bytes", secrets.MaxValue)
	}
	value := bytes.TrimSuffix(bytes.TrimSuffix(buf[:n], []byte("\n")), []byte("\r"))
	if len(value) == 0 {
		return nil, verb.Usage("pipe it in, or run bawn secret set on a terminal", "standard input is empty; want the value of %q", name)
	}
	return value, nil
}

func newRemove(o *common) *cobra.Command {
	return &cobra.Command{
		Use:               "rm NAME",
		Aliases:           []string{"remove"},
		Short:             "Forget a secret: its value and its bindings",
		Long:              "Running sessions are refused the secret from then on. The value is deleted from its store.",
		Example:           "  bawn secret rm github",
		ValidArgsFunction: o.names,
		Args:              oneName,
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(func(v *secrets.Vault) error { return v.Remove(c.Context(), args[0]) })
		},
	}
}
