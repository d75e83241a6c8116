package egress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// patience ends a command that hangs.
const patience = 3 * time.Minute

// An account is the home of a user, with a project, in the world.
type account struct {
	lab, home, work string
	env             []string
}

// result is how a command ended.
type result struct {
	out, err string
	code     int
	took     time.Duration
}

// newAccount makes one. features are what the test needs besides the lab.
func newAccount(t *testing.T, features ...string) *account {
	t.Helper()
	testenv.Need(t, append([]string{"userns", "iproute2", "dnsmasq", "curl"}, features...)...)
	if errNoLab != nil {
		t.Fatalf("there is no lab: %v", errNoLab)
	}
	lab := world.Dir()
	home, err := os.MkdirTemp(lab, "home-")
	check(t, err)
	t.Cleanup(func() { check(t, testenv.RemoveAll(home)) })
	d := &account{lab: lab, home: home, work: filepath.Join(home, "src/project")}
	check(t, os.MkdirAll(d.work, 0o755))
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file with the directories that lead to it.
func put(t *testing.T, text string, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	check(t, os.WriteFile(p, []byte(text), 0o600))
	return p
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// command is one that the account's user would start, without a terminal.
func (d *account) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = d.work, 20*time.Second // for who still holds its output
	cmd.Env = append([]string{"HOME=" + d.home, "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=dumb"}, d.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs a command to its end.
func (d *account) run(t testing.TB, argv ...string) result {
	t.Helper()
	return d.within(t, patience, argv...)
}

// within is run with another limit.
func (d *account) within(t testing.TB, limit time.Duration, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := d.command(ctx, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Errorf("%.300q: %v after %v\n%s%s", argv, err, took, &out, &errs)
	}
	return result{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode(), took: took}
}

// sh runs a line of shell, with $PROBE.
func (d *account) sh(t testing.TB, line string) result {
	t.Helper()
	return d.run(t, d.shell(t, line)...)
}

func (d *account) shell(t testing.TB, line string) []string {
	return []string{"/bin/sh", "-c", "PROBE='" + probeProgram(t, d.lab) + " " + probeArgument + "'; " + line}
}

// copies of this binary and ours, made once.
var (
	probeOnce sync.Once
	buildOnce sync.Once
)

// probeProgram is this binary where a guest finds it.
func probeProgram(t testing.TB, lab string) string {
	t.Helper()
	to := filepath.Join(lab, "bin/probe")
	probeOnce.Do(func() {
		check(t, os.MkdirAll(filepath.Dir(to), 0o755))
		self, err := os.Open("/proc/self/exe")
		check(t, err)
		defer self.Close()
		f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
		check(t, err)
		_, err = io.Copy(f, self)
		check(t, errors.Join(err, f.Close()))
	})
	return to
}

// mark is a place in the logs outside.
type mark struct {
	events, questions int64
}

// now is the place up to which everything has been written.
func (d *account) now(t testing.TB) mark {
	t.Helper()
	return mark{events: size(t, filepath.Join(d.lab, "events")), questions: size(t, filepath.Join(d.lab, "dns.log"))}
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	return info.Size()
}

// since returns what the servers outside have seen since m.
func (d *account) since(t testing.TB, m mark) []event {
	t.Helper()
	var events []event
	for dec := json.NewDecoder(bytes.NewReader(tail(t, filepath.Join(d.lab, "events"), m.events))); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return events
		} else if err != nil {
			t.Fatalf("the log outside: %v", err)
		}
		events = append(events, e)
	}
}

// questions returns what the resolver has been asked since m, as "TYPE name".
func (d *account) questions(t testing.TB, m mark) []string {
	t.Helper()
	var asked []string
	for line := range strings.Lines(string(tail(t, filepath.Join(d.lab, "dns.log"), m.questions))) {
		if _, q, ok := strings.Cut(line, ": query["); ok { // "query[A] name from address"
			f := strings.Fields(q)
			asked = append(asked, strings.TrimSuffix(f[0], "]")+" "+f[1])
		}
	}
	return asked
}

func tail(t testing.TB, path string, from int64) []byte {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	_, err = f.Seek(from, io.SeekStart)
	check(t, err)
	text, err := io.ReadAll(f)
	check(t, err)
	return text
}

// outside starts a program there.
func (d *account) outside(t testing.TB, o order) report {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(d.lab, "orders"))
	check(t, err)
	defer c.Close()
	check(t, json.NewEncoder(c).Encode(o))
	var r report
	check(t, json.NewDecoder(c).Decode(&r))
	if r.Error != "" {
		t.Fatalf("outside, %q: %s\n%s", o.Argv, r.Error, r.Out)
	}
	return r
}
