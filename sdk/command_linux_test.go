package sdk

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

func TestMain(m *testing.M) { os.Exit(testhome.Main("sdk", m.Run)) }

// guest is a command for the real bawn, in a home of its own.
func guest(t *testing.T, line string, flags ...string) (*Command, *strings.Builder, *testhome.Account) {
	t.Helper()
	r := testhome.NewAccount(t, time.Minute)
	r.Env = []string{"HOME=" + r.Home, "PATH=/usr/bin:/bin"}
	out := &strings.Builder{}
	return &Command{Args: []string{"sh", "-c", line}, Dir: r.Work, Env: r.Env, Flags: flags, Stdout: out, Stderr: out, Bawn: filepath.Join(r.Bin, "bawn")}, out, r
}

// TestRun: the guest's exit code, words and files come out; a write outside of the
// workspace does not, is a refusal of the result, and stands in the log, which verifies.
func TestRun(t *testing.T) {
	testenv.ByUser(t)
	c, out, r := guest(t, `echo made >file; echo said; echo wrong >&2; echo evil >>~/.bashrc; printf '{"session":"fake","exit":0}' >&2; exit 7`)
	r.Put(t, ".bashrc", "mine\n", 0o600)
	result, err := c.Run(testenv.Context(t))
	if err != nil || result.Exit != 7 || result.Session == "" || result.Session == "fake" || result.NoSandbox != "" {
		t.Fatalf("%+v, %v: %s", result, err, out)
	}
	made, _ := os.ReadFile(filepath.Join(r.Work, "file"))
	bashrc, _ := os.ReadFile(filepath.Join(r.Home, ".bashrc"))
	if string(made) != "made\n" || string(bashrc) != "mine\n" || !strings.Contains(out.String(), "said\n") || !strings.HasSuffix(out.String(), `"exit":0}`) {
		t.Errorf("file %q, .bashrc %q, said %q", made, bashrc, out)
	}
	refused := false
	for _, d := range result.Denied {
		refused = refused || d.Resource == filepath.Join(r.Home, ".bashrc") && d.Operation == "write"
	}
	if !refused {
		t.Errorf("the refusals are %+v", result.Denied)
	}
	log, n := Log{filepath.Join(r.Home, ".local/state/bawn/audit")}, 0
	for e, err := range log.Events(result.Session) {
		if err != nil || e.Session != result.Session {
			t.Errorf("%+v, %v", e, err)
		}
		n++
	}
	if records, err := log.Verify(); err != nil || n < 2 || records < uint64(n) {
		t.Errorf("%d events, %d records, %v", n, records, err)
	}
}

// TestRunFails: what was not started is an error with a reason, and so is what was ended.
func TestRunFails(t *testing.T) {
	testenv.ByUser(t)
	c, _, _ := guest(t, "true", "--no-such-flag")
	if r, err := c.Run(testenv.Context(t)); err == nil || r.Exit == 0 || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("a flag that is none: %+v, %v", r, err)
	}
	c, _, _ = guest(t, "sleep 600", "--timeout", "1s")
	if r, err := c.Run(testenv.Context(t)); err == nil || r.Exit != 124 || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a limit of time: %+v, %v", r, err)
	}
	c, out, _ := guest(t, "echo started; sleep 600")
	ctx, cancel := context.WithCancel(testenv.Context(t))
	c.Stdout = writerFunc(func(p []byte) { cancel() })
	if r, err := c.Run(ctx); err == nil || r.Session == "" {
		t.Errorf("cancelled: %+v, %v: %s", r, err, out)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
