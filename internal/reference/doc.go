// Package reference writes the documents that follow from the code: the pages of
// docs/reference, manual pages, and scripts for the shells' completion. Nothing of it
// is linked into a program that is installed.
package reference

//go:generate go run ./gen pages ../.. ../../docs/reference

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bawn-dev/bawn/internal/cli"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/relaycli"
	"github.com/bawn-dev/bawn/internal/skill/strict"
	"github.com/bawn-dev/bawn/internal/vaultcli"
)

// Tree returns the command line as a user sees it: the verbs of bawn, with bawnd's
// commands and flags for those that bawn hands to bawnd.
func Tree() *cobra.Command {
	root := cli.Root(&launch.Env{CheckSkill: strict.Check})
	for _, full := range append(relaycli.Commands(&relaycli.Env{}), vaultcli.NewCommand(&vaultcli.Env{})) {
		for _, short := range root.Commands() {
			if short.Name() == full.Name() {
				full.GroupID = short.GroupID
				root.RemoveCommand(short)
			}
		}
		root.AddCommand(full)
	}
	return root
}

// A section is a heading of "bawn --help" with its commands.
type section struct {
	title    string
	commands []*cobra.Command
}

// sections returns the commands under their headings, and last those without one.
func sections(root *cobra.Command) []section {
	var out []section
	for _, g := range root.Groups() {
		out = append(out, section{strings.TrimSuffix(g.Title, ":"), listed(root, g.ID)})
	}
	return append(out, section{"Others", listed(root, "")})
}

func listed(parent *cobra.Command, group string) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range parent.Commands() {
		if c.GroupID == group && !c.Hidden && c.Name() != "help" {
			out = append(out, c)
		}
	}
	return out
}

// below returns a command and all that are below it, in the order of their names.
func below(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			out = append(out, below(sub)...)
		}
	}
	return out
}

// flags returns the flags that a command takes, its own and those of its parents.
func flags(c *cobra.Command) []*pflag.Flag {
	var out []*pflag.Flag
	add := func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	c.LocalFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	return out
}

// flagForm is how a flag is written, "-p, --publish PORT", and flagText what it does.
func flagForm(f *pflag.Flag) string {
	form := "--" + f.Name
	if f.Shorthand != "" {
		form = "-" + f.Shorthand + ", " + form
	}
	name, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Value.Type() == "bool":
		return form
	case f.NoOptDefVal != "":
		return form + "[=" + valueName(name) + "]"
	}
	return form + " " + valueName(name)
}

func flagText(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	return text
}

// valueName is what stands for a flag's value: the name that its help quotes, or a
// general one.
func valueName(name string) string {
	switch name {
	case "", "string", "strings", "stringArray":
		return "VALUE"
	case "int", "int64", "uint", "float", "float64":
		return "NUMBER"
	case "duration":
		return "TIME"
	}
	if strings.HasPrefix(name, `"`) {
		return name
	}
	return strings.ToUpper(name)
}

// usage is how a command is called: by itself, where it does something then, and with
// the commands below it.
func usage(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return c.UseLine()
	}
	below := c.CommandPath() + " COMMAND"
	if c.HasAvailableLocalFlags() || strings.Contains(c.Use, " ") {
		return c.UseLine() + "\n" + below
	}
	return below
}
