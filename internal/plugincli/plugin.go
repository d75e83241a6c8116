// Package plugincli holds "bawn plugin" and "bawn mcp": tool servers as guests, and
// the gateway in front of them.
package plugincli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/verb"
)

// NewPlugin makes "bawn plugin".
func NewPlugin(e *launch.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Say which tool servers and hooks may run, and what each may do",
		Long: `A plugin is somebody else's program: an MCP server, or a hook that may object to
what guests do. Its manifest says what it may do, you agree to that, and each runs
as a guest of its own with that and nothing more. What tools say of themselves is
pinned: a change asks.`,
		Example: "  bawn plugin add --npx '@modelcontextprotocol/server-filesystem@2026.8.31' --read . -- .\n" +
			"  bawn plugin import .mcp.json\n  bawn plugin list\n  bawn plugin show filesystem\n  bawn plugin pin filesystem\n  bawn plugin check\n  bawn plugin rm filesystem",
		Args: verb.OnlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPluginAdd(e), newPluginList(e), newPluginShow(e), newPluginRemove(e), newPluginCheck(e), newPluginPin(e), newPluginImport(e))
	return c
}

// pluginDirs are those of the human. A guest has no plugins: what it may start
// is not its own to say.
func pluginDirs(e *launch.Env) (plugin.Dirs, error) {
	if where := launch.Inside(e); where != "" {
		return plugin.Dirs{}, &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("this is a guest, in %s: plugins are not a guest's to see or change", where),
			Hint: "a project can propose some in .mcp.json; who works outside of the session adds them with \"bawn plugin import\""}
	}
	d, err := plugin.DirsOf(e.Getenv)
	if err != nil {
		return d, verb.Usage("set HOME", "%w", err)
	}
	return d, nil
}

// readPlugin reads one manifest that was added.
func readPlugin(d plugin.Dirs, name string) (*plugin.Manifest, error) {
	m, err := plugin.Read(d.Manifests, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, verb.Usage("\"bawn plugin list\" lists those that there are", "there is no plugin %q", name)
	case err != nil:
		return nil, &verb.Error{Code: verb.ExitUsage, Err: err, Hint: "mend the manifest, or remove it with \"bawn plugin rm\""}
	}
	return m, nil
}

// A pluginLine is one plugin as JSON.
type pluginLine struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Version string   `json:"version,omitempty"`
	About   string   `json:"about,omitempty"`
	Command []string `json:"command"`
	May     []string `json:"may"`    // in human words
	Pinned  int      `json:"pinned"` // tools
}

func lineOf(d plugin.Dirs, m *plugin.Manifest) (pluginLine, error) {
	pins, err := plugin.LoadPins(d.Pins, m.Name)
	return pluginLine{m.Name, m.Kind, m.Version, m.About, m.Argv(), m.Words(), len(pins.Tools)}, err
}

func newPluginList(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the plugins", Example: "  bawn plugin list --json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listPlugins(e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func listPlugins(e *launch.Env, asJSON bool) error {
	d, err := pluginDirs(e)
	if err != nil {
		return err
	}
	all, broken := plugin.Load(d.Manifests)
	lines := []pluginLine{}
	for _, m := range all {
		l, err := lineOf(d, m)
		lines, broken = append(lines, l), errors.Join(broken, err)
	}
	if asJSON {
		err = verb.WriteJSON(e.Stdout, map[string]any{"plugins": lines})
	} else {
		err = printPlugins(e, lines)
	}
	if err != nil || broken == nil {
		return err
	}
	return &verb.Error{Code: verb.ExitUsage, Err: broken, Hint: "what can't be read in full does not run"}
}

func printPlugins(e *launch.Env, lines []pluginLine) error {
	if len(lines) == 0 {
		fmt.Fprintln(e.Stderr, "bawn: note: there are no plugins; \"bawn plugin add\" adds one")
		return nil
	}
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tVERSION\tPINNED\tCOMMAND")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", l.Name, l.Kind, verb.Visible(l.Version), l.Pinned, verb.Visible(strings.Join(l.Command, " ")))
	}
	return t.Flush()
}

