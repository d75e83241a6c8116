package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newAgentsCommand(e *launch.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "agents [NAME]",
		Short: "List the agents that are known, or say what is known of one",
		Long: `List the agents that "bawn run" knows, where they are installed, and what their
hooks can do. With NAME, say what a session of that agent may write, what it
must not change, which variables and hosts it gets, and what stays uncovered.`,
		Example: "  bawn agents\n  bawn agents claude\n  bawn agents --json | jq -r '.[] | select(.installed) | .name'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return verb.Usage("name one agent, or none for all", "%q is one argument too many", args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			list := agents.All()
			if len(args) == 1 {
				a, ok := agents.ByName(args[0])
				if !ok {
					return verb.Usage("use one of "+strings.Join(agents.Names(), ", "), "%q is no agent that is known", args[0])
				}
				list = []*agents.Agent{a}
			}
			switch {
			case asJSON:
				return verb.WriteJSON(e.Stdout, foundAgents(e, list))
			case len(args) == 1:
				return writeAgent(e.Stdout, foundAgents(e, list)[0])
			}
			return writeAgents(e.Stdout, foundAgents(e, list))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a list of JSON objects, with all that is known")
	c.ValidArgsFunction = cobra.FixedCompletions(agents.Names(), cobra.ShellCompDirectiveNoFileComp)
	return c
}

// A foundAgent is an agent and where it is installed.
type foundAgent struct {
	*agents.Agent
	Installed string `json:"installed,omitempty"`
}

func foundAgents(e *launch.Env, list []*agents.Agent) []foundAgent {
	found := make([]foundAgent, len(list))
	for i, a := range list {
		found[i].Agent = a
		for _, program := range a.Programs {
			if path, err := runner.LookAgent(program, e.Dir, e.Getenv("PATH")); err == nil {
				found[i].Installed = path
				break
			}
		}
	}
	return found
}

// writeAgents is the table.
func writeAgents(w io.Writer, list []foundAgent) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVERIFIED WITH\tHOOKS\tLATE HOOK\tMOVED BY\tINSTALLED")
	for _, a := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, verified(a.Agent), cmp.Or(strings.Join(a.Hooks.Can(), ", "), "none"), late(a.Hooks),
			cmp.Or(strings.Join(a.Moves, ", "), "-"), cmp.Or(redact.Visible(a.Installed), "-"))
	}
	return t.Flush()
}

func verified(a *agents.Agent) string {
	if !a.Verified {
		return "documentation only"
	}
	return a.Version
}

// late says what the agent does if a hook does not answer.
func late(h agents.Hooks) string {
	switch {
	case h.Kind == "":
		return "-"
	case h.FailsOpen:
		return "runs"
	}
	return "refused"
}

// writeAgent says all of one, in words.
func writeAgent(w io.Writer, a foundAgent) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "%s\tverified with %s; %s\n", a.Title, verified(a.Agent), cmp.Or(redact.Visible(a.Installed), "not installed"))
	f, env := a.Files, a.Environment
	for _, l := range []struct {
		what string
		list []string
	}{
		{"not covered", a.Uncovered}, {"its directories", homes(env.Homes)},
		{"writes", f.State}, {"has its own copy of", f.Cache}, {"has empty ones of the session's own of", f.Private}, {"reads", f.Read}, {"can't change", f.Guard}, {"can't change in a project", f.ProjectGuard},
		{"gets the variables", a.Variables()}, {"its keys", env.Keys}, {"its authorities come from", env.CA}, {"its models", a.Models},
		{"its login", one(a.Login)}, {"its hooks can", a.Hooks.Can()}, {"its hooks are in", one(a.Hooks.User, a.Hooks.Project, a.Hooks.Managed)},
		{"commands are moved by", a.Moves}, {"its own sandbox", one(a.Sandbox.Note)}, {"started with", slices.Concat(a.Sandbox.Off, a.Prompts.Off)},
		{"skills", f.Skills}, {"definitions", f.Definitions}, {"instructions", f.Instructions},
	} {
		for i, text := range l.list {
			what := l.what
			if i > 0 {
				what = ""
			}
			fmt.Fprintf(t, "  %s\t%s\n", what, text)
		}
	}
	return t.Flush()
}

// homes explains the variables at the beginning of places.
func homes(all map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fmt.Sprintf("$%s is %s, unless you set it", name, all[name]))
	}
	return list
}

// one leaves out empty values.
func one(texts ...string) []string {
	var list []string
	for _, t := range texts {
		if t != "" {
			list = append(list, t)
		}
	}
	return list
}
