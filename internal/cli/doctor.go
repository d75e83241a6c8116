package cli

import (
	"errors"
	"fmt"
	"io"
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
	hostprovider "github.com/bawn-dev/bawn/internal/sandbox/host"
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
	var asJSON, fresh, all, engine bool
	var only string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what this machine can enforce, by trying it",
		Long: `Find out what this machine can enforce.

Each mechanism is tried by itself, then the sandbox as a whole, and what it
refused is checked from outside. Then every provider is asked what it enforces
here. The first line is the verdict; with --all come each trial, and a table of
what every provider enforces, attribute by attribute, with the reason where that
is in part or nothing, and the one command that mends it.

What other engines can do is remembered until the machine is booted again or the
engine changes; --fresh tries it again. The exit code is 1 when no
provider can enforce the default profile here, or if the one that your
configuration names can't.`,
		Example: "  bawn doctor\n  bawn doctor --all\n  bawn doctor --fresh\n  bawn doctor --json",
		Args:    verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if only != "" {
				return printCapabilities(e, only)
			}
			if engine {
				return verb.WriteJSON(e.Stdout, engineCheck(e, enginePatience))
			}
			d := diagnose(e, fresh)
			write := d.brief
			switch {
			case asJSON:
				write = d.json
			case all:
				write = d.print
			}
			if err := write(e.Stdout); err != nil {
				return err
			}
			if d.Default == "" {
				return verb.Status(1)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	c.Flags().BoolVar(&all, "all", false, "show each trial, and what every provider enforces")
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
	Default   string          `json:"default,omitempty"` // the default provider of a session
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

// unnamed is the default request of a session. Without the program that serves
// the network, there is no network.
func unnamed(c *config.Config, workspace string) bawn.Isolation {
	iso := c.Isolation(workspace)
	if _, err := remote.Find(); err != nil && c.NetworkAt().Layer == config.Builtin {
		iso.Network = bawn.NetworkNone
	}
	return iso
}

// subjects are the providers. The trial as a whole has proven the first one's
// enforcement.
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
		list = append(list, doctor.Subject{Name: l.Name, Ask: ask, Unsandboxed: p != nil && sandbox.AbilitiesOf(p).Unsandboxed})
	}
	return list
}

// capabilitiesOf lists the capabilities of a provider. That it is nothing may be an
// old story.
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

func (d *diagnosis) json(w io.Writer) error {
	return verb.WriteJSON(w, d)
}

// print writes the whole report.
func (d *diagnosis) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s, %s\n\n", d.verdict(), d.System, d.User)
	for _, c := range d.Checks {
		b.WriteString(trial(c))
	}
	b.WriteString("\n" + d.matrix(d.needs))
	_, err := io.WriteString(w, b.String())
	return err
}

// trial is the line of a check, with what mends it below.
func trial(c doctor.Check) string {
	var b strings.Builder
	lead := fmt.Sprintf("%-7s  %-22s  ", mark(c), c.Name)
	fold(&b, lead, redact.Visible(c.Detail))
	if !c.OK && c.Remedy != "" {
		fmt.Fprintf(&b, "%*s→ %s\n", len(lead), "", c.Remedy)
	}
	return b.String()
}

// brief writes only the verdict and the tasks for this machine.
func (d *diagnosis) brief(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s, %s\n", d.verdict(), d.System, d.User)
	for _, c := range d.Checks {
		if !c.OK && (c.Needed || c.Refused) {
			b.WriteString(trial(c))
		}
	}
	if i := slices.IndexFunc(d.Providers, func(c doctor.Column) bool { return c.Provider == d.Default }); i >= 0 {
		own := d.Providers[i]
		own.Capabilities = slices.DeleteFunc(slices.Clone(own.Capabilities), func(c bawn.Capability) bool { return !slices.Contains(d.needs, c.Attribute) })
		b.WriteString(lacks(own))
	}
	if others := d.others(); others != "" {
		fmt.Fprintf(&b, "other providers here: %s\n", others)
	}
	b.WriteString("\"bawn doctor --all\" shows each trial, and what every provider enforces\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// others names the sandboxes, besides the default provider, that enforce something
// here.
func (d *diagnosis) others() string {
	var list []string
	for _, c := range d.Providers {
		switch some := slices.ContainsFunc(c.Capabilities, func(c bawn.Capability) bool { return c.Strength != bawn.Unenforced }); {
		case c.Provider == d.Default || c.Provider == hostprovider.Name || !some:
		case c.Meets(d.needs):
			list = append(list, c.Provider)
		default:
			list = append(list, c.Provider+" (in part)")
		}
	}
	return strings.Join(list, ", ")
}

// verdict is the first line.
func (d *diagnosis) verdict() string {
	switch {
	case d.Inside != "":
		return "this is a guest, in " + d.Inside + ": no session starts inside another; run doctor outside\n"
	case d.Named == hostprovider.Name:
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

// inPart names the attributes that the configured provider enforces only in
// part and sessions ask for.
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
