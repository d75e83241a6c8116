package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// agent returns inputs with the profile of an agent whose state is below HOME.
func agent(t *testing.T) (in Inputs, state, guard, read string) {
	t.Helper()
	in = world(t)
	state, read = filepath.Join(in.Home, ".x"), filepath.Join(in.Home, ".x.json")
	put(t, filepath.Join(state, "settings"), "")
	put(t, read, "")
	guard = filepath.Join(state, "settings")
	in.Agent = &AgentProfile{
		Name: "x", RW: []string{state}, Open: []string{read}, Guard: []string{guard}, Env: []string{"X_KEY", "X_SET=1"},
		Models: []string{"api.x.test:443"}, Closed: []string{"noise.x.test:443"},
	}
	return in, state, guard, read
}

func TestAgentProfile(t *testing.T) {
	in, state, guard, read := agent(t)
	c := mustLoad(t, in)
	iso := c.Isolation(in.Workspace)
	if accessAt(iso, state) != bawn.ReadWrite || accessAt(iso, read) != bawn.ReadOnly || !slices.Contains(c.Open, read) || !slices.Equal(c.AgentWrites(), []string{state}) {
		t.Errorf("mounts %v, open %q", iso.Mounts, c.Open)
	}
	i := slices.IndexFunc(iso.Mounts, func(m bawn.Mount) bool { return m.Path == state })
	if i < 0 || iso.Mounts[i].Why != "the state of agent x" {
		t.Errorf("the plan does not say where it comes from: %v", iso.Mounts)
	}
	same(t, []string{guard}, c.Guarded())
	same(t, []string{"noise.x.test:443"}, iso.Egress.Closed)
	if !slices.Contains(iso.Env, "X_KEY") || !slices.Contains(iso.SetEnv, "X_SET=1") || !slices.Contains(iso.Egress.Hosts, "api.x.test:443") {
		t.Errorf("environment %q %q, hosts %q", iso.Env, iso.SetEnv, iso.Egress.Hosts)
	}
	in.Flags.Split = ptr(true)
	same(t, in.Agent.Models, mustLoad(t, in).Split().Hosts) // and none of the built-in ones
	in.Agent.Models = nil
	if got := mustLoad(t, in).Split().Hosts; !slices.Contains(got, "api.openai.com:443") {
		t.Errorf("an agent without models of its own reaches %q", got)
	}
	in.Flags.Mode, in.Flags.Split = ptr("plan"), nil
	if iso := mustLoad(t, in).Isolation(in.Workspace); accessAt(iso, state) != bawn.ReadWrite || accessAt(iso, in.Workspace) != bawn.ReadOnly {
		t.Errorf("in mode plan: %v", iso.Mounts)
	}
}

// TestAgentProfileYields: a place that any file or flag closes stays closed, at the
// place itself and around it. The control is TestAgentProfile.
func TestAgentProfileYields(t *testing.T) {
	for name, close := range map[string]func(in *Inputs, state string){
		"the user's file":            func(in *Inputs, s string) { put(t, in.User(), "isolation.deny = ["+quoteTOML(s)+"]") },
		"around it":                  func(in *Inputs, s string) { put(t, in.User(), "isolation.deny = ["+quoteTOML(in.Home)+"]") },
		"the managed file":           func(in *Inputs, s string) { put(t, in.ManagedPath, "isolation.deny = ["+quoteTOML(s)+"]") },
		"a pin":                      func(in *Inputs, _ string) { put(t, in.ManagedPath, `pinned = ["isolation.rw"]`) },
		"an untrusted project":       func(in *Inputs, s string) { put(t, in.projectFile(), "isolation.deny = ["+quoteTOML(s)+"]") },
		"a project, for writing":     func(in *Inputs, s string) { put(t, in.projectFile(), "isolation.ro = ["+quoteTOML(s)+"]") },
		"a flag":                     func(in *Inputs, s string) { in.Flags.Deny = []string{s} },
		"a flag around it":           func(in *Inputs, s string) { in.Flags.RO = []string{in.Home} },
		"--no-agent-profile":         func(in *Inputs, _ string) { in.Flags.NoAgentProfile = true },
		"the user's agent_profile":   func(in *Inputs, _ string) { put(t, in.User(), "isolation.agent_profile = false") },
		"that of the managed file":   func(in *Inputs, _ string) { put(t, in.ManagedPath, "isolation.agent_profile = false") },
		"nothing known of a program": func(in *Inputs, _ string) { in.Agent = nil },
	} {
		in, state, _, _ := agent(t)
		close(&in, state)
		c := mustLoad(t, in)
		if got := accessAt(c.Isolation(in.Workspace), filepath.Join(state, "sub")); got == bawn.ReadWrite || len(c.AgentWrites()) > 0 {
			t.Errorf("%s: the state is %v, opened %q", name, got, c.AgentWrites())
		}
	}
}

