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
	put(t, in.User(), "isolation.split=true\nisolation.split_workspace='read-only'\nisolation.models=['models.corp:8443', '11434']\n")
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
	in.Flags.Models = []string{"models.corp", "11434"}
	if s := mustLoad(t, in).Split(); !slices.Equal(s.Hosts, []string{"models.corp"}) || len(s.HostPorts) != 1 {
		t.Errorf("with --model: %+v", s)
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
		"split=true": "", "split_workspace='read-only'": "", "models=['api.openai.com:443']": "",
		"split=false": "would widen isolation.split", "split_workspace='read-write'": "would widen isolation.split_workspace",
		"models=['evil.test']": "would widen isolation.models", "models=['11434']": "would widen isolation.models",
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
		"--model: it would not count, since the session has no network": {Net: ptr("none"), Models: []string{"a.test"}},
		"--model: it would not count, since the network is \"full\"":    {Net: ptr("full"), Models: []string{"11434"}},
		"want the address of a model":                                   {Models: []string{"http://me:key@a.test"}},
		"want http or https":                                            {Models: []string{"ftp://a.test"}},
		"--split-workspace: it would not count":                         {SplitWorkspace: ptr("read-only")},
		"Example.org":                                                   {Split: ptr(true), Models: []string{"Example.org"}},
	} {
		in.Flags = f
		if _, err := Load(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A model has one address, of whatever form, and a session reaches it whether it is split
// or not. A project names none, and where hosts are pinned nobody does.
func TestModelAddresses(t *testing.T) {
	for text, want := range map[string]bawn.Egress{
		"http://127.0.0.1:11434/v1": {HostPorts: []string{"11434"}}, "http://localhost:8080": {HostPorts: []string{"8080"}}, "http://[::1]:1": {HostPorts: []string{"1"}},
		"11434": {HostPorts: []string{"11434"}}, "https://models.corp/v1": {Hosts: []string{"models.corp:443"}}, "http://models.corp": {Hosts: []string{"models.corp:80"}},
		"models.corp:8443": {Hosts: []string{"models.corp:8443"}},
	} {
		in := world(t)
		before := mustLoad(t, in).Isolation(in.Workspace).Egress
		in.Flags = Flags{Models: []string{text}}
		got := mustLoad(t, in).Isolation(in.Workspace).Egress
		if hosts := minus(got.Hosts, before.Hosts); !slices.Equal(hosts, want.Hosts) || !slices.Equal(got.HostPorts, want.HostPorts) {
			t.Errorf("%s: hosts %q, ports %q; want %+v", text, hosts, got.HostPorts, want)
		}
		in.Flags.Split = ptr(true)
		c := mustLoad(t, in)
		if s := c.Split(); len(minus(want.Hosts, s.Hosts)) > 0 || !slices.Equal(s.HostPorts, want.HostPorts) {
			t.Errorf("%s, split: %+v; want %+v", text, s, want)
		}
		if got := c.Isolation(in.Workspace).Egress; len(minus(got.Hosts, before.Hosts))+len(got.HostPorts) > 0 {
			t.Errorf("%s, split: commands reach %+v too", text, got)
		}
	}
	in := world(t)
	in.Flags = Flags{Models: []string{"models.corp"}}
	put(t, in.ManagedPath, "pinned=['isolation.hosts']\nisolation.hosts=['a.test']\n")
	if _, err := Load(in); err == nil || !strings.Contains(err.Error(), "isolation.hosts is pinned") {
		t.Errorf("pinned hosts: %v", err)
	}
	in.Flags = Flags{}
	put(t, in.User(), "isolation.models=['models.corp', '1']\n")
	if got := mustLoad(t, in).Isolation(in.Workspace).Egress; slices.Contains(got.Hosts, "models.corp") || !slices.Contains(got.HostPorts, "1") {
		t.Errorf("pinned hosts, a model of the user's file: %+v", got)
	}
}
