package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// TestNothingRunsWithoutATicket speaks to a first process that is set up as
// any holder of its socket could.
func TestNothingRunsWithoutATicket(t *testing.T) {
	l := start(t, bare("/"))
	mark := filepath.Join(t.TempDir(), "mark")
	do := func(d executor.Do) error {
		p, err := l.client.Do(testenv.Context(t), d, [3]*os.File{})
		for err == nil {
			if ch, ok := <-p.Changes(); !ok || ch.Ended() {
				break
			}
		}
		return err
	}
	command := func() executor.Do {
		return executor.Do{Argv: []string{"/bin/mkdir", mark}, Dir: "/", Env: []string{"PATH=/bin"}}
	}
	digest, err := ptr(command()).Digest("s1", plan)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(i *ticket.Issuer, session string, digest [32]byte) executor.Do {
		d := command()
		if d.Ticket, err = i.Issue(session, digest, time.Minute); err != nil {
			t.Fatal(err)
		}
		return d
	}
	good := issue(l.issuer, "s1", digest)
	other := good
	other.Argv = []string{"/bin/mkdir", "-p", mark}
	for name, d := range map[string]executor.Do{
		"none": command(), "of another key": issue(ticket.NewIssuer(time.Now), "s1", digest),
		"of another session": issue(l.issuer, "s2", digest), "for another command": other,
	} {
		var refused *executor.RefusedError
		if err := do(d); !errors.As(err, &refused) {
			t.Errorf("ticket %s: got %v, want a refusal", name, err)
		}
		if _, err := os.Lstat(mark); err == nil {
			t.Fatalf("ticket %s: the command ran", name)
		}
	}
	if err := do(good); err != nil { // the control
		t.Fatal(err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatalf("with its ticket the command did not run: %v", err)
	}
	if err := do(good); err == nil {
		t.Error("a ticket was redeemed twice")
	}
}

func ptr[T any](v T) *T { return &v }

// TestExecutorBeforeTheSetup: the first process is no executor before it has
// restricted itself.
func TestExecutorBeforeTheSetup(t *testing.T) {
	f := launch(t)
	client, err := executor.New(f.conn)
	if err != nil {
		t.Fatal(err)
	}
	issuer := ticket.NewIssuer(time.Now)
	if _, err := client.Start(testenv.Context(t), executor.Start{Keys: issuer.Keys(), Session: "s1", Plan: plan}); err == nil {
		t.Error("the executor started without a setup")
	}
	if err := f.cmd.Wait(); err == nil {
		t.Error("the first process ended without an error")
	}
}

// TestEveryThreadIsRestricted looks at all threads of the first process and at a
// command, from outside, also where the program was started without new privileges.
func TestEveryThreadIsRestricted(t *testing.T) {
	free := bare("/")
	free.Filter, free.KeepCapabilities = FilterNone, true
	if l := start(t, free); !strings.Contains(l.shell(t, "cat /proc/self/status", true), "CapEff:\t0000000000241100") {
		t.Error("the control run had no capabilities to lose")
	}
	for _, role := range []string{roleEngine, roleBwrap} {
		t.Run(role, func(t *testing.T) {
			testenv.Need(t, "userns")
			allRestricted(t, launchAs(t, namespaces(), role).start(t, bare("/")))
		})
	}
}

func allRestricted(t *testing.T, l *lab) {
	t.Helper()
	for range 8 { // new threads come
		l.shell(t, "true", true)
	}
	texts := map[string]string{"command": l.shell(t, "cat /proc/self/status", true)}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", l.pid))
	if err != nil || len(tasks) < 3 {
		t.Fatalf("%d threads, %v; want some", len(tasks), err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			t.Fatal(err)
		}
		texts[task] = string(text)
	}
	for of, text := range texts {
		for field, want := range map[string]string{
			"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000", "CapAmb": "0000000000000000",
			"NoNewPrivs": "1", "Seccomp": "2",
		} {
			if got := statusOf(text, field); got != want {
				t.Errorf("%s: %s is %q, want %q", of, field, got, want)
			}
		}
	}
}

func statusOf(text, field string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// TestFilter: the kernel refuses what the guest's filter refuses.
func TestFilter(t *testing.T) {
	for filter, want := range map[Filter]bool{FilterGuest: false, FilterNone: true} {
		s := bare("/")
		s.Filter = filter
		l := start(t, s)
		out, end := l.run(t, os.Args[0], roleAttempt, "personality")
		if (end.ExitStatus() == 0) != want {
			t.Errorf("filter %d: personality(2) succeeded: %v, want %v\n%s", filter, !want, want, out)
		}
	}
}

// attackSocket connects to a socket of the host in the guest's directory, there
// and under the name of one that was the guest's own.
func attackSocket(t *testing.T, l *lab, free bool) {
	t.Helper()
	at := filepath.Join(l.setup.Dir, "host.sock")
	host, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if err := os.Chmod(at, 0o777); err != nil {
		t.Fatal(err)
	}
	own, self := filepath.Join(l.setup.Dir, "own.sock"), filepath.Join(l.setup.Dir, "attempt")
	text, err := os.ReadFile("/proc/self/exe") // another user may not reach where it is
	if err == nil {
		err = errors.Join(os.WriteFile(self, text, 0o600), os.Chmod(self, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"connect", at}, {"pretend", at}, {"connect", at}, {"serve", own, at}, {"connect", own}} {
		out, end := l.run(t, slices.Concat([]string{self, roleAttempt}, argv)...)
		if want := free || argv[0] != "connect"; (end.ExitStatus() == 0) != want {
			t.Errorf("%v: exit status %d, want success: %v\n%s", argv, end.ExitStatus(), want, out)
		}
	}
}

// attempt is what a guest tries.
func attempt(args []string) error {
	switch args[0] {
	case "personality":
		const compatLayout = 0x0200000 // ADDR_COMPAT_LAYOUT: weaker protection of memory
		if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, compatLayout, 0, 0); errno != 0 {
			return errno
		}
		return nil
	case "dial":
		c, err := net.DialTimeout("tcp", args[1], 20*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = io.Copy(os.Stdout, c)
		return err
	case "connect":
		c, err := net.Dial("unix", args[1])
		if err != nil {
			return err
		}
		return c.Close()
	case "pretend": // to have bound what is there
		if _, err := net.Listen("unix", args[1]); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
		return nil
	case "serve":
		l, err := net.Listen("unix", args[1])
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		defer l.Close()
		c, err := net.Dial("unix", args[1])
		if err != nil {
			return err
		}
		return errors.Join(c.Close(), os.Rename(args[2], args[1]))
	case "listen":
		l, err := net.Listen("tcp", args[1])
		if err != nil {
			return err
		}
		fmt.Println("listening")
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, err = c.Write([]byte("from inside"))
		return errors.Join(err, c.Close())
	}
	return fmt.Errorf("attempt %q?", args)
}

// TestLandlock: writes outside the writable place fail, on whatever thread.
func TestLandlock(t *testing.T) {
	testenv.Need(t, "landlock")
	for _, abi := range []int{0, 1} {
		in, out := t.TempDir(), t.TempDir()
		s := bare("/")
		s.Landlock = layout.Landlock{ABI: abi, Writable: []string{in, "/dev", "/no/such/place", filepath.Join(in, "file")}}
		if err := os.WriteFile(filepath.Join(in, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l := start(t, s)
		l.shell(t, "echo x > "+in+"/a && echo y > "+in+"/file && echo z > /dev/null", true)
		l.shell(t, "echo x > "+out+"/a", abi == 0)
		l.shell(t, "cat "+in+"/a", true)
	}
}

// TestSupervised: a protected name is refused by the supervisor outside, which
// says so; without it the same succeeds.
func TestSupervised(t *testing.T) {
	testenv.Need(t, "notify")
	for _, filter := range []Filter{FilterGuest, FilterSupervised} {
		dir := repository(t)
		s := bare(dir)
		s.Filter = filter
		l := start(t, s)
		attackNames(t, l, filter == FilterGuest, &layout.Plan{
			Protected: []string{dir}, Loopback: true, UID: layout.Mapping{Outside: os.Geteuid()}, GID: layout.Mapping{Outside: os.Getegid()},
		})
	}
}

// TestSupervisedOtherUser: the guest is another user of the host, without
// namespaces, as an engine that runs as root starts it. What the supervisor does
// for it is done as that user.
func TestSupervisedOtherUser(t *testing.T) {
	testenv.Need(t, "root")
	testenv.Need(t, "notify")
	const other = 65534
	for _, filter := range []Filter{FilterGuest, FilterSupervised} {
		dir, closed := repository(t), t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the test's own
			t.Fatal(err)
		}
		for _, p := range []string{dir, filepath.Join(dir, ".git")} {
			if err := os.Chown(p, other, other); err != nil {
				t.Fatal(err)
			}
		}
		s := bare(dir)
		s.Filter, s.Loopback, s.Ports = filter, false, false
		l := launchAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}, Pdeathsig: unix.SIGKILL}, roleInside).start(t, s)
		attackNames(t, l, filter == FilterGuest, &layout.Plan{
			Protected: []string{dir, closed}, UID: layout.Mapping{Outside: other}, GID: layout.Mapping{Outside: other},
		})
		l.shell(t, "echo x > "+closed+"/of-root", false)
		if got := l.shell(t, "umask 027; echo x > mine; stat -c %u:%g:%a mine", true); got != "65534:65534:640" {
			t.Errorf("filter %d: a new file is %s", filter, got)
		}
		if now := unix.Geteuid(); now != 0 {
			t.Errorf("this process is user %d now", now)
		}
	}
}

// repository is a directory with an empty .git.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// attackNames writes where it may and, unless free, may not.
func attackNames(t *testing.T, l *lab, free bool, p *layout.Plan) {
	t.Helper()
	var mu sync.Mutex
	var denials []sandbox.Denial
	if !free {
		l.supervise(t, p, func(d sandbox.Denial) {
			mu.Lock()
			defer mu.Unlock()
			denials = append(denials, d)
		})
	}
	l.shell(t, "echo x > ordinary && mkdir d && mv ordinary d/ && cat d/ordinary", true)
	l.shell(t, "mkdir .git/hooks; echo x > .git/hooks/pre-commit", free)
	l.shell(t, "echo x > .git/config", free)
	l.shell(t, "ln -s d .vscode", free)
	attackSocket(t, l, free)
	mu.Lock()
	defer mu.Unlock()
	if got := len(denials) > 0; got == free {
		t.Errorf("free %v: denials %+v", free, denials)
	}
}

// FuzzOrder: what is no order is refused, and nothing of it is done.
func FuzzOrder(f *testing.F) {
	for _, s := range []string{`{}`, `{"Join":1}`, `{"Join":-1}`, `{"Setup":{}}`, `{"Join":1,"Setup":{}}`, `{"Setup":{"Session":"s","Filter":1,"Network":{"own_addresses":["::1"]}}}`, `null`, `{"Do":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ours, theirs, err := ipc.Pair()
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		go func() {
			defer ours.Close()
			frame := append([]byte{byte(len(body) >> 24), byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
			_, _ = ours.Write(frame)
		}()
		conn, err := ipc.New(theirs, intent.Limits)
		if err != nil {
			t.Fatal(err)
		}
		s, err := receive(conn)
		if (s != nil) == (err != nil) {
			t.Fatalf("got %v, %v", s, err)
		}
		if s == nil {
			return
		}
		var again order
		if err := json.Unmarshal(body, &again); err != nil || again.Setup == nil {
			t.Fatalf("%q was taken for a setup", body)
		}
	})
}
