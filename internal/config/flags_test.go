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
