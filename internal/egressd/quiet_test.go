package egressd

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestQuietHosts: hosts to which an agent tells how it is used are refused without
// a question and without a word to the human, and stand in the log; any other
// closed host is told of.
func TestQuietHosts(t *testing.T) {
	c := config(t, bawn.Egress{Closed: []string{"stats.example:443", "*.noise.example:443", "shut.example:443"}})
	c.Mode, c.Autonomy, c.CanAsk, c.Ask = bawn.ModeNormal, bawn.AutonomyModerate, true, 1<<30
	c.Quiet = []string{"stats.example:443", "*.noise.example:443"}
	s, box := begin(t, c)
	for range 3 {
		if ok, _ := s.permit("stats.example"); ok {
			t.Error("the name is given out")
		}
	}
	for i := range 2 * maxQuiet {
		s.permit(strings.Repeat("a", i+1) + ".noise.example")
	}
	for _, resource := range []string{"stats.example:443", "https://stats.example/v1", "https://a.noise.example/"} {
		s.tell(egress.Denial{Resource: resource, Rule: policy.RuleClosed})
	}
	if told := box.denials(); len(told) > 0 {
		t.Errorf("the human is told %+v", told)
	}
	s.tell(egress.Denial{Resource: "shut.example:443", Rule: policy.RuleClosed})
	s.tell(egress.Denial{Resource: "stats.example:443", Rule: "user:mine"})
	if told := box.denials(); len(told) != 2 {
		t.Errorf("the human is told %+v; want what is closed otherwise, and by another rule", told)
	}
	testenv.Until(t, "the names are recorded", func() bool { return len(recorded(t, s)) >= maxQuiet })
	seen := map[string]int{}
	for _, e := range recorded(t, s) {
		seen[e.Resource]++
	}
	if seen["stats.example:443"] != 1 || len(seen) != maxQuiet {
		t.Errorf("recorded are %d names, and one of them %d times", len(seen), seen["stats.example:443"])
	}
}
