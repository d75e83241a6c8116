package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestNetworkIsTriedAgain: what was refused once may be had by now.
func TestNetworkIsTriedAgain(t *testing.T) {
	testenv.Need(t, "userns")
	cache := filepath.Join(t.TempDir(), "probe")
	p := New(cache)
	p.LoseNetwork("no nftables")
	req := request(workspace(t))
	if _, err := p.Plan(req); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cache); err != nil {
		t.Errorf("a session that does not ask for it forgets the cache: %v", err)
	}
	req.Session.Isolation.Network, req.Relay = bawn.NetworkAllowlist, true
	plan, err := p.Plan(req)
	if err != nil || plan.(*layout.Plan).Network == nil {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(cache); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale outcome is kept: %v", err)
	}
}

// TestLandlockHasNoNetworkByName: that rung says why, and shows no files.
func TestLandlockHasNoNetworkByName(t *testing.T) {
	testenv.Need(t, "landlock")
	p := NewLandlock("")
	req := request(workspace(t))
	req.Session.Isolation.Network, req.Relay = bawn.NetworkAllowlist, true
	var m *sandbox.MismatchError
	if _, err := p.Plan(req); !errors.As(err, &m) || len(m.Unmet) != 1 || m.Unmet[0].Attribute != sandbox.NetAllow || m.Unmet[0].Why == "" {
		t.Errorf("got %v", err)
	}
	req = request(req.Dir)
	req.Files = []sandbox.File{{Source: req.Dir, Target: "/run/bawn"}}
	if _, err := p.Plan(req); err == nil || !strings.Contains(err.Error(), "native") {
		t.Errorf("files: got %v", err)
	}
}

// TestPort80: a guest has every port of its own network, as in a container, and of the
// host's network none that needs a capability.
func TestPort80(t *testing.T) {
	testenv.Need(t, "userns", "notify", "perl")
	const bind = `perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) ? print "bound" : print "$!"' `
	for network, want := range map[bawn.NetworkMode]string{bawn.NetworkNone: "bound", bawn.NetworkFull: "Permission denied"} {
		req := request(workspace(t))
		req.Session.Isolation.Network = network
		p := New("")
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		if out, _, _ := execute(t, p, plan, bind+"80"); out != want {
			t.Errorf("%v: %s; want %q", network, out, want)
		}
	}
}

func BenchmarkStartAndCloseByName(b *testing.B) {
	p := New("")
	req := request(b.TempDir())
	req.Session.Isolation.Network, req.Relay = bawn.NetworkAllowlist, true
	plan, err := p.Plan(req)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g, err := p.Start(plan, func(sandbox.Denial) {})
		if err != nil {
			b.Fatal(err)
		}
		g.Close()
	}
}
