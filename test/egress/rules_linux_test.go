package egress_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

const neverWeb = "[[rule]]\nkind = \"network\"\nverdict = \"deny\"\npattern = \"allowed.test\"\n"

// TestRulesAddedWhileItRuns: a denial that its human writes during a session holds for
// the guest's next connection, and a file that can't be read changes nothing, which
// the human is told once.
func TestRulesAddedWhileItRuns(t *testing.T) {
	d := newAccount(t)
	policy := filepath.Join(d.home, ".config/bawn/policy.toml")
	line := `i=0; while :; do until test -e go$i -o -e stop; do sleep 0.05; done; test -e stop && exit
curl -fsS -m 20 -o /dev/null http://allowed.test/ && echo yes >is$i || echo no >is$i; i=$((i+1)); done`
	s := d.openTerminal(t, []string{"--allow", "allowed.test:80"}, line)
	steps := 0
	reaches := func() string {
		t.Helper()
		put(t, "", d.work, "go"+strconv.Itoa(steps))
		var got string
		testenv.Until(t, "the guest's answer", func() bool {
			text, err := os.ReadFile(filepath.Join(d.work, "is"+strconv.Itoa(steps)))
			got = strings.TrimSpace(string(text))
			return err == nil && got != ""
		})
		steps++
		return got
	}
	for _, c := range []struct{ what, policy, want string }{
		{"control: before", "", "yes"},
		{"a denial that was added", neverWeb, "no"},
		{"a file that can't be read", "[[rule]", "no"},
		{"the same once more", "[[rule]", "no"},
	} {
		if c.policy != "" {
			put(t, c.policy, policy)
		}
		if got := reaches(); got != c.want {
			t.Errorf("%s: the host answers: %q; want %q", c.what, got, c.want)
		}
	}
	put(t, "# none\n", policy)
	testenv.Until(t, "what was taken back to be allowed", func() bool { return reaches() == "yes" })
	put(t, "", d.work, "stop")
	<-s.done
	if n := strings.Count(s.screen(), "stay in force"); n != 1 {
		t.Errorf("the human is told %d times; want once: %q", n, s.screen())
	}
}
