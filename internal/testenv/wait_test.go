package testenv

import (
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ended runs f as a test, and returns how that ended.
func ended(f func(t testing.TB)) (r *tb) {
	r = &tb{outcome: "ran"}
	defer func() {
		if v := recover(); v != nil && v != any(r) {
			panic(v)
		}
	}()
	f(r)
	return r
}

// TestWaitingEnds shows that what never comes fails the test after a while, and
// that what comes does not.
func TestWaitingEnds(t *testing.T) {
	t.Setenv(PatienceVariable, "50ms")
	closed := make(chan int)
	close(closed)
	for name, tt := range map[string]struct {
		f    func(t testing.TB)
		want string
	}{
		"a condition that never holds":   {func(t testing.TB) { Until(t, "it", func() bool { return false }) }, "failed"},
		"a condition that holds":         {func(t testing.TB) { Until(t, "it", func() bool { return true }) }, "ran"},
		"a channel on which none sends":  {func(t testing.TB) { Receive(t, "it", make(chan int)) }, "failed"},
		"a channel that has been closed": {func(t testing.TB) { Receive(t, "it", closed) }, "ran"},
	} {
		if r := ended(tt.f); r.outcome != tt.want || (r.outcome == "failed") != (r.message == "waited in vain for it") {
			t.Errorf("%s: %s, %q; want %s", name, r.outcome, r.message, tt.want)
		}
	}
}

// TestUntilInBubble shows that Until may wait for a bubble's clock.
func TestUntilInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Second)
		Until(t, "a second", func() bool { return !time.Now().Before(at) })
	})
}

// TestContextEnds shows that the context of a test ends what hangs.
func TestContextEnds(t *testing.T) {
	t.Setenv(PatienceVariable, "50ms")
	began := time.Now()
	if err := exec.CommandContext(Context(t), "sleep", "60").Run(); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("it ended after %v with %v; want it killed", time.Since(began), err)
	}
}

// TestPatience shows that the variable counts, and that nonsense fails.
func TestPatience(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Hour, "40m": 40 * time.Minute, "40": 0, "0s": 0, "-1m": 0, "forty minutes": 0} {
		t.Setenv(PatienceVariable, text)
		var got time.Duration
		r := ended(func(t testing.TB) { got = Patience(t, time.Hour) })
		if said := strings.Contains(r.message, PatienceVariable) && strings.Contains(r.message, text); got != want || said != (want == 0) {
			t.Errorf("%q: %v, %q", text, got, r.message)
		}
	}
}
