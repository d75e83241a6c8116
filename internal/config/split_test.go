package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// The built-in model hosts are those of the group, and nothing that is not a
// model's: no registry, no repository.
func TestModelHosts(t *testing.T) {
	in := world(t)
	s := mustLoad(t, in).Split()
	if s.On || s.Workspace != bawn.ReadWrite || !slices.Contains(s.Hosts, "api.anthropic.com:443") || slices.Contains(s.Hosts, "pypi.org:443") || len(s.HostPorts) > 0 {
		t.Errorf("%+v", s)
	}
	all := mustLoad(t, in).Isolation(in.Workspace).Egress.Hosts
	for _, h := range s.Hosts {
		if !slices.Contains(all, h) {
			t.Errorf("%q is a model's and not one of all hosts", h)
		}
	}
	if slices.Contains(all, modelsMark) {
		t.Error("the mark of the group is a host")
	}
	put(t, in.User(), "isolation.split=true\nisolation.split_workspace='read-only'\nisolation.model_hosts=['models.corp:8443', '11434']\n")
	s = mustLoad(t, in).Split()
	if !s.On || s.Workspace != bawn.ReadOnly || !slices.Contains(s.Hosts, "models.corp:8443") || !slices.Equal(s.HostPorts, []string{"11434"}) {
		t.Errorf("%+v", s)
	}
}

// A session without a network reaches only the models that somebody named, and
// none where the machine's managers closed the network.
func TestModelHostsWithoutNetwork(t *testing.T) {
	in := world(t)
	in.Flags = Flags{Net: ptr("none"), Split: ptr(true)}
	if s := mustLoad(t, in).Split(); len(s.Hosts) > 0 {
		t.Errorf("with --net none: %q", s.Hosts)
	}
	in.Flags.ModelHosts = []string{"models.corp", "11434"}
	if s := mustLoad(t, in).Split(); !slices.Equal(s.Hosts, []string{"models.corp"}) || len(s.HostPorts) != 1 {
		t.Errorf("with --model-host: %+v", s)
	}
	put(t, in.ManagedPath, "pinned=['isolation.network']\nisolation.network='none'\n")
	in.Flags.Net = nil
	if _, err := Load(in); err == nil || !strings.Contains(err.Error(), "isolation.network is pinned") {
		t.Errorf("pinned: %v", err)
	}
	put(t, in.ManagedPath, "isolation.network='none'\n")
	if s := mustLoad(t, in).Split(); len(s.Hosts) != 1 {
		t.Errorf("control, not pinned: %+v", s)
	}
}

// A project may split its sessions and narrow them, and never the other way.
func TestProjectAndSplit(t *testing.T) {
	for line, want := range map[string]string{
		"split=true": "", "split_workspace='read-only'": "", "model_hosts=['api.openai.com:443']": "",
		"split=false": "would widen isolation.split", "split_workspace='read-write'": "would widen isolation.split_workspace",
		"model_hosts=['evil.test']": "would widen isolation.model_hosts", "model_hosts=['11434']": "would widen isolation.model_hosts",
	} {
		in := world(t)
		if want != "" {
			put(t, in.User(), "isolation.split=true\nisolation.split_workspace='read-only'\n")
		}
		put(t, in.projectFile(), "isolation."+line+"\n")
		if _, err := Load(in); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestSplitFlags(t *testing.T) {
	in := world(t)
	for want, f := range map[string]Flags{
		"--model-host: it would not count":      {ModelHosts: []string{"a.test"}},
		"--split-workspace: it would not count": {SplitWorkspace: ptr("read-only")},
		"Example.org":                           {Split: ptr(true), ModelHosts: []string{"Example.org"}},
	} {
		in.Flags = f
		if _, err := Load(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
