package session

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// Zones splits an isolation in two: the agent's, which reaches its model and
// nothing else, and that of its commands, which has no part of the agent's own.
type Zones struct {
	Whole     bawn.Isolation
	Home      string      // absolute
	Workspace bawn.Access // the most of it that the agent gets
	// Models and Ports are the agent's destinations, in the forms of
	// bawn.Egress.Hosts and HostPorts.
	Models, Ports []string
	// Own are further places of the agent's own, absolute: those that variables
	// such as CLAUDE_CONFIG_DIR name.
	Own []string
}

// Reasoning is the isolation of the agent. It errs where requests to a model
// are limited by an entry that also speaks of other hosts.
func (z Zones) Reasoning() (bawn.Isolation, error) {
	iso := z.Whole
	iso.Mounts = slices.Clone(z.Whole.Mounts)
	for i, m := range iso.Mounts {
		if fspath.Below(m.Path, iso.Workspace) && m.Access == bawn.ReadWrite {
			iso.Mounts[i].Access = min(m.Access, max(z.Workspace, bawn.ReadOnly))
		}
	}
	http, err := z.requests()
	if err != nil {
		return bawn.Isolation{}, err
	}
	e := z.Whole.Egress
	iso.Devices, iso.DockerAPI = nil, false
	iso.Network, iso.Egress = bawn.NetworkNone, bawn.Egress{}
	if len(z.Models)+len(z.Ports) > 0 {
		iso.Network = bawn.NetworkAllowlist
		iso.Egress = bawn.Egress{
			Hosts: z.Models, HTTP: http, Closed: e.Closed, HostPorts: z.Ports, Secrets: e.Secrets, Proxy: e.Proxy, MaxConns: e.MaxConns, MaxOutMB: e.MaxOutMB, Only: e.Only,
			MaxUses: e.MaxUses, MaxLentMB: e.MaxLentMB,
		}
	}
	return iso, nil
}

// requests are the HTTP entries about models.
func (z Zones) requests() ([]string, error) {
	var models []netrule.Host
	for _, m := range z.Models {
		h, err := netrule.ParseHost(m)
		if err != nil {
			return nil, err
		}
		models = append(models, h)
	}
	var own []string
	for _, text := range z.Whole.Egress.HTTP {
		entry, err := netrule.ParseHTTP(text)
		if err != nil {
			return nil, err
		}
		h := entry.Host()
		switch {
		case slices.ContainsFunc(models, func(m netrule.Host) bool { return m.Covers(h) }):
			own = append(own, text)
		case slices.ContainsFunc(models, h.Overlaps):
			return nil, fmt.Errorf("%q limits requests to a model and speaks of other hosts too; write one that names the model's host and port alone", text)
		}
	}
	return own, nil
}

// Execution is the isolation of the agent's commands: the whole, without the
// agent's own parts. Files there that shells of known agents read stay, and are
// read-only; they must be opened (sandbox.Request.Open) in a place of
// credentials.
func (z Zones) Execution() bawn.Isolation {
	iso := z.Whole
	iso.Mounts = nil
	for _, m := range z.Whole.Mounts {
		if z.own(m.Path) {
			m.Access, m.Why = bawn.Hidden, "the agent's own"
		}
		iso.Mounts = append(iso.Mounts, m)
	}
	for _, p := range z.Shells() {
		iso.Mounts = append(iso.Mounts, bawn.Mount{Path: p, Access: bawn.ReadOnly, Why: "what the agent's shells read"})
	}
	iso.SetEnv = WithoutModels(iso.SetEnv)
	return iso
}

// own reports whether an opened place is the agent's own and its commands do
// not need it: one of those named, or a place below a dot directory of HOME.
// Caches, and the workspace wherever it lies, are not.
func (z Zones) own(p string) bool {
	if slices.ContainsFunc(z.Own, func(o string) bool { return fspath.Below(p, o) }) {
		return true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(z.Home, "/")+"/.")
	return ok && !fspath.Below(p, z.Whole.Workspace) && rest != "cache" && !strings.HasPrefix(rest, "cache/")
}

// Opened removes from opened names and paths (sandbox.Request.Open) those that
// are the agent's own.
func (z Zones) Opened(open []string) []string {
	return slices.DeleteFunc(slices.Clone(open), func(o string) bool {
		return slices.Contains(agents, o) || path.IsAbs(o) && z.own(o)
	})
}

// agents are the names of credentials that are an agent's.
var agents = []string{"claude", "codex", "gemini", "qwen", "copilot", "cursor", "opencode", "pi", "cline", "amp", "crush"}

// shellsRead are the files that the shells of known agents read below their own
// places, by the name of the place. Claude Code and Codex write the user's aliases
// and functions there, once, and have each shell read them; Codex puts a directory
// of its own into PATH.
var shellsRead = map[string][]string{
	".claude": {"shell-snapshots"},
	".codex":  {"shell_snapshots", "tmp/arg0"},
}

// private reports whether a place is the session's own: only the agent has it.
func (z Zones) private(p string) bool {
	return slices.ContainsFunc(z.Whole.Mounts, func(m bawn.Mount) bool { return m.Access == bawn.Private && fspath.Below(p, m.Path) })
}

// Shells are the directories below the agent's own, writable places that its
// shells read. Some of them may not exist. The session's own, empty directories
// in their place do not count.
func (z Zones) Shells() []string {
	var all []string
	for _, m := range z.Whole.Mounts {
		if m.Access == bawn.ReadWrite && z.own(m.Path) {
			for _, name := range shellsRead[path.Base(m.Path)] {
				if p := path.Join(m.Path, name); !z.private(p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// models begin the names of variables that belong to an agent or to the API of
// a model.
var models = []string{
	"ANTHROPIC_", "CLAUDE_", "OPENAI_", "AZURE_OPENAI_", "CODEX_", "GEMINI_", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_", "GOOGLE_GENAI_", "VERTEX_", "OPENROUTER_",
	"XAI_", "GROK_", "MISTRAL_", "CODESTRAL_", "DASHSCOPE_", "QWEN_", "COPILOT_", "DEEPSEEK_", "MOONSHOT_", "KIMI_", "ZAI_", "ZHIPU", "GROQ_", "CEREBRAS_", "OLLAMA_", "LITELLM_",
	"AWS_BEARER_TOKEN_BEDROCK", "PI_CODING_AGENT_", "CLINE_", "CURSOR_", "OPENCODE_",
}

// shortest is how long a value must be to be taken for a key under another name.
const shortest = 12

// WithoutModels removes the NAME=VALUE entries of agents and models, by name,
// and entries that have the value of one of them.
func WithoutModels(environ []string) []string {
	var values []string
	for _, kv := range environ {
		if _, value, _ := strings.Cut(kv, "="); OfModel(kv) && len(value) >= shortest {
			values = append(values, value)
		}
	}
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		return OfModel(kv) || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(kv, v) })
	})
}

// OfModel reports whether NAME, or NAME=VALUE, is by its name a variable of an
// agent or of the API of a model.
func OfModel(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.ContainsFunc(models, func(m string) bool { return strings.HasPrefix(strings.ToUpper(name), m) })
}
