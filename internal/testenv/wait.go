package testenv

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// PatienceVariable names the environment variable that says how long a test
// waits for one thing, such as a command's end, as a Go duration above zero.
// An emulated machine needs more than the default.
const PatienceVariable = "BAWN_TEST_PATIENCE"

// usual is how long a test waits for one thing. It is far more than anything
// takes, also beside other load, and far less than go test's own limit.
const usual = 45 * time.Second

// poll is how often Until looks.
const poll = 2 * time.Millisecond

// Patience returns how long a test waits for one thing before it fails: what
// BAWN_TEST_PATIENCE says, or else the default.
func Patience(t testing.TB, standard time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(PatienceVariable)
	if text == "" {
		return standard
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s is %q; want a duration above zero, such as 40m", PatienceVariable, text)
	}
	return d
}

// Until waits until ok reports true, and fails the test when that takes too
// long. It is for what other processes do; what goroutines of the test do
// belongs into a bubble of testing/synctest or comes over a channel.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience(t, usual)); !ok(); time.Sleep(poll) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Receive returns the next value of ch, or the zero value once it is closed,
// and fails the test when that takes too long.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Patience(t, usual))
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// Context returns a context that ends with the test, and earlier after too long.
// It is for exec.CommandContext: a command that is killed ends whatever waits for
// it or for its output.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience(t, usual))
	t.Cleanup(cancel)
	return ctx
}

// Drain returns what is in a pipe now. Unlike a read until a deadline it loses
// nothing where the machine is busy, and it does not wait for those who may keep
// the pipe open.
func Drain(t testing.TB, r *os.File) string {
	t.Helper()
	raw, err := r.SyscallConn()
	if err == nil {
		err = r.SetReadDeadline(time.Time{})
	}
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	var out strings.Builder
	for buf := make([]byte, 4096); ; {
		n := 0
		if err := raw.Read(func(fd uintptr) bool { n, _ = syscall.Read(int(fd), buf); return true }); err != nil || n <= 0 {
			return out.String() // empty, or at its end
		}
		out.Write(buf[:n])
	}
}
