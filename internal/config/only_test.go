package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestImageFlag: an image that nobody would start is no silence.
func TestImageFlag(t *testing.T) {
	in := world(t)
	in.Flags = Flags{Image: ptr("sha256:" + strings.Repeat("a", 64)), Provider: ptr("docker")}
	mustLoad(t, in)
	in.Flags.Provider = nil
	if errs := refused(t, in); !strings.Contains(errs.Error(), "--image") {
		t.Error(errs)
	}
}

// TestOnly: what the user's file and a profile give is not given, what they
// close stays closed, and what flags give is. The control is the same without
// the flag.
func TestOnly(t *testing.T) {
	in := world(t)
	put(t, in.User(), `isolation.rw = ["/srv/out"]
isolation.open = ["gh"]
isolation.deny = ["/srv/hidden"]
isolation.env = ["TOKEN"]
isolation.hosts = ["mine.example"]
isolation.secrets = ["*"]
isolation.ssh_agent = true
isolation.devices = ["kvm"]
isolation.resources.pids_limit = 77
`)
	in.Flags = Flags{Hosts: []string{"flag.example"}, Env: []string{"MORE=1"}, RW: []string{"/srv/flag"}, Secrets: []string{"one"}}
	without := mustLoad(t, in).Isolation(in.Workspace)
	if !slices.Contains(without.Egress.Hosts, "mine.example") || without.Egress.Only || !slices.Contains(without.Env, "TOKEN") {
		t.Fatalf("control: %+v", without)
	}
	in.Flags.Only = true
	c := mustLoad(t, in)
	got := c.Isolation(in.Workspace)
	if e := got.Egress; !slices.Equal(e.Hosts, []string{"flag.example"}) || e.Git != nil || !slices.Equal(e.Secrets, []string{"one"}) || e.SSHAgent || !e.Only {
		t.Errorf("egress: %+v", e)
	}
	if slices.Contains(got.Env, "TOKEN") || !slices.Contains(got.Env, "PATH") || !slices.Equal(got.SetEnv, []string{"MORE=1"}) {
		t.Errorf("environment: %q, %q", got.Env, got.SetEnv)
	}
	if len(c.Open)+len(got.CacheDirs)+len(got.Devices) > 0 || got.Resources.PIDs != 77 {
		t.Errorf("open %q, caches %q, devices %q, %d processes", c.Open, got.CacheDirs, got.Devices, got.Resources.PIDs)
	}
	want := map[string]bawn.Access{"/srv/out": 255, "/srv/flag": bawn.ReadWrite, "/srv/hidden": bawn.Hidden, in.Workspace: bawn.ReadWrite}
	for _, m := range got.Mounts {
		if a, ok := want[m.Path]; ok && a != m.Access {
			t.Errorf("%s is %s", m.Path, m.Access)
		}
	}
}

// TestOnlyKeepsWhatFlagsSayAgain: what a flag gives is given, also where a
// profile or the user's file gives the same. The control is the same without the
// flags.
func TestOnlyKeepsWhatFlagsSayAgain(t *testing.T) {
	in := world(t)
	put(t, in.User(), "isolation.rw = [\"/srv/out\"]\nisolation.hosts = [\"mine.example\"]\nisolation.env = [\"TOKEN\"]\n")
	for _, said := range []bool{false, true} {
		in.Flags = Flags{Only: true}
		if said {
			in.Flags = Flags{Only: true, RW: []string{"/srv/out"}, Hosts: []string{"*.npmjs.org:443", "mine.example"}, Env: []string{"TOKEN"}}
		}
		got := mustLoad(t, in).Isolation(in.Workspace)
		if hosts := got.Egress.Hosts; slices.Contains(hosts, "*.npmjs.org:443") != said || slices.Contains(hosts, "mine.example") != said {
			t.Errorf("said %t: hosts %q", said, hosts)
		}
		if writes := accessAt(got, "/srv/out") == bawn.ReadWrite; writes != said || slices.Contains(got.Env, "TOKEN") != said {
			t.Errorf("said %t: writes %t, environment %q", said, writes, got.Env)
		}
	}
}
