package config

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

func TestFlagErrorsNameTheFlag(t *testing.T) {
	for want, f := range map[string]Flags{
		`--net: "ful" is refused; want one of ["none" "allowlist" "full"]`: {Net: ptr("ful")},
		`--profile: unknown profile "onlin"`:                               {Profile: ptr("onlin")},
		`--timeout: "2" is refused; want a string such as "90m"`:           {Timeout: ptr("2")},
		`--timeout: "0s" is refused; want 1s to 720h0m0s`:                  {Timeout: ptr("0s")},
		`--memory: "0" is refused; want 16 to`:                             {Memory: ptr(int64(0))},
		`--cpus: "-1" is refused; want 0.01 to 4096`:                       {CPUs: ptr(-1.0)},
		`--rw: path "" is empty`:                                           {RW: []string{""}},
		`--env: env "*" would pass every variable`:                         {Env: []string{"*"}},
		`--agent: agent "a b" is no name`:                                  {Agent: ptr("a b")},
	} {
		in := world(t)
		in.Flags = f
		if errs := refused(t, in); !strings.HasPrefix(errs.Error(), want) {
			t.Errorf("%v; want %q", errs, want)
		}
	}
	in := world(t)
	in.Flags = Flags{CPUs: ptr(1.5), Open: []string{"gh", "~/.aws/config"}, Devices: []string{"kvm"}, Hosts: []string{"a.example"}, Protected: []string{"x"}, Caches: ptr("shared")}
	c := mustLoad(t, in)
	iso := c.Isolation(in.Workspace)
	same(t, []string{"gh", in.Home + "/.aws/config"}, c.Open)
	if iso.Resources.CPUs != 1.5 || iso.Caches != bawn.CacheShared || iso.Devices[0] != "kvm" || iso.Egress.Hosts[len(iso.Egress.Hosts)-1] != "a.example" || accessAt(iso, c.Open[1]) != bawn.ReadOnly {
		t.Errorf("%+v %+v", c, iso)
	}
}

// TestCopy: copies are the default of all agents or of some, a flag decides for all, and a
// project may only turn them on.
func TestCopy(t *testing.T) {
	on, off := ptr(true), ptr(false)
	for _, tt := range []struct {
		user, project string
		flag          *bool
		claude, sh    bool
	}{
		{"", "", nil, false, false},
		{"", "", on, true, true},
		{"isolation.copy = true", "", nil, true, true},
		{"isolation.copy = true", "", off, false, false},
		{"isolation.copy_agents = ['claude']", "", nil, true, false},
		{"isolation.copy_agents = ['claude']", "", off, false, false},
		{"isolation.copy_agents = ['claude']", "isolation.copy = false", nil, true, false},
		{"", "isolation.copy_agents = ['claude']", nil, true, false},
	} {
		in := world(t)
		put(t, in.User(), tt.user)
		put(t, in.projectFile(), tt.project)
		in.Flags.Copy = tt.flag
		c := mustLoad(t, in)
		if c.Copy("claude") != tt.claude || c.Copy("sh") != tt.sh {
			t.Errorf("%+v: claude %t, sh %t", tt, c.Copy("claude"), c.Copy("sh"))
		}
	}
}
