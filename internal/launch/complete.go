package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// profileNames lists the profiles that could be chosen here; where the
// configuration is broken, the built-in ones.
func profileNames(e *Env) []string {
	if in, err := settings.InputsHere(&e.World); err == nil {
		if c, err := config.Load(in); err == nil {
			return c.Profiles()
		}
	}
	return config.BuiltinProfiles()
}

// completeCommand completes the guest's command: its first word is a program of
// PATH, and the shell completes the rest.
func completeCommand(e *Env) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(begun, "/") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var names []string
		for dir := range strings.SplitSeq(e.Getenv("PATH"), ":") {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, f := range entries {
				if info, err := os.Stat(filepath.Join(dir, f.Name())); strings.HasPrefix(f.Name(), begun) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					names = append(names, f.Name())
				}
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteRun are the words of bawn run's flags.
func CompleteRun(c *cobra.Command, e *Env) {
	c.ValidArgsFunction = completeCommand(e)
	_ = c.MarkFlagDirname("cwd")
	verb.CompleteFlags(c, map[string]func() []string{
		"net": verb.Fixed("none", "allowlist", "full"), "mode": bawn.ModeNames, "caches": verb.Fixed("private", "read-only", "shared"),
		"provider": ProviderNames, "profile": func() []string { return profileNames(e) },
		"open": layout.CredentialNames, "unprotect": protect.Keys, "device": config.Devices,
		"allow": verb.Fixed(), "http": verb.Fixed(), "git": verb.Fixed(), "host-port": verb.Fixed(), "publish": verb.Fixed(), "secret": verb.Fixed("*"), "ask-timeout": verb.Fixed("0s", "30s", "2m"),
		"split-workspace": verb.Fixed("rw", "ro"), "model": verb.Fixed(),
	})
}
