package testenv

import (
	"os"
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

// TestDrain shows that what is in a pipe comes out although it has another end.
func TestDrain(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text := strings.Repeat("0123456789", 1000)
	if got := Drain(t, r); got != "" {
		t.Errorf("of an empty pipe: %q", got)
	}
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now()); err != nil { // which has passed
		t.Fatal(err)
	}
	if got := Drain(t, r); got != text {
		t.Errorf("got %d bytes; want %d", len(got), len(text))
	}
	w.Close()
	if got := Drain(t, r); got != "" {
		t.Errorf("at the end: %q", got)
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
