package audit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// children are what this test binary does instead of testing when childEnv
// names one; args are dir and a number.
const childEnv = "BAWN_AUDIT_TEST_CHILD"

var children = map[string]func(dir string, n int) error{
	"append": childAppend,
	"flood":  childFlood,
}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childEnv)]; child != nil {
		n, _ := strconv.Atoi(os.Args[2])
		if err := child(os.Args[1], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func startChild(t *testing.T, name, dir string, n int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", dir, strconv.Itoa(n))
	if self, err := os.Executable(); err == nil {
		cmd.Path = self
	}
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func childAppend(dir string, n int) error {
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	for i := range n {
		e := event(fmt.Sprintf("/p%d/%d", os.Getpid(), i))
		e.Reason = strings.Repeat("x", i*37%3000)
		if err := l.Record(context.Background(), e); err != nil {
			return err
		}
	}
	return nil
}

// childFlood appends records of many pages until it is killed: the kernel may
// end a write(2) of a killed process between two pages.
func childFlood(dir string, _ int) error {
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	e := event("/flood")
	e.Reason = strings.Repeat("flood ", 10_000)
	for {
		if err := l.Record(context.Background(), e); err != nil {
			return err
		}
	}
}

var testTime = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func event(resource string) bawn.Event {
	return bawn.Event{
		Time: testTime, Session: "s1", Agent: "claude", Kind: "filesystem", Operation: "read",
		Resource: resource, Requested: bawn.Ask, Resolved: bawn.Allow, Source: "rule", Rule: "policy.toml:3",
	}
}

func openLog(t testing.TB, dir string, opts Options) *Log {
	t.Helper()
	l, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func put(t testing.TB, l *Log, events ...bawn.Event) {
	t.Helper()
	for _, e := range events {
		if err := l.Record(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// newLog returns the directory of a log with n records.
func newLog(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	for i := range n {
		put(t, l, event("/file/"+strconv.Itoa(i)))
	}
	return dir
}

func verify(t testing.TB, dir string) Report {
	t.Helper()
	r, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantClean fails unless the log is in order and holds n records.
func wantClean(t testing.TB, dir string, n int) {
	t.Helper()
	if r := verify(t, dir); r.Fault != nil || r.Records != uint64(n) || r.Lag != 0 {
		t.Fatalf("Verify = %+v (%v); want %d records in order", r, r.Fault, n)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
