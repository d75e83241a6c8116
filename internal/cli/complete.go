package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/verb"
)

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

// sessionIDs lists the newest sessions of the log, with their commands.
func sessionIDs(e *launch.Env) []string {
	const most = 50
	dir, err := settings.AuditDir(&e.World)
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

// completeAudit are the words of the filters.
func completeAudit(c *cobra.Command, e *launch.Env) {
	verb.CompleteFlags(c, map[string]func() []string{
		"session": func() []string { return sessionIDs(e) }, "verdict": verb.Fixed("allow", "ask", "deny"),
		"kind": verb.Fixed(eventKinds...),
	})
}
