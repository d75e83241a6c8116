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
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/verb"
)

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
	verb.CompleteFlags(c, map[string]func() []string{
		"net": verb.Fixed("none", "allowlist", "full"), "mode": bawn.ModeNames, "caches": verb.Fixed("private", "read-only", "shared"),
		"provider": launch.ProviderNames, "profile": func() []string { return profileNames(e) },
		"open": layout.CredentialNames, "unprotect": protect.Keys, "device": config.Devices,
		"allow": verb.Fixed(), "http": verb.Fixed(), "git": verb.Fixed(), "host-port": verb.Fixed(), "publish": verb.Fixed(), "secret": verb.Fixed("*"), "ask-timeout": verb.Fixed("0s", "30s", "2m"),
		"split-workspace": verb.Fixed("rw", "ro"), "model-host": verb.Fixed(),
	})
}

// completeAudit are the words of the filters.
func completeAudit(c *cobra.Command, e *launch.Env) {
	verb.CompleteFlags(c, map[string]func() []string{
		"session": func() []string { return sessionIDs(e) }, "verdict": verb.Fixed("allow", "ask", "deny"),
		"kind": verb.Fixed(eventKinds...),
	})
}
