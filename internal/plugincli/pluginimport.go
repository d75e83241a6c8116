package plugincli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newPluginImport(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE [NAME]",
		Short: "Make manifests of the servers in an agent's settings",
		Long: `List the servers that a file of an agent's names (.mcp.json, settings.json,
opencode.json, config.toml), or write the manifest of one. A manifest made so
permits nothing: no files, no hosts, no secrets, every call asks. Fill in what
it needs, and add it.`,
		Example: "  bawn plugin import .mcp.json\n  bawn plugin import .mcp.json github > github.toml\n  bawn plugin add github.toml",
		Args:    cobra.RangeArgs(1, 2),
		RunE:    func(_ *cobra.Command, args []string) error { return importPlugins(e, args) },
	}
}

func importPlugins(e *launch.Env, args []string) error {
	text, err := readInput(e, args[0])
	if err != nil {
		return verb.Usage("name a file such as .mcp.json", "%w", err)
	}
	all, err := plugin.Import(text)
	if err != nil {
		return verb.Usage("name a file such as .mcp.json", "%q: %w", args[0], err)
	}
	if len(args) == 2 {
		return writeProposal(e, all, args[1])
	}
	for _, p := range all {
		if _, err := fmt.Fprintf(e.Stdout, "%s\n  %s\n", p.Manifest.Name, strings.Join(p.Manifest.Words(), "\n  ")); err != nil {
			return err
		}
		for _, n := range p.Notes {
			fmt.Fprintln(e.Stdout, "  note: "+verb.Visible(n))
		}
	}
	return nil
}

func writeProposal(e *launch.Env, all []plugin.Proposal, name string) error {
	for _, p := range all {
		if p.Manifest.Name != name {
			continue
		}
		text, err := p.Manifest.Text()
		if err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: err}
		}
		for _, n := range p.Notes {
			fmt.Fprintln(e.Stdout, "# "+verb.Visible(n))
		}
		_, err = e.Stdout.Write(text)
		return err
	}
	return verb.Usage("\"bawn plugin import FILE\" lists them", "the file names no server %q", name)
}
