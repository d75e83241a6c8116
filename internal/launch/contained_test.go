package launch

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// inPart is a plan that enforces some attributes in part.
type inPart struct {
	sandbox.Plan
	attributes []string
}

func (p inPart) Partly() (out []bawn.Capability) {
	for _, a := range p.attributes {
		out = append(out, bawn.Capability{Attribute: a, Strength: bawn.Partly})
	}
	return out
}

// TestContainedIsWhatIsEnforced: what a provider enforces in part, or a flag opens, does
// not count as contained.
func TestContainedIsWhatIsEnforced(t *testing.T) {
	all := bawn.ContainedFully
	for name, tt := range map[string]struct {
		session runner.Session
		want    bawn.Contained
	}{
		"a full sandbox":        {runner.Session{Plan: inPart{}}, all},
		"limits in part":        {runner.Session{Plan: inPart{attributes: []string{sandbox.LimitMemory}}}, all},
		"no sandbox":            {runner.Session{Plan: inPart{}, Bare: bareNamed}, bawn.Contained{}},
		"protection in part":    {runner.Session{Plan: inPart{attributes: []string{sandbox.FSProtect}}}, bawn.Contained{Processes: true, Network: true}},
		"processes in part":     {runner.Session{Plan: inPart{attributes: []string{sandbox.Processes}}}, bawn.Contained{Files: true, Network: true}},
		"a network in part":     {runner.Session{Plan: inPart{attributes: []string{sandbox.NetAllow}}}, bawn.Contained{Files: true, Processes: true}},
		"the whole network":     {runner.Session{Plan: inPart{}, Session: bawn.Session{Isolation: bawn.Isolation{Network: bawn.NetworkFull}}}, bawn.Contained{Files: true, Processes: true}},
		"shared caches":         {runner.Session{Plan: inPart{}, Session: bawn.Session{Isolation: bawn.Isolation{Caches: bawn.CacheShared}}}, bawn.Contained{Processes: true, Network: true}},
		"the commands' network": {runner.Session{Plan: inPart{}, Split: &runner.Split{Plan: inPart{}, Isolation: bawn.Isolation{Network: bawn.NetworkFull}}}, bawn.Contained{Files: true, Processes: true}},
	} {
		if got := contained(nil, &tt.session); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
