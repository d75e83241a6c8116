package plugincli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// listPatience is how long a server may take to list its tools: npx may have to
// fetch it first, with some hundred packages that it needs.
const listPatience = 5 * time.Minute

func newPluginPin(e *launch.Env) *cobra.Command {
	var yes, dry, asJSON bool
	c := &cobra.Command{
		Use:   "pin NAME",
		Short: "Start a plugin once, show its tools and pin what they say",
		Long: `Start a plugin as a guest, with what its manifest lets it do, and have it list
its tools. What differs from the pins is shown; if you agree, it is what is
pinned from now on. With --dry-run nothing is pinned, and the exit code is 1
where something differs.`,
		Example: "  bawn plugin pin filesystem\n  bawn plugin pin filesystem --dry-run --json",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completePlugins(e, 1),
		RunE:              func(_ *cobra.Command, args []string) error { return pinPlugin(e, args[0], yes, dry, asJSON) },
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "agree to what is shown without being asked")
	c.Flags().BoolVar(&dry, "dry-run", false, "only compare")
	c.Flags().BoolVar(&asJSON, "json", false, "write the differences as JSON")
	return c
}

func pinPlugin(e *launch.Env, name string, yes, dry, asJSON bool) error {
	d, err := pluginDirs(e)
	if err != nil {
		return err
	}
	m, err := readPlugin(d, name)
	if err != nil {
		return err
	}
	if m.Kind == plugin.Hook {
		_, err := fmt.Fprintf(e.Stdout, "%s is a hook: it has no tools, and there is nothing to pin\n", name)
		return err
	}
	old, err := plugin.LoadPins(d.Pins, name)
	if err != nil {
		return &verb.Error{Code: verb.ExitUsage, Err: err}
	}
	listing, err := listTools(e, d, m)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("the plugin %q did not list its tools: %w", name, err), Hint: "its manifest may let it do too little; what it writes to standard error is above"}
	}
	changes := plugin.Compare(old, listing.Tools)
	if old.Instructions != plugin.DigestText(listing.Instructions) {
		changes = append(changes, plugin.Change{Difference: plugin.Changed, Why: "what it tells the model at the start is not what is pinned"})
	}
	if err := sayChanges(e, listing, changes, asJSON); err != nil {
		return err
	}
	if dry {
		return exitOn(len(changes) > 0)
	}
	if len(changes) > 0 {
		if err := Confirm(e, "Pin this?", yes); err != nil {
			return err
		}
	}
	pins := plugin.Pinned(name, listing.Instructions, listing.Tools)
	if err := errors.Join(pins.Save(d.Pins), pins.Keep(d.Pins, listing.Tools)); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	return nil
}

func exitOn(differs bool) error {
	if differs {
		return verb.Status(1)
	}
	return nil
}

// sayChanges shows new and changed tools, with everything that a model would
// read.
func sayChanges(e *launch.Env, l plugin.Listing, changes []plugin.Change, asJSON bool) error {
	if asJSON {
		return verb.WriteJSON(e.Stdout, map[string]any{"tools": len(l.Tools), "changes": append([]plugin.Change{}, changes...)})
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintf(e.Stdout, "%d tools, all as they are pinned\n", len(l.Tools))
		return err
	}
	says := map[string]string{"": l.Instructions}
	for _, t := range l.Tools {
		says[t.Name] = t.Description
	}
	for _, c := range changes {
		what := "the instructions"
		if c.Tool != "" {
			what = "the tool " + verb.Visible(c.Tool)
		}
		if _, err := fmt.Fprintf(e.Stdout, "%s: %s: %s\n", c.Difference, what, verb.Visible(c.Why)); err != nil {
			return err
		}
		for line := range strings.Lines(firstOf(says[c.Tool])) {
			fmt.Fprintln(e.Stdout, "    | "+verb.Visible(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}

// firstOf says that it left something out.
func firstOf(text string) string {
	const most = 4000
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s\n(%d bytes more)", strings.ToValidUTF8(text[:most], ""), len(text)-most)
}

// listTools starts the plugin as a guest and lists its tools.
func listTools(e *launch.Env, d plugin.Dirs, m *plugin.Manifest) (plugin.Listing, error) {
	workspace := settings.WorkspaceOf(e.Dir, e.Getenv("HOME"))
	p, err := e.StartPlugin(d, m, workspace)
	if err != nil {
		return plugin.Listing{}, err
	}
	late := time.AfterFunc(listPatience, p.End)
	l, err := plugin.List(p.Out, p.In)
	if !late.Stop() {
		err = errors.Join(fmt.Errorf("it took longer than %s", listPatience), err)
	}
	p.End()
	if err = errors.Join(err, p.Wait(err != nil)); err == nil {
		err = d.SetComplete(m)
	}
	return l, err
}
