package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// answered asks, and answers over the same prompter.
func answered(t *testing.T, c *link.Client, q approval.Question) error {
	t.Helper()
	asked := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		decide(ctx, c, q.ID, bawn.Answer{Verdict: bawn.Allow, By: "test"}, asked)
	}()
	_, err := c.Ask(t.Context(), q)
	close(asked)
	return err
}

func TestServe(t *testing.T) {
	dir := t.TempDir()
	cmd := start(t, dir)
	c := dialed(t, dir, link.Options{Session: "s"})
	must(t, answered(t, c, question("s", "ls")))
	for path, mode := range map[string]os.FileMode{"run": 0o700, "state": 0o700, "run/hosts.sock": 0o600, "state/relay.db": 0o600, "state/relay.lock": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "run", places.HostsSocket)); err == nil {
		t.Error("the socket is still there")
	}
}

func TestSecondRelayEnds(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	second, said := launch(t, dir)
	if err := second.Wait(); err == nil {
		t.Error("a second relay served")
	}
	if want := fmt.Sprintf("runs already (process %d", first.Process.Pid); !strings.Contains(said.String(), want) {
		t.Errorf("it says %q; want %q", said, want)
	}
	c := dialed(t, dir, link.Options{Session: "s"}) // the first is unharmed
	must(t, answered(t, c, question("s", "ls")))
}

func TestDamagedDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	cmd := start(t, dir)
	c := dialed(t, dir, link.Options{Session: "s"})
	must(t, answered(t, c, question("s", "ls")))
	c.Close()
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	must(t, cmd.Wait())
	before, err := audit.Verify(filepath.Join(dir, "audit"))
	must(t, err)
	path := filepath.Join(dir, "state", databaseName)
	data, err := os.ReadFile(path)
	must(t, err)
	copy(data[4096:8192], bytes.Repeat([]byte("broken"), 700))
	must(t, os.WriteFile(path, data, 0o600))
	again, said := launch(t, dir)
	if err := again.Wait(); err == nil {
		t.Error("a relay serves what it can't trust")
	}
	if !strings.Contains(said.String(), "move it") {
		t.Errorf("it names no remedy: %s", said)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, data) {
		t.Errorf("the database was changed (%v)", err)
	}
	if report, err := audit.Verify(filepath.Join(dir, "audit")); err != nil || report.Fault != nil || report.Records != before.Records || before.Records < 2 {
		t.Errorf("the log: %+v, %v", report, err)
	}
}

// TestFullDisk lets no file grow beyond a size: what can't be kept is not asked.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, "BAWN_TEST_FILE_SIZE=200000")
	c := dialed(t, dir, link.Options{Session: "s"})
	var err error
	n := 0
	for ; n < 200 && (err == nil || errors.Is(err, approval.ErrExpired)); n++ { // an answer may be the first that can't be kept
		q := question("s", strings.Repeat("x", 5000))
		q.Expires = time.Now().Add(3 * time.Second)
		err = answered(t, c, q)
	}
	if n < 2 {
		t.Errorf("the control: the first question fails already: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "can't be kept") && !strings.Contains(err.Error(), "can't be recorded") {
		t.Errorf("after %d questions: %v; want a refusal", n, err)
	}
	if report, err := audit.Verify(filepath.Join(dir, "audit")); err != nil || report.Fault != nil {
		t.Errorf("the log: %+v, %v", report, err)
	}
}

func TestIdleRelayEnds(t *testing.T) {
	dir := t.TempDir()
	cmd := start(t, dir, "BAWN_TEST_IDLE=1s")
	c := dialed(t, dir, link.Options{Session: "s"})
	time.Sleep(1500 * time.Millisecond)
	must(t, answered(t, c, question("s", "ls"))) // somebody is connected
	must(t, c.Close())
	if err := cmd.Wait(); err != nil {
		t.Errorf("the idle relay: %v", err)
	}
}

// TestEnsure starts one relay for many who want one.
func TestEnsure(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "state"), 0o700))
	p := link.Program{
		Path: os.Args[0], Environ: append(os.Environ(), "BAWN_TEST_RELAY="+dir, "BAWN_TEST_IDLE=1s"),
		Socket: filepath.Join(dir, "run", places.HostsSocket), Log: filepath.Join(dir, "state", LogName),
	}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			c, err := link.Dial(t.Context(), link.Options{Path: p.Socket, Session: "s", Start: p.Ensure})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if err := answered(t, c, question("s", fmt.Sprint(n))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	alone := &Relay{Options: optionsIn(dir)}
	testenv.Until(t, "the relay's end, which comes by itself", func() bool {
		unlock, err := alone.lock()
		return err == nil && unlock() == nil
	})
	must(t, os.WriteFile(filepath.Join(dir, "state", databaseName), []byte(strings.Repeat("broken", 999)), 0o600))
	if err := p.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "move it") {
		t.Errorf("a relay that can't start: %v; want what it says", err)
	}
}

func TestPlacesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(o *Options) error{
		"relative": func(o *Options) error { o.State = "state"; return nil },
		"open":     func(o *Options) error { return errors.Join(os.MkdirAll(o.State, 0o700), os.Chmod(o.State, 0o755)) },
		"a link":   func(o *Options) error { return os.Symlink(dir, o.State) },
		"in my way": func(o *Options) error {
			return errors.Join(os.MkdirAll(o.Runtime, 0o700), os.WriteFile(filepath.Join(o.Runtime, places.HostsSocket), nil, 0o600))
		},
		"no log": func(o *Options) error { return os.WriteFile(o.AuditDir, nil, 0o600) },
	} {
		o := optionsIn(t.TempDir())
		o.Stderr = &bytes.Buffer{}
		must(t, prepare(&o))
		if err := Serve(t.Context(), o); err == nil {
			t.Errorf("%s: served", name)
		}
		if name == "in my way" {
			if _, err := os.Stat(filepath.Join(o.Runtime, places.HostsSocket)); err != nil {
				t.Errorf("a file that is no socket was removed: %v", err)
			}
		}
	}
}

// TestFrontends serves one that waits, one that fails, and tells systemd.
func TestFrontends(t *testing.T) {
	dir := t.TempDir()
	said, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	must(t, err)
	defer said.Close()
	o := optionsIn(dir)
	o.Stderr, o.Environ = &bytes.Buffer{}, []string{"NOTIFY_SOCKET=" + filepath.Join(dir, "notify")}
	o.OnDemand, o.Idle = true, time.Hour
	broken, waited := errors.New("broken"), false
	o.Frontends = []Frontend{
		func(ctx context.Context, r *Relay) error { <-ctx.Done(); waited = true; return nil },
		func(_ context.Context, r *Relay) error {
			release := r.Busy()
			if r.idleSince(t.Context(), time.Now().Add(2*time.Hour)) != 0 {
				t.Error("a busy relay is idle")
			}
			release()
			if r.idleSince(t.Context(), time.Now().Add(2*time.Hour)) < time.Hour {
				t.Error("a relay with nothing to do is not idle")
			}
			if !r.dead("nobody") {
				t.Error("a session that is not registered lives")
			}
			return broken
		},
	}
	if err := Serve(t.Context(), o); !errors.Is(err, broken) || !waited {
		t.Errorf("err = %v, waited %v; want the error of the frontend", err, waited)
	}
	buf := make([]byte, 99)
	n, err := said.Read(buf)
	if err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("systemd is told %q, %v", buf[:n], err)
	}
}

func TestUnits(t *testing.T) {
	command := []string{"/opt/my bawn", "serve", "--tls-cert", `50% "new" & $HOME`}
	linux, darwin := Units("linux", command...), Units("darwin", command...)
	if !strings.Contains(linux, `ExecStart="/opt/my bawn" serve --tls-cert "50%% \"new\" & $$HOME"`+"\n") || strings.Contains(linux, "plist") {
		t.Errorf("linux: %s", linux)
	}
	if !strings.Contains(darwin, "<string>/opt/my bawn</string>\n\t\t<string>serve</string>\n") || !strings.Contains(darwin, "50% &#34;new&#34; &amp; $HOME") || strings.Contains(darwin, "[Unit]") {
		t.Errorf("darwin: %s", darwin)
	}
}

// TestActivated hands the process's own descriptors over, as systemd does.
func TestActivated(t *testing.T) {
	if socks, err := activated([]string{"LISTEN_PID=1", "LISTEN_FDS=1"}); err != nil || socks != nil {
		t.Errorf("what is another's: %v, %v", socks, err)
	}
	if _, err := activated([]string{fmt.Sprint("LISTEN_PID=", os.Getpid()), "LISTEN_FDS=many"}); err == nil {
		t.Error("took many")
	}
}

// TestToldToEndAtTheStart: a relay that is stopped before it serves says nothing
// of a damaged database, and leaves none.
func TestToldToEndAtTheStart(t *testing.T) {
	dir, said := t.TempDir(), &strings.Builder{}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	o := optionsIn(dir)
	o.Stderr = said
	for range 2 {
		if err := Serve(ctx, o); err != nil || said.Len() > 0 {
			t.Errorf("%v; said %q", err, said)
		}
	}
	start(t, dir)
}