// TestAgentProfileKeepsClosed: a file that the profile opens below a directory
// that a human closes would be open again, as the longest path counts.
func TestAgentProfileKeepsClosed(t *testing.T) {
	in, _, _, read := agent(t)
	in.Flags.Deny = []string{in.Home + "/.x.json"}
	if c := mustLoad(t, in); slices.Contains(c.Open, read) || accessAt(c.Isolation(in.Workspace), read) != bawn.Hidden {
		t.Errorf("open %q", c.Open)
	}
}

func quoteTOML(s string) string { return "'" + s + "'" }

// TestAgentProfileIsNotTheProjects: no project's file turns a profile on or off,
// and the name that it gives an agent brings none.
func TestAgentProfileIsNotTheProjects(t *testing.T) {
	in, _, _, _ := agent(t)
	for _, value := range []string{"true", "false"} {
		put(t, in.projectFile(), "isolation.agent_profile = "+value)
		if errs := refused(t, in); !strings.Contains(errs.Error(), "can't be set by a project") {
			t.Errorf("%v", errs)
		}
	}
	put(t, in.ManagedPath, `pinned = ["isolation.agent_profile"]`)
	put(t, in.projectFile(), "")
	in.Flags.NoAgentProfile = true
	if errs := refused(t, in); !strings.Contains(errs.Error(), "pinned") {
		t.Errorf("%v", errs)
	}
}

// TestAgentGuardIsTheHumans: who names exactly what is guarded means it.
func TestAgentGuardIsTheHumans(t *testing.T) {
	in, state, guard, _ := agent(t)
	in.Flags.RW = []string{state}
	same(t, []string{guard}, mustLoad(t, in).Guarded())
	in.Flags.RW = []string{guard}
	same(t, []string{}, mustLoad(t, in).Guarded())
}

// TestAgentPrivate: what the agent executes is the session's own where it could be
// written, and nobody says anything of exactly it.
func TestAgentPrivate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *Inputs, state, own string)
		want   bawn.Access
	}{
		"writable":              {func(*Inputs, string, string) {}, bawn.Private},
		"named with its state":  {func(in *Inputs, s, _ string) { in.Flags.RW = []string{s} }, bawn.Private},
		"named itself":          {func(in *Inputs, _, o string) { in.Flags.RW = []string{o} }, bawn.ReadWrite},
		"closed":                {func(in *Inputs, s, _ string) { in.Flags.Deny = []string{s} }, bawn.Hidden},
		"closed itself":         {func(in *Inputs, _, o string) { in.Flags.Deny = []string{o} }, bawn.Hidden},
		"closed by the project": {func(in *Inputs, s, _ string) { put(t, in.projectFile(), "isolation.ro = ["+quoteTOML(s)+"]") }, bawn.ReadOnly},
		"of no profile":         {func(in *Inputs, s, _ string) { in.Flags.NoAgentProfile, in.Flags.RW = true, []string{s} }, bawn.ReadWrite},
	} {
		in, state, _, _ := agent(t)
		own := filepath.Join(state, "own")
		in.Agent.Private = []string{own}
		c.change(&in, state, own)
		iso := mustLoad(t, in).Isolation(in.Workspace)
		if got := accessAt(iso, filepath.Join(own, "x")); got != c.want {
			t.Errorf("%s: it is %v, want %v", name, got, c.want)
		}
	}
}

// TestAgentClosedHosts: a host that an entry speaks of is not closed.
func TestAgentClosedHosts(t *testing.T) {
	for _, host := range []string{"noise.x.test", "*.x.test:443"} {
		in, _, _, _ := agent(t)
		in.Flags.Hosts = []string{host}
		same(t, []string{}, mustLoad(t, in).Isolation(in.Workspace).Egress.Closed)
	}
}

// TestAgentSetYields: a variable that the human sets is not set again.
func TestAgentSetYields(t *testing.T) {
	in, _, _, _ := agent(t)
	put(t, in.User(), `isolation.env = ["X_SET=mine"]`)
	if set := mustLoad(t, in).Isolation(in.Workspace).SetEnv; !slices.Contains(set, "X_SET=mine") || slices.Contains(set, "X_SET=1") {
		t.Errorf("set: %q", set)
	}
}
