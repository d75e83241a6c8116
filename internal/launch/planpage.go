package launch

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/verb"
)

// planWidth is where lists of the page are folded.
const planWidth = 78

// show prints the plan.
func (p *Planned) show() error {
	if !p.JSON {
		return p.writePage(p.env.Stdout)
	}
	s := p.Session
	return verb.WriteJSON(p.env.Stdout, struct {
		Provider  string       `json:"provider"`
		Choice    []candidate  `json:"provider_chosen_from"`
		Mode      bawn.Mode    `json:"mode"`
		Agent     string       `json:"agent"`
		Known     *agentPlan   `json:"agent_profile,omitempty"`
		Profile   string       `json:"policy_profile"`
		Workspace string       `json:"workspace"`
		Network   string       `json:"network"`
		Egress    *egressPlan  `json:"egress,omitempty"`
		Plan      sandbox.Plan `json:"plan"`
		Execution *zonePlan    `json:"execution,omitempty"`
	}{s.Plan.Provider(), p.choice.Candidates, s.Mode, s.Agent, p.agentPlan(), s.Isolation.Profile, s.Isolation.Workspace, s.Isolation.Network.String(), egressOf(s.Isolation), s.Plan, executionOf(s)})
}

// egressPlan lists the reachable hosts, by the names of the configuration.
type egressPlan struct {
	bawn.Egress
	Ask string `json:"ask_timeout"`
}

// egressOf returns nil for a network that names do not open.
func egressOf(iso bawn.Isolation) *egressPlan {
	if iso.Network != bawn.NetworkAllowlist {
		return nil
	}
	return &egressPlan{iso.Egress, iso.Egress.Ask.String()}
}

// writePage writes what would be enforced, for a person to read.
func (p *Planned) writePage(w io.Writer) error {
	var out page
	s := p.Session
	out.line("command", strings.Join(s.Argv, " "))
	out.line("provider", s.Plan.Provider())
	out.line("workspace", s.Isolation.Workspace)
	out.line("mode", s.Mode.String()+", profile "+cmp.Or(s.Isolation.Profile, "default"))
	if p.Known != nil {
		out.line("agent", s.Agent)
	}
	if s.Split != nil {
		out.line("split", "the agent and what it executes have a sandbox each")
	}
	out.places(s.Plan.Places(), p.env.Getenv("HOME"))
	out.network(s.Isolation)
	out.list("variables", names(s.Plan.Environ()))
	out.line("limits", limits(s.Isolation.Resources))
	var part []string
	for _, c := range partly(s) {
		part = append(part, c.Attribute)
	}
	out.list("in part", part)
	out.line("", "nothing was started; --plan --json has every detail")
	_, err := io.WriteString(w, out.b.String())
	return err
}

// A page has lines of a name and its meaning.
type page struct{ b strings.Builder }

func (p *page) line(name, text string) {
	if text != "" {
		fmt.Fprintf(&p.b, "%-11s%s\n", name, redact.Visible(text))
	}
}

// list folds the entries into lines.
func (p *page) list(name string, entries []string) {
	line := ""
	for _, entry := range entries {
		if line != "" && len(line)+2+len(entry) > planWidth-11 {
			p.line(name, line+",")
			name, line = "", ""
		}
		if line != "" {
			line += ", "
		}
		line += entry
	}
	p.line(name, line)
}

// places lists the guest's part of the host's files.
func (p *page) places(list []bawn.Mount, home string) {
	by := map[bawn.Access][]string{}
	var copied []string
	for _, m := range list {
		if m.Access == bawn.Hidden && (fspath.Below(m.Path, "/proc") || fspath.Below(m.Path, "/sys")) {
			continue // the same in every session
		}
		name := m.Path
		if rest, err := filepath.Rel(home, m.Path); err == nil && home != "" && filepath.IsLocal(rest) {
			name = filepath.Join("~", rest)
		}
		if m.Why == layout.WhyCopy {
			copied = append(copied, name+" (its changes wait for \"bawn apply\")")
			continue
		}
		by[m.Access] = append(by[m.Access], name)
	}
	p.list("a copy of", copied)
	p.list("writes", by[bawn.ReadWrite])
	p.list("its own", by[bawn.Private])
	p.list("reads", by[bawn.ReadOnly])
	p.list("can't read", by[bawn.Hidden])
}

func (p *page) network(iso bawn.Isolation) {
	if iso.Network != bawn.NetworkAllowlist {
		p.line("network", iso.Network.String())
		return
	}
	others := "others are refused"
	if iso.Egress.Ask > 0 && !iso.Egress.Only {
		others = fmt.Sprintf("a connection to another host waits %v for your answer", iso.Egress.Ask)
	}
	p.line("network", "by name; "+others)
	p.list("hosts", iso.Egress.Hosts)
	p.list("requests", iso.Egress.HTTP)
	p.list("git", iso.Egress.Git)
	p.list("secrets", iso.Egress.Secrets)
	p.list("host ports", iso.Egress.HostPorts)
	p.list("ports", iso.Egress.Ports)
}

// names are those of variables.
func names(environ []string) (list []string) {
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		list = append(list, name)
	}
	return list
}

func limits(r bawn.Resources) string {
	var list []string
	add := func(n int64, text string) {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(r.MemoryMB, "MiB of memory")
	add(r.PIDs, "processes")
	if r.CPUs > 0 {
		list = append(list, fmt.Sprintf("%g cores", r.CPUs))
	}
	add(r.OpenFiles, "open files")
	add(r.FileSizeMB, "MiB a file")
	if r.Timeout > 0 {
		list = append(list, r.Timeout.String())
	}
	return strings.Join(list, ", ")
}
