package protect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// TestPage holds docs/protected-names.md to the data; -update writes it anew.
func TestPage(t *testing.T) { golden.Compare(t, "../../docs/protected-names.md", page()) }

const pageHead = `# Protected names

<!-- made from internal/protect/data: go test ./internal/protect -run Page -update -->

A session may read everything that the project has, and can't create or change what is listed here: programs on the host execute or obey these files
although nobody runs the project's code. ` + "`bawn policy explain`" + ` names the entry that counted, and so does each refusal.

## The rule

A name is protected if all of this is true.

1. A program of the host reads it by itself when somebody opens or enters the directory (an editor, a coding agent, a shell with direnv or mise), asks a
   version control for the status or commits, starts an interpreter or a debugger there, or runs a package manager. A program that has asked once for the
   directory counts as one that reads by itself.
2. It says which program, code, server, registry or right counts.
3. It is not the project's own code or build (risk R2), and no everyday command writes it as its output.

Texts that only a coding agent reads are protected. Those that humans read too, such as AGENTS.md, are not: the policy asks before a tool writes one.
Names count at any depth, since somebody may open, enter or start something in any directory of a project. Dotfiles of shells and logins are executed from a home
directory alone, and people keep them in projects and link them into it: they count at the top of what a session may write. They count at any depth of

* a place that is, or holds, a home directory of "/etc/passwd", what ZDOTDIR or XDG_CONFIG_HOME names, or lies directly in "/home" or "/Users";
* a place to which a link in your home directory leads, by one of the names below;
* a place that "--rw" or "isolation.mounts" opens beside the workspace, and with provider "seatbelt" everywhere.

So "test/home/.bashrc" is a file as others in most projects, and "bash/.bashrc" is not where you keep your dotfiles.

Names count in any letters and in any spelling that some file system takes for the same. What ends in "/" is a directory with all that it
holds, and "*" stands for any part of a name.

## Open one for a project

` + "```" + `
bawn run --unprotect rust-toolchain.toml -- claude
` + "```" + `

or, in your own configuration or that of a project you trust:

` + "```" + `toml
[isolation]
unprotect = ["rust-toolchain.toml", ".npmrc"]
` + "```" + `

This holds for the sandbox and for the policy, in every provider. ` + "`--plan`" + ` shows it as ` + "`unprotected_names`" + `, and the session's first event in the log as
` + "`unprotected`" + `. ` + "`isolation.protected`" + ` and ` + "`--protect`" + ` win over it. Bawn's own names, git's directory and credentials can't be opened so.
`

// page is docs/protected-names.md.
func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	table := func(title, head string, list []Entry, row func(e *Entry) string) {
		fmt.Fprintf(&b, "\n## %s\n\n%s", title, head)
		for i := range list {
			if text := row(&list[i]); text != "" {
				b.WriteString(text + "\n")
			}
		}
	}
	three := "| name | obeyed by | what there is |\n|---|---|---|\n"
	of := func(want ...Class) func(e *Entry) string {
		return func(e *Entry) string {
			for _, c := range want {
				if e.Class == c {
					return fmt.Sprintf("| `%s` | %s | %s |", e.Pattern, e.By, e.Why+onlyOn(e))
				}
			}
			return ""
		}
	}
	table("In a project: what programs of the host execute or obey", three, Project(), of(Host))
	table("At the top of a project, and where a home directory is", three, Project(), of(Login))
	table("In a project: what coding agents and Bawn obey", three, Project(), of(Agent, Bawn))
	table("In a project: credentials", "The policy lets no tool of an agent read or write them.\n\n"+three, Project(), of(Credential))
	table("In a git directory", "The policy goes by these names. A sandbox rules part by part.\n\n"+three, inGit(), of(Git))
	table("Below the home directory", "They count where a session may write a directory that holds one. Name one with `--rw` to open it.\n\n"+three, Home(), of(Host))
	table("Agents' own places", "A place is hidden from all sessions but its agent's, unless `--open NAME` says otherwise. What stands behind a place is what its agent's own sessions can't change either.\n\n"+three,
		ofAgents(), of(Agent, Guard))
	table("Credentials below the home directory", "No session sees them, unless `--open NAME` says so.\n\n| place | name | what there is |\n|---|---|---|\n", credentials(), func(e *Entry) string {
		return fmt.Sprintf("| `%s` | %s | %s |", e.Pattern, orDash(e.Name), e.Why+onlyOn(e))
	})
	b.WriteString("\n## What is not protected, and why\n\n| name | why not |\n|---|---|\n")
	for _, m := range Left() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", m.Name, m.Why)
	}
	return b.String()
}

func onlyOn(e *Entry) string {
	if e.System == "all" {
		return ""
	}
	return " (on " + map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}[e.System] + ")"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return "`" + s + "`"
}
