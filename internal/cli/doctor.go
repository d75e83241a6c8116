package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/doctor"
)

func newDoctorCommand(e *Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what this machine can enforce, by trying it",
		Long: `Find out what this machine can enforce.

Each mechanism is tried by itself, then the sandbox as a whole, and what it
refused is checked from outside. What does not work is printed with the one
command that mends it. The exit code is 1 when the default profile can't be
enforced here.`,
		Example: "  bawn doctor\n  bawn doctor --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			r := doctor.Examine()
			if err := printReport(e, r, asJSON); err != nil {
				return err
			}
			if !r.Healthy() {
				return exitStatus(1)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

func printReport(e *Env, r doctor.Report, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			doctor.Report
			Healthy bool   `json:"healthy"`
			Inside  string `json:"inside,omitempty"` // the session that this is a guest of
		}{r, r.Healthy(), inside(e)})
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %s\n\n", r.System, r.User)
	if where := inside(e); where != "" {
		fmt.Fprintf(w, "this is a guest, in %s: no session starts inside another, whatever is tried below; run doctor outside\n\n", where)
	}
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark(c), c.Name, c.Detail)
		if !c.OK && c.Remedy != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", c.Remedy)
		}
	}
	if len(r.Capabilities) > 0 {
		fmt.Fprintf(w, "\nprovider %s enforces%s\n", r.Provider, nothing(r))
	}
	for _, c := range r.Capabilities {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Strength, c.Attribute, how(c))
		if c.Strength != bawn.Enforced && c.Remedy != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", c.Remedy)
		}
	}
	fmt.Fprintln(w)
	if r.Healthy() {
		fmt.Fprintln(w, "the default profile can be enforced here")
	} else {
		fmt.Fprintln(w, "the default profile can't be enforced here: sessions are refused")
	}
	return w.Flush()
}

func mark(c doctor.Check) string {
	switch {
	case c.OK:
		return "ok"
	case c.NotTried:
		return "untried"
	case c.Needed:
		return "MISSING"
	}
	return "absent"
}

func nothing(r doctor.Report) string {
	if slices.ContainsFunc(r.Capabilities, func(c bawn.Capability) bool { return c.Strength != bawn.Unenforced }) {
		return ""
	}
	return " nothing here"
}

func how(c bawn.Capability) string {
	switch {
	case c.How != "" && c.Why != "":
		return c.How + "; " + c.Why
	case c.How != "":
		return c.How
	}
	return c.Why
}
