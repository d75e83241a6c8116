package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

func zones() Zones {
	const home = "/home/ada"
	return Zones{
		Home: home, Workspace: bawn.ReadWrite, Models: []string{"api.model.test:443"}, Ports: []string{"11434"}, Own: []string{"/srv/agent"},
		Whole: bawn.Isolation{
			Workspace: home + "/p", Network: bawn.NetworkFull, Devices: []string{"kvm"}, DockerAPI: true,
			Mounts: []bawn.Mount{
				{Path: home + "/p", Access: bawn.ReadWrite}, {Path: home + "/p/sub", Access: bawn.ReadWrite}, {Path: home + "/p/deny", Access: bawn.Hidden},
				{Path: home + "/other", Access: bawn.ReadWrite}, {Path: home + "/.claude", Access: bawn.ReadWrite}, {Path: home + "/.codex/auth.json", Access: bawn.ReadOnly},
				{Path: home + "/.cache/tool", Access: bawn.ReadWrite}, {Path: "/srv/agent/state", Access: bawn.ReadWrite},
			},
			Egress: bawn.Egress{
				Hosts: []string{"forge.test"}, HTTP: []string{"api.model.test:443 POST /v1/**", "forge.test GET /**"}, Git: []string{"forge.test fetch"},
				HostPorts: []string{"5432"}, Ports: []string{"8080"}, Secrets: []string{"*"}, SSHAgent: true, Ask: 1, Closed: []string{"c.test"},
			},
			Env: []string{"PATH"}, SetEnv: []string{"A=b", "OPENAI_API_KEY=sk-0123456789ab", "COPY=sk-0123456789ab"},
		},
	}
}

func access(iso bawn.Isolation, p string) bawn.Access {
	i := slices.IndexFunc(iso.Mounts, func(m bawn.Mount) bool { return m.Path == p })
	if i < 0 {
		return bawn.Hidden
	}
	return iso.Mounts[i].Access
}

// TestReasoningRefuses what can't be read: it would be left out of the agent's
// zone, and open there.
func TestReasoningRefuses(t *testing.T) {
	for what, change := range map[string]func(*Zones){
		"a model":  func(z *Zones) { z.Models = []string{"no host at all"} },
		"an entry": func(z *Zones) { z.Whole.Egress.HTTP = []string{"api.model.test:443 SING"} },
		"both":     func(z *Zones) { z.Whole.Egress.HTTP = []string{"*.model.test POST /v1/**"} },
	} {
		z := zones()
		change(&z)
		if _, err := z.Reasoning(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := zones().Reasoning(); err != nil {
		t.Errorf("the control: %v", err)
	}
}

// TestReasoning: the agent reaches its model and nothing that the session
// reaches besides, and has what it had of the files.
func TestReasoning(t *testing.T) {
	z := zones()
	r, err := z.Reasoning()
	if err != nil {
		t.Fatal(err)
	}
	want := bawn.Egress{
		Hosts: z.Models, HostPorts: z.Ports, HTTP: []string{"api.model.test:443 POST /v1/**"}, Secrets: []string{"*"}, Closed: []string{"c.test"},
	}
	if diff := cmp.Diff(want, r.Egress); diff != "" || r.Network != bawn.NetworkAllowlist || len(r.Devices) > 0 || r.DockerAPI {
		t.Errorf("network %v, devices %q: %s", r.Network, r.Devices, diff)
	}
	if diff := cmp.Diff(z.Whole.Mounts, r.Mounts); diff != "" {
		t.Error(diff)
	}
	z.Workspace = bawn.ReadOnly
	r, _ = z.Reasoning()
	for p, want := range map[string]bawn.Access{"": bawn.ReadOnly, "/sub": bawn.ReadOnly, "/deny": bawn.Hidden} {
		if got := access(r, z.Whole.Workspace+p); got != want {
			t.Errorf("workspace%s: %v, want %v", p, got, want)
		}
	}
	if access(r, "/home/ada/.claude") != bawn.ReadWrite {
		t.Error("the agent's own place is closed to it")
	}
	z.Models, z.Ports = nil, nil
	if r, _ = z.Reasoning(); r.Network != bawn.NetworkNone || !cmp.Equal(r.Egress, bawn.Egress{}) {
		t.Errorf("without models: %v, %+v", r.Network, r.Egress)
	}
}

func TestReasoningRefusesWiderLimits(t *testing.T) {
	z := zones()
	z.Whole.Egress.HTTP = []string{"*.model.test GET /**"}
	if _, err := z.Reasoning(); err == nil || !strings.Contains(err.Error(), "other hosts too") {
		t.Errorf("got %v", err)
	}
}

// TestExecution: what is executed has the session's network and files, and
// nothing of the agent's own.
func TestExecution(t *testing.T) {
	z := zones()
	e := z.Execution()
	if diff := cmp.Diff(z.Whole.Egress, e.Egress); diff != "" || e.Network != bawn.NetworkFull {
		t.Errorf("%v %s", e.Network, diff)
	}
	for p, want := range map[string]bawn.Access{
		"/home/ada/p": bawn.ReadWrite, "/home/ada/p/deny": bawn.Hidden, "/home/ada/other": bawn.ReadWrite, "/home/ada/.cache/tool": bawn.ReadWrite,
		"/home/ada/.claude": bawn.Hidden, "/home/ada/.codex/auth.json": bawn.Hidden, "/srv/agent/state": bawn.Hidden,
		"/home/ada/.claude/shell-snapshots": bawn.ReadOnly,
	} {
		if got := access(e, p); got != want {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
	own := zones()
	own.Whole.Mounts = append(own.Whole.Mounts, bawn.Mount{Path: "/home/ada/.claude/shell-snapshots", Access: bawn.Private})
	if got := access(own.Execution(), "/home/ada/.claude/shell-snapshots"); got != bawn.Hidden || len(own.Shells()) > 0 {
		t.Errorf("what the session has for itself is %v, and read from %q", got, own.Shells())
	}
	if !slices.Equal(e.SetEnv, []string{"A=b"}) {
		t.Errorf("it is told %q", e.SetEnv)
	}
	if got := z.Opened([]string{"gh", "claude", "/home/ada/.codex/x", "/etc/key"}); !slices.Equal(got, []string{"gh", "/etc/key"}) {
		t.Errorf("it may read %q", got)
	}
	z.Whole.Workspace = "/home/ada/.claude"
	if e = z.Execution(); access(e, "/home/ada/.claude") != bawn.ReadWrite {
		t.Error("the workspace is hidden")
	}
}

func TestWithoutModels(t *testing.T) {
	got := WithoutModels([]string{"PATH=/bin", "anthropic_api_key=sk-aaaaaaaaaaaa", "X=Bearer sk-aaaaaaaaaaaa", "GEMINI_MODEL=pro", "Y=pro", "OPENAIR=1", "Z"})
	if want := []string{"PATH=/bin", "Y=pro", "OPENAIR=1", "Z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
