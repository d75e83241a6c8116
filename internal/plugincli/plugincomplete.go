package plugincli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
)

// maxCompleted is how many names one command line takes.
const maxCompleted = 100

// completePlugins completes arguments that are names of plugins, each once, at
// most so many.
func completePlugins(e *launch.Env, most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		d, err := pluginDirs(e)
		if err != nil || len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, _ := plugin.Load(d.Manifests) // those that can be read
		var names []string
		for _, m := range list {
			if !slices.Contains(args, m.Name) {
				names = append(names, m.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
