package kernel

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/cgroup"
)

// TestMemoryHit names the session's own limit only where that was reached.
func TestMemoryHit(t *testing.T) {
	asked := bawn.Resources{MemoryMB: 64}
	cases := []struct {
		name               string
		used               cgroup.Stats
		real               int64
		rule, reason, what string
	}{
		{"own limit", cgroup.Stats{MemoryFull: true, OOMKills: 1}, 64, "limits:memory", "limit of 64 MiB: 1 process killed", "raise it with --memory"},
		{"several", cgroup.Stats{MemoryFull: true, OOMKills: 3}, 64, "limits:memory", "3 processes killed", "--memory"},
		{"group around bawn", cgroup.Stats{MemoryFull: true, OOMKills: 1}, 32, "limits:memory", "32 MiB that the control group around bawn sets", "can't raise"},
		{"the machine", cgroup.Stats{OOMKills: 1}, 64, "host:memory", "the machine", "free memory"},
	}
	for _, c := range cases {
		h := memoryHit(c.used, cgroup.Limits{MemoryMB: c.real}, asked)
		if h.Rule != c.rule || !h.Killed || !strings.Contains(h.Reason, c.reason) || !strings.Contains(h.Remedy, c.what) {
			t.Errorf("%s: got %+v", c.name, h)
		}
	}
}

// TestNoGroupNoHits: rlimits count nothing, so nothing is said.
func TestNoGroupNoHits(t *testing.T) {
	if h := GroupHits(nil, bawn.Resources{MemoryMB: 1, PIDs: 1}); h != nil {
		t.Errorf("got %+v", h)
	}
}
