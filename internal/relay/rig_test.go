package relay

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain makes this program a relay where the environment says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BAWN_TEST_RELAY"); dir != "" {
		limit(os.Getenv("BAWN_TEST_FILE_SIZE"))
		o := optionsIn(dir)
		o.Stderr, o.Environ = os.Stderr, os.Environ()
		if idle, err := time.ParseDuration(os.Getenv("BAWN_TEST_IDLE")); err == nil {
			o.OnDemand, o.Idle = true, idle
		}
		if Serve(context.Background(), o) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// limit makes writes beyond a size fail, as a full disk would.
func limit(size string) {
	n, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}

func optionsIn(dir string) Options {
	return Options{Runtime: filepath.Join(dir, "run"), State: filepath.Join(dir, "state"), AuditDir: filepath.Join(dir, "audit")}
}

// start starts a relay process in dir and returns when it listens.
func start(t testing.TB, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd, said := launch(t, dir, env...)
	defer func() {
		if t.Failed() {
			t.Logf("the relay says %s", said)
		}
	}()
	testenv.Until(t, "the relay", func() bool {
		conn, err := dialUnix(filepath.Join(dir, "run", places.HostsSocket))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return cmd
}

// launch starts a relay process, which is killed at the end of the test.
func launch(t testing.TB, dir string, env ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	said := &strings.Builder{}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "BAWN_TEST_RELAY="+dir), env...)
	cmd.Stderr = said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, said
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dialed(t testing.TB, dir string, o link.Options) *link.Client {
	t.Helper()
	o.Path = filepath.Join(dir, "run", places.HostsSocket)
	c, err := link.Dial(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func question(session, resource string) approval.Question {
	return approval.Question{
		ID: approval.NewID(), Session: session, Agent: "test", Expires: time.Now().Add(5 * time.Minute),
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: resource, Args: []string{"sh", "-c", resource}, Dir: "/w"},
	}
}

// decide answers until it is clear what stands, whatever happens to the relay.
// Once asked is closed the asker knows, and a relay that was started since
// knows nothing of our asking.
func decide(ctx context.Context, d approval.Prompter, id string, a bawn.Answer, asked <-chan struct{}) (rec approval.Record, mine, known bool) {
	for ctx.Err() == nil {
		var over bool
		select {
		case <-asked:
			over = true
		default:
		}
		rec, err := d.Answer(ctx, id, a)
		var answered *approval.AnsweredError
		switch {
		case err == nil:
			return rec, true, true
		case errors.As(err, &answered):
			return answered.Record, false, true
		case over && errors.Is(err, approval.ErrUnknown):
			return rec, false, false
		}
		time.Sleep(time.Millisecond)
	}
	return rec, false, false
}

func dialUnix(path string) (net.Conn, error) { return net.Dial("unix", path) }
