package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/skill"
)

// completeFlags tells the shell's completion what each flag of c takes: words,
// or a function that finds them when they are asked for.
func completeFlags(c *cobra.Command, words map[string]func() []string) {
	for flag, list := range words {
		_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return list(), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// fixed are words that are always the same.
func fixed(words ...string) func() []string { return func() []string { return words } }

// profileNames lists the profiles that could be chosen here; where the
// configuration is broken, the built-in ones.
func profileNames(e *launch.Env) []string {
	if in, err := launch.InputsHere(e); err == nil {
		if c, err := config.Load(in); err == nil {
			return c.Profiles()
		}
	}
	return config.BuiltinProfiles()
}

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

// completeSkills completes arguments that are names of pinned skills.
func completeSkills(e *launch.Env) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		file, err := launch.SkillPins(e)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		pins, _ := skill.LoadPins(file) // a broken file has none
		var names []string
		for _, p := range pins.All() {
			if !slices.Contains(args, p.Name) && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
		return names, cobra.ShellCompDirectiveDefault
	}
}

// sessionIDs lists the newest sessions of the log, with what they ran.
func sessionIDs(e *launch.Env) []string {
	const most = 50
	dir, err := launch.AuditDir(e)
	if err != nil {
		return nil
	}
	var ids []string
	for _, v := range sessionsFrom(dir, "") {
		ids = append(ids, redact.Visible(v.Session)+"\t"+v.Time.Local().Format("2006-01-02 15:04 ")+cut(redact.Visible(v.Resource), 40))
	}
	slices.Reverse(ids)
	return ids[:min(len(ids), most)]
}

// completeCommand completes the guest's command: the first word is a program
// of PATH, and what follows the shell knows better.
func completeCommand(e *launch.Env) cobra.CompletionFunc {
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

// completeRun are the words of bawn run's flags.
func completeRun(c *cobra.Command, e *launch.Env) {
	c.ValidArgsFunction = completeCommand(e)
	_ = c.MarkFlagDirname("cwd")
	completeFlags(c, map[string]func() []string{
		"net": fixed("none", "allowlist", "full"), "mode": bawn.ModeNames, "caches": fixed("private", "read-only", "shared"),
		"provider": launch.ProviderNames, "profile": func() []string { return profileNames(e) },
		"open": layout.CredentialNames, "unprotect": protect.Keys, "device": config.Devices,
		"allow": fixed(), "http": fixed(), "git": fixed(), "host-port": fixed(), "publish": fixed(), "secret": fixed("*"), "ask-timeout": fixed("0s", "30s", "2m"),
		"split-workspace": fixed("rw", "ro"), "model-host": fixed(),
	})
}

// completeAudit are the words of the filters.
func completeAudit(c *cobra.Command, e *launch.Env) {
	completeFlags(c, map[string]func() []string{
		"session": func() []string { return sessionIDs(e) }, "verdict": fixed("allow", "ask", "deny"),
		"kind": fixed(eventKinds...),
	})
}
