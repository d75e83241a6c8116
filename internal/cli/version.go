package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/verb"
)

// build is what there is to know of this program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where it was built from a repository
	Modified bool   `json:"modified,omitempty"` // since that revision
	Go       string `json:"go"`
	System   string `json:"system"` // operating system and architecture
}

func thisBuild() build {
	b := build{Version: launch.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersionCommand(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  bawn version\n  bawn version --json",
		Args:    verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return verb.WriteJSON(e.Stdout, b)
			}
			_, err := fmt.Fprintf(e.Stdout, "bawn version %s (%s, %s)\n", b.Version, b.System, b.Go)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, with the revision of the source")
	return c
}
