package verb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn/internal/config"
)

// FlagError puts what pflag says about a command line into our words and names
// the flag that was likely meant.
func FlagError(c *cobra.Command, err error) error {
	help := fmt.Sprintf("see \"%s --help\"", c.CommandPath())
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		if meant := config.Nearest(unknown.GetSpecifiedName(), flagNames(c)); meant != "" {
			help = "did you mean --" + meant
		}
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return Usage(help, "--%s is %q; want %s", f.Name, invalid.GetValue(), valueWords(f.Value.Type()))
	case errors.As(err, &bare):
		return Usage(help, "--%s has no value; want %s", bare.GetFlag().Name, valueWords(bare.GetFlag().Value.Type()))
	}
	return Usage(help, "%w", err)
}

func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// valueWords says what a flag of that type takes.
func valueWords(kind string) string {
	switch kind {
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number, for example 1.5"
	case "bool":
		return "true or false"
	}
	return "some text"
}

// NoArgs is the arguments of commands that take none.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%q is one argument too many: %q takes none", args[0], c.CommandPath())
}

// OneFile is NoArgs for commands that take a file or none.
func OneFile(c *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return Usage(fmt.Sprintf("see \"%s --help\"", c.CommandPath()), "%q is one argument too many: %q takes one file", args[1], c.CommandPath())
}

// OnlyCommands are the arguments of a command that only holds others: none, or
// else a name that it does not have.
func OnlyCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	hint := fmt.Sprintf("see \"%s --help\"", c.CommandPath())
	if meant := config.Nearest(args[0], names); meant != "" {
		hint = fmt.Sprintf("did you mean \"%s %s\"", c.CommandPath(), meant)
	}
	return Usage(hint, "unknown command %q for %q; want one of %s", args[0], c.CommandPath(), strings.Join(names, ", "))
}