func newPluginShow(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show NAME", Short: "Show what a plugin may do, and its pins", Example: "  bawn plugin show filesystem", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completePlugins(e, 1),
		RunE:              func(_ *cobra.Command, args []string) error { return showPlugin(e, args[0], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func showPlugin(e *launch.Env, name string, asJSON bool) error {
	d, err := pluginDirs(e)
	if err != nil {
		return err
	}
	m, err := readPlugin(d, name)
	if err != nil {
		return err
	}
	pins, err := plugin.LoadPins(d.Pins, name)
	if err != nil {
		return &verb.Error{Code: verb.ExitUsage, Err: err}
	}
	line, err := lineOf(d, m)
	if err != nil {
		return err
	}
	if asJSON {
		return verb.WriteJSON(e.Stdout, struct {
			pluginLine
			Pins plugin.Pins `json:"pins"`
		}{line, pins})
	}
	fmt.Fprintf(e.Stdout, "%s\n  %s\n", name, strings.Join(line.May, "\n  "))
	for _, p := range pins.Tools {
		verdict, why := m.Tools.Verdict(p.Name)
		fmt.Fprintf(e.Stdout, "  pinned: %s  %s  (%s, %s)\n", p.Name, p.Digest[:19], verdict, why)
	}
	return nil
}

func newPluginRemove(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Short: "Remove plugins and their pins", Example: "  bawn plugin rm filesystem", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: completePlugins(e, maxCompleted),
		RunE: func(_ *cobra.Command, args []string) error {
			d, err := pluginDirs(e)
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := removePlugin(e, d, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// removePlugin works also where the manifest can't be read. The plugin's own
// directory is the human's to look at.
func removePlugin(e *launch.Env, d plugin.Dirs, name string) error {
	if err := plugin.CheckPlugin(name); err != nil {
		return verb.Usage("\"bawn plugin list\" lists those that there are", "%w", err)
	}
	err := os.Remove(filepath.Join(d.Manifests, name+".toml"))
	if errors.Is(err, fs.ErrNotExist) {
		return verb.Usage("\"bawn plugin list\" lists those that there are", "there is no plugin %q", name)
	}
	if err := errors.Join(err, plugin.RemovePins(d.Pins, name)); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	_, err = fmt.Fprintf(e.Stdout, "removed %s and its pins\n", name)
	if own := filepath.Join(d.Own, name); isThere(own) {
		fmt.Fprintf(e.Stderr, "bawn: note: what it has kept is still in %s\n", own)
	}
	return err
}

func newPluginCheck(e *launch.Env) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE...]", Short: "Look for mistakes in manifests", Args: cobra.ArbitraryArgs,
		Long:    "Look for mistakes in manifests: those of the files, or else of all plugins. With\nFILE it says what the plugin could do.",
		Example: "  bawn plugin check\n  bawn plugin check github.toml",
		RunE:    func(_ *cobra.Command, args []string) error { return checkPlugins(e, args) },
	}
}

func checkPlugins(e *launch.Env, files []string) error {
	if len(files) == 0 {
		d, err := pluginDirs(e)
		if err != nil {
			return err
		}
		all, broken := plugin.Load(d.Manifests)
		for _, m := range all {
			_, err := plugin.LoadPins(d.Pins, m.Name)
			broken = errors.Join(broken, err)
		}
		if broken != nil {
			return &verb.Error{Code: verb.ExitUsage, Err: broken, Hint: "what can't be read in full does not run"}
		}
		_, err = fmt.Fprintf(e.Stdout, "%d plugins, nothing is wrong with their manifests\n", len(all))
		return err
	}
	for _, file := range files {
		m, _, err := manifestOf(e, file, "")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(e.Stdout, "%s\n  %s\n", m.Name, strings.Join(m.Words(), "\n  ")); err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether a path names something, if only a link.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
