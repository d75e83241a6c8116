package policy

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestAttacks reads testdata/attacks.txt: "not-allow" lines are tried where nothing
// contains them, at every mode; "allow" lines are ordinary work in a contained session at
// normal, which a checkpoint covers.
func TestAttacks(t *testing.T) {
	f, err := os.Open("testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	p := corpusPolicy(t)
	count := map[string]int{}
	for s, n := bufio.NewScanner(f), 1; s.Scan(); n++ {
		want, line, ok := strings.Cut(s.Text(), "\t")
		if !ok {
			continue // a comment
		}
		count[want]++
		q := ask4(strings.NewReplacer("␤", "\n", "␍", "\r", "␉", "\t").Replace(line))
		if want == "allow" {
			q.Contained, q.Covered = bawn.ContainedFully, true
			if d := p.Decide(&q); d.Verdict != bawn.Allow {
				t.Errorf("line %d: %q is %v by %q (%s), want allow", n, line, d.Verdict, d.Rule, d.Reason)
			}
			continue
		}
		for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
			q.Mode, q.Autonomy = m, AutonomyOf(m)
			if d := p.Decide(&q); d.Verdict == bawn.Allow {
				t.Errorf("line %d: %q is allowed in %v by %q (%s)", n, line, m, d.Rule, d.Reason)
			}
		}
	}
	if count["not-allow"] < 240 || count["allow"] < 150 {
		t.Errorf("the file has %v lines, want more", count)
	}
}
