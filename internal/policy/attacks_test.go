package policy

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// TestAttacks reads testdata/attacks.txt: "not-allow" lines are tried in a
// contained session at permissive, where most is allowed; "not-bare" lines
// where nothing contains them; "allow" lines are ordinary work in a contained
// session at normal.
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
		q.Mode, q.Contained = bawn.ModePermissive, true
		switch want {
		case "not-bare":
			q.Contained = false
		case "allow":
			q.Mode = bawn.ModeNormal
		}
		if d := p.Decide(&q); (d.Verdict == bawn.Allow) != (want == "allow") {
			t.Errorf("line %d: %q is %v by %q (%s), want %s", n, line, d.Verdict, d.Rule, d.Reason, want)
		}
	}
	if count["not-allow"] < 200 || count["not-bare"] < 40 || count["allow"] < 150 {
		t.Errorf("the file has %v lines, want more", count)
	}
}
