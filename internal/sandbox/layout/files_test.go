package layout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

func TestFilesAreRefused(t *testing.T) {
	const ca = "/home/ada/.local/state/bawn/s/ca.pem"
	cases := map[string]struct {
		files []sandbox.File
		want  string
	}{
		"relative":                {[]sandbox.File{{Source: ca, Target: "run/bawn"}}, "absolute"},
		"the root":                {[]sandbox.File{{Source: "/srv/data", Target: "/"}}, "absolute"},
		"no source":               {[]sandbox.File{{Source: "/none", Target: "/run/bawn/x"}}, "does not exist"},
		"absent on the host":      {[]sandbox.File{{Source: ca, Target: "/home/ada/.npmrc"}}, "create it"},
		"absent in the workspace": {[]sandbox.File{{Source: ca, Target: "/home/ada/p/.npmrc"}}, "create it"},
		"a file over a directory": {[]sandbox.File{{Source: ca, Target: "/home/ada/p/sub"}}, "directory"},
		"in /proc":                {[]sandbox.File{{Source: ca, Target: "/proc/x"}}, "each session"},
		"in /dev":                 {[]sandbox.File{{Source: ca, Target: "/dev/x"}}, "each session"},
		"of /proc":                {[]sandbox.File{{Source: "/proc/kpagecount", Target: "/run/bawn/x"}}, "kernel"},
		"in a private cache":      {[]sandbox.File{{Source: ca, Target: "/home/ada/.cache/x"}}, "in place of"},
		"twice":                   {[]sandbox.File{{Source: ca, Target: "/run/bawn/x"}, {Source: ca, Target: "/run/bawn/x"}}, "is shown at"},
		"one in the other":        {[]sandbox.File{{Source: "/srv/data", Target: "/run/bawn"}, {Source: ca, Target: "/run/bawn/x"}}, "is shown at"},
	}
	for name, c := range cases {
		req := plain("/home/ada/p")
		req.Files = c.files
		_, err := Layout(req, laptop.facts(1000))
		var fe *FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestNetworkIsPlanned(t *testing.T) {
	req := plain("/home/ada/p")
	req.Session.Isolation.Network = bawn.NetworkAllowlist
	var m *sandbox.MismatchError
	if _, err := Layout(req, laptop.facts(1000)); !errors.As(err, &m) || m.Unmet[0].Attribute != sandbox.NetAllow {
		t.Errorf("without a relay: got %v", err)
	}
	req.Relay = true
	for _, ports := range [][]uint16{{0}, {53}, {PortListen}, {PortDNS}, {PortProxy}, slices.Repeat([]uint16{1}, maxHostPorts+1)} {
		for i := range ports {
			if len(ports) > 1 {
				ports[i] = uint16(i + 100)
			}
		}
		req.HostPorts = ports
		if _, err := Layout(req, laptop.facts(1000)); err == nil {
			t.Errorf("%v: got nil error", ports)
		}
	}
	req.HostPorts = []uint16{1}
	facts := laptop.facts(1000)
	facts.IPv6 = false
	p, err := Layout(req, facts)
	if err != nil || len(p.Network.Own) != 1 || len(p.Network.Names) != 1 || !slices.Contains(p.Namespaces, "net") {
		t.Errorf("without IPv6: %+v, %v", p, err)
	}
}

func TestSharedTmp(t *testing.T) {
	req := plain("/home/ada/p")
	req.Tmp = "/srv/data"
	p, err := Layout(req, laptop.facts(1000))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Mounts, func(m Mount) bool { return m.Target == "/tmp" })
	if m := p.Mounts[i]; m.Kind != KindBind || m.Source != "/srv/data" || !slices.Contains(p.Landlock.Writable, "/tmp") || slices.Contains(p.Protected, "/tmp") {
		t.Errorf("%+v, writable %q, protected %q", m, p.Landlock.Writable, p.Protected)
	}
	for _, wrong := range []string{"/none", "srv/data", "/etc/hosts"} {
		req.Tmp = wrong
		if _, err := Layout(req, laptop.facts(1000)); err == nil || !strings.Contains(err.Error(), "want a directory") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
