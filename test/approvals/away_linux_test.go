package approvals_test

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// away starts a session without a terminal whose questions do what is said, and returns
// what it has written once it has ended.
func (r *account) away(how string, words ...string) <-chan string {
	out := make(chan string, 1)
	argv := []string{"bawn", "run", "--net", "allowlist", "--ask-timeout", "25s"}
	if how != "" {
		argv = append(argv, "--while-away", how)
	}
	go func() {
		got := r.Run(r.t, append(argv, words...)...)
		out <- got.Out + got.Err
	}()
	return out
}

// TestWhileAway: without anybody who could answer, a question is denied at once or waits,
// as the session was started, and the agent is told what to do meanwhile.
func TestWhileAway(t *testing.T) {
	r := newAccount(t)
	connect := append([]string{"--"}, r.Guest("tcp", "away.test:443")...)
	split := []string{"--split", "--", "/bin/sh", "-c", "git push origin fix"}
	const meanwhile = "go on with what does not need it"
	for name, words := range map[string][]string{"the network": connect, "a command": split} {
		if got := testenv.Receive(t, name, r.away("deny", words...)); !strings.Contains(got, meanwhile) || strings.Contains(got, "waiting") {
			t.Errorf("%s, deny: %s", name, got)
		}
	}
	if got := testenv.Receive(t, "the default", r.away("", connect...)); !strings.Contains(got, "refused away.test:443") {
		t.Errorf("the network, by default: %s", got)
	}
	if _, out, errs := r.run("bawn", "approvals"); strings.Contains(out, "away.test") || !strings.Contains(errs, "no relay runs") {
		t.Errorf("somebody was asked: %s%s", out, errs)
	}
	waits := r.away("wait", connect...)
	r.answer("bawn", "deny", r.pending("away.test:443").ID, "--why", "not today")
	if got := testenv.Receive(t, "an answer", waits); !strings.Contains(got, "not today") || !strings.Contains(got, "waiting") {
		t.Errorf("the network, wait: %s", got)
	}
	r.relay() // somebody looks: then deny asks, too
	asks := r.away("deny", connect...)
	r.answer("bawn", "deny", r.pending("away.test:443").ID, "--why", "nor tomorrow")
	if got := testenv.Receive(t, "an answer", asks); !strings.Contains(got, "nor tomorrow") {
		t.Errorf("with a relay: %s", got)
	}
}
