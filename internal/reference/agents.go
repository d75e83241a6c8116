package reference

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/hooksetup"
)

// agentsPage is the page of the agents that are known, made of their data files.
func agentsPage() string {
	var b strings.Builder
	b.WriteString("# Agents\n\nWhat `bawn agents NAME` says. † was described from the agent's documentation, not run.\n" +
		"[Agents](../agents.md) tells what a session of one gets.\n" +
		"\n## Hooks\n\nThe files that `bawn init` writes:\n\n| agent | project | `--user` | `--managed` |\n|---|---|---|---|\n")
	all := known()
	for _, a := range all {
		if a.Hooks.Veto {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", title(a), hookFile(a, hooksetup.Project), hookFile(a, hooksetup.User), hookFile(a, hooksetup.Managed))
		}
	}
	b.WriteString("\nWhat a hook can do. Each can deny. A command is moved to Bawn by the hook (\"rewrite\"), by Bawn's extension, or by a variable of the agent:\n\n" +
		"| agent | verified with | events | replaces a command | asks in the agent's prompt | a late or broken hook | Bawn answers within | commands moved by |\n|---|---|---|---|---|---|---|---|\n")
	for _, a := range all {
		if a.Hooks.Veto {
			fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s | %s | %s |\n", title(a), a.Version, strings.Join(a.Hooks.Events, "`, `"),
				yes(a.Hooks.Rewrite), yes(a.Hooks.Ask), late(a), hook.Supports(a.Name).Patience, strings.Join(a.Moves, ", "))
		}
	}
	b.WriteString("\n## What is not covered\n")
	for _, a := range all {
		fmt.Fprintf(&b, "\n### %s\n\nLogin: %s.\n\n", a.Title, escape(a.Login))
		for _, text := range a.Uncovered {
			fmt.Fprintf(&b, "* %s\n", escape(text))
		}
		if a.Sandbox.Note != "" {
			fmt.Fprintf(&b, "* its own sandbox: %s\n", escape(a.Sandbox.Note))
		}
	}
	return b.String()
}

func known() (all []*agents.Agent) {
	for _, name := range agents.Names() {
		if a, ok := agents.ByName(name); ok {
			all = append(all, a)
		}
	}
	return all
}

func title(a *agents.Agent) string {
	if a.Verified {
		return a.Title
	}
	return a.Title + " †"
}

// hookFile is where an agent's hooks stand, with the usual directories in place of variables.
func hookFile(a *agents.Agent, l hooksetup.Level) string {
	file := hooksetup.File(a, l)
	if file == "" {
		return "–"
	}
	for name, home := range a.Environment.Homes {
		file = strings.Replace(file, "$"+name+"/", strings.TrimSuffix(home, "/")+"/", 1)
	}
	return "`" + file + "`"
}

func yes(can bool) string {
	if can {
		return "yes"
	}
	return "no"
}

func late(a *agents.Agent) string {
	if a.Hooks.FailsOpen {
		return "lets the command run"
	}
	return "refuses"
}
