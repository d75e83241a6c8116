package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	bare "github.com/bawn-dev/bawn/internal/sandbox/host"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// doctorPatience is how long doctor waits for a provider: one that starts an engine
// for the first time may need some of it.
const doctorPatience = 10 * time.Second

// enginePatience is how long it waits for the trial of an engine.
const enginePatience = 50 * time.Second

func newDoctorCommand(e *launch.Env) *cobra.Command {
	var asJSON, fresh, engine bool
	var only string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what this machine can enforce, by trying it",
		Long: `Find out what this machine can enforce.

Each mechanism is tried by itself, then the sandbox as a whole, and what it
refused is checked from outside. Then every provider is asked what it enforces
here, attribute by attribute: what it does in part and what it does not is
printed below the table with the reason, and with the one command that mends it.

What other engines can do is known until the machine is booted again, or the
engine becomes another one; --fresh tries it anew. The exit code is 1 when no
provider can enforce the default profile here, or not the one that your
configuration names.`,
		Example: "  bawn doctor\n  bawn doctor --fresh\n  bawn doctor --json",
		Args:    verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if only != "" {
				return printCapabilities(e, only)
			}
			if engine {
				return verb.WriteJSON(e.Stdout, engineCheck(e, enginePatience))
			}
			d := diagnose(e, fresh)
			if err := d.print(e, asJSON); err != nil {
				return err
			}
			if d.Default == "" {
				return verb.Status(1)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	c.Flags().BoolVar(&fresh, "fresh", false, "try everything anew, also what is known since the machine was booted")
	c.Flags().StringVar(&only, doctor.CapabilitiesFlag, "", "print as JSON what one `provider` enforces")
	c.Flags().BoolVar(&engine, doctor.EngineFlag, false, "print as JSON whether guests may make containers")
	_ = errors.Join(c.Flags().MarkHidden(doctor.CapabilitiesFlag), c.Flags().MarkHidden(doctor.EngineFlag)) // they exist
	return c
}

// A diagnosis is all that doctor finds out.
type diagnosis struct {
	doctor.Report
	Providers []doctor.Column `json:"providers"`
	Default   string          `json:"default,omitempty"` // the provider of a session that names none
	Named     string          `json:"named,omitempty"`   // the one that the configuration names for it
	Healthy   bool            `json:"healthy"`
	Inside    string          `json:"inside,omitempty"` // the session that this is a guest of

	needs []string // the attributes that a session of the default profile asks for
}

func diagnose(e *launch.Env, fresh bool) *diagnosis {
	d := &diagnosis{Report: doctor.Examine(), Inside: launch.Inside(e), needs: sandbox.Needs(bawn.Isolation{Protect: true, Network: bawn.NetworkAllowlist})}
	s := launch.SettingOf(e, nil)
	if in, err := settings.InputsHere(&e.World); err == nil {
		if s.Config, err = config.Load(in); err == nil {
			d.needs, d.Named = sandbox.Needs(unnamed(s.Config, in.Workspace)), s.Config.Provider
		}
	}
	if fresh {
		for _, l := range launch.Roll {
			s.Forget(l.Name)
		}
		s.Forget(launch.TrialName)
	}
	if c := engineCheck(e, enginePatience); c != nil {
		d.Checks = append(d.Checks, *c)
	}
	d.Providers = doctor.Survey(d.subjects(e, s), doctorPatience, progress(e))
	d.Default = d.pick(s)
	d.Healthy = d.Default != ""
	return d
}

// pick returns the provider that a session gets if it names no provider. It returns
// "" if no provider fits, or if the provider that the configuration names is not a
// sandbox.
func (d *diagnosis) pick(s launch.Setting) string {
	for _, c := range d.Providers {
		i := slices.IndexFunc(launch.Roll, func(l launch.Listed) bool { return l.Name == c.Provider })
		switch {
		case d.Named == c.Provider && c.Offers(d.needs), d.Named == "" && launch.Roll[i].Eligible(s) && c.Meets(d.needs):
			return c.Provider
		}
	}
	return ""
}

// unnamed is what a session asks for that names nothing. Without the program that
// serves the network, it has none.
func unnamed(c *config.Config, workspace string) bawn.Isolation {
	iso := c.Isolation(workspace)
	if _, err := remote.Find(); err != nil && c.NetworkAt().Layer == config.Builtin {
		iso.Network = bawn.NetworkNone
	}
	return iso
}

// subjects are the providers. What the first one enforces has been proven by
// its trial as a whole.
func (d *diagnosis) subjects(e *launch.Env, s launch.Setting) []doctor.Subject {
	var list []doctor.Subject
	for _, l := range launch.Roll {
		ask := func() []bawn.Capability { return d.Capabilities }
		p, _ := e.Find(l.Name, s)
		switch {
		case p == nil:
			ask = func() []bawn.Capability { return e.AskWhole(l.Name, doctorPatience) }
		case l.Name != layout.NativeName || len(d.Capabilities) == 0:
			ask = func() []bawn.Capability { return capabilitiesOf(e, l.Name, p, s) }
		}
		list = append(list, doctor.Subject{Name: l.Name, Ask: ask, Bare: p != nil && sandbox.AbilitiesOf(p).Bare})
	}
	return list
}

// capabilitiesOf is what a provider enforces. That it is nothing may be an old story.
func capabilitiesOf(e *launch.Env, name string, p sandbox.Provider, s launch.Setting) []bawn.Capability {
	list := p.Capabilities()
	if slices.ContainsFunc(list, func(c bawn.Capability) bool { return c.Strength != bawn.Unenforced }) {
		return list
	}
	s.Forget(name)
	if again, _ := e.Find(name, s); again != nil {
		return again.Capabilities()
	}
	return list
}

// progress tells a human at a terminal whom doctor waits for.
func progress(e *launch.Env) func([]string) {
	if e.Stderr == nil || !term.IsTerminal(int(e.Stderr.Fd())) {
		return func([]string) {}
	}
	return func(names []string) {
		line := "\r\x1b[K"
		if len(names) > 0 {
			line += "trying " + strings.Join(names, ", ") + " …"
		}
		fmt.Fprint(e.Stderr, line)
	}
}

func (d *diagnosis) print(e *launch.Env, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(e.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(d)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", d.System, d.User)
	if d.Inside != "" {
		fmt.Fprintf(&b, "this is a guest, in %s: no session starts inside another,\nwhatever is tried below; run doctor outside\n\n", d.Inside)
	}
	for _, c := range d.Checks {
		lead := fmt.Sprintf("%-7s  %-22s  ", mark(c), c.Name)
		fold(&b, lead, redact.Visible(c.Detail))
		if !c.OK && c.Remedy != "" {
			fmt.Fprintf(&b, "%*s→ %s\n", len(lead), "", c.Remedy)
		}
	}
	b.WriteString("\n" + d.matrix(d.needs) + "\n" + d.verdict())
	_, err := e.Stdout.WriteString(b.String())
	return err
}

// verdict is the last line.
func (d *diagnosis) verdict() string {
	switch {
	case d.Named == bare.Name:
		return "your configuration names provider host: sessions run without a sandbox\n"
	case d.Named != "" && d.Default == "":
		return "your configuration names provider " + d.Named + ", which can't enforce the default profile here: sessions are refused\n"
	case d.Named != "":
		return "your configuration names provider " + d.Named + ": sessions run on it" + d.inPart() + "\n"
	case d.Default == "":
		return "the default profile can't be enforced here: sessions are refused\n"
	}
	return "the default profile can be enforced here: sessions run on provider " + d.Default + "\n"
}

// inPart names what the provider of the configuration enforces in part of what
// sessions ask for.
func (d *diagnosis) inPart() string {
	i := slices.IndexFunc(d.Providers, func(c doctor.Column) bool { return c.Provider == d.Named })
	list := slices.DeleteFunc(slices.Clone(d.needs), func(a string) bool { return d.Providers[i].Of(a).Strength != bawn.Partly })
	if len(list) == 0 {
		return ""
	}
	return ", in part only " + strings.Join(list, ", ")
}

func mark(c doctor.Check) string {
	switch {
	case c.OK:
		return "ok"
	case c.NotTried:
		return "untried"
	case c.Refused:
		return "REFUSED"
	case c.Needed:
		return "MISSING"
	}
	return "absent"
}
