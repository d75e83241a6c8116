//go:build linux

package sandboxtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	words "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestByName runs the checks that concern the network and other ways out in a
// visit whose network is by name.
func TestByName(t *testing.T) { visits(t, attacksByName) }

func attacksByName(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	inside := func(t testing.TB, f *sandboxtest.Fixtures, argv ...string) sandboxtest.Result {
		s := begin(t, p, byName(f))
		defer s.end()
		return s.run(argv...)
	}
	sandboxtest.Run(t, inside, f, sandboxtest.Options{Families: []string{"net", "ipc", "kernel", "proc"}})
}

// slow is more than a refusal may take on a busy machine, and less than a silent host's.
const slow = 900_000 // µs

// TestWhereConnectionsArrive connects to addresses that nobody has.
func TestWhereConnectionsArrive(t *testing.T) { visits(t, whereConnectionsArrive) }

func whereConnectionsArrive(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	want := map[string]string{
		"tcp 1.2.3.4:80": "relay 1.2.3.4:80", "tcp 198.18.0.1:22": "relay 198.18.0.1:22", "tcp 169.254.169.254:80": "relay 169.254.169.254:80",
		"tcp 10.1.2.3:65535": "relay 10.1.2.3:65535", "tcp 203.0.113.9:1": "relay 203.0.113.9:1",
		"tcp [2001:db8::1]:443": "relay [2001:db8::1]:443", "tcp [fd62:6177:6e00::7]:8443": "relay [fd62:6177:6e00::7]:8443", "tcp [::ffff:9.8.7.6]:99": "relay 9.8.7.6:99",
		"tcp 127.0.0.1:5432": "relay 127.0.0.1:5432", "tcp [::1]:5432": "relay [::1]:5432", // opened ports of the host
		"tcp 127.0.0.1:61001": "relay 127.0.0.1:61001", "tcp 127.0.0.1:61128": "proxy", "tcp [::1]:61128": "proxy",
		"tcp 9.9.9.9:53": "resolver", "tcp 127.0.0.53:53": "resolver", "tcp [2001:db8::53]:53": "resolver",
		"udp 8.8.8.8:53": "resolver", "udp 127.0.0.53:53": "resolver", "udp [2001:db8::53]:53": "resolver", "udp [::1]:53": "resolver",
		"sendto 8.8.8.8:53": "resolver", "sendto 127.0.0.53:53": "resolver", "sendto [2001:db8::53]:53": "resolver",
	}
	var ops []string
	for op := range want {
		ops = append(ops, op)
	}
	for op, a := range begin(t, p, byName(f)).attempts(f, ops...) {
		if a.Answer != want[op] || a.Errno != "" {
			t.Errorf("%s: got %+v, want %q", op, a, want[op])
		}
		if to, ok := strings.CutPrefix(op, "sendto "); ok && a.From != to {
			t.Errorf("%s: the answer came from %q", op, a.From)
		}
	}
	req := byName(f) // the control: without this network nothing arrives
	req.Session.Isolation.Network = words.NetworkNone
	s := begin(t, p, req)
	if s.network != nil {
		t.Error("network none has sockets")
	}
	for op, a := range s.attempts(f, ops...) {
		patient := op == "sendto 127.0.0.53:53" // nobody says that nobody is there
		if a.Answer != "" || a.Errno == "" || a.Micros > slow && !patient {
			t.Errorf("network none: %s: got %+v", op, a)
		}
	}
}

// TestWhatIsRefused tries what is neither TCP nor DNS; each works in a bare
// namespace, where a server inside gets it.
func TestWhatIsRefused(t *testing.T) { visits(t, whatIsRefused) }

func whatIsRefused(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	ops := []string{
		"route", "address", "serveudp 0.0.0.0:8443", "udp 127.0.0.1:8443", "udp 1.1.1.1:8443", "udp 198.18.0.9:8443", "sendto 1.1.1.1:8443", "sendto 10.0.0.1:8443",
		"serveudplite 0.0.0.0:8443", "udplite 127.0.0.1:8443", "udplite 1.1.1.1:8443", "complaint 1.1.1.1:8443",
	}
	free, inside := bare(t, f, ops...), begin(t, p, byName(f)).attempts(f, ops...)
	for op, a := range inside {
		allowed := strings.HasPrefix(op, "serve") || strings.Contains(op, "127.0.0.1")
		switch {
		case strings.Contains(op, "udplite") && free["serveudplite 0.0.0.0:8443"].Errno != "":
			t.Logf("no UDP-Lite on this machine: %s", op)
		case allowed && a.Errno != "":
			t.Errorf("%s: got %+v, want it to work", op, a)
		case strings.HasPrefix(op, "complaint") && a.Errno == "EHOSTUNREACH" && a.Micros <= slow: // "administratively prohibited"
		case !allowed && (a.Errno != "EPERM" || a.Micros > slow):
			t.Errorf("%s: got %+v, want it refused at once", op, a)
		case free[op].Errno != "":
			t.Errorf("%s: does not work in a bare namespace either: %+v", op, free[op])
		}
	}
	six := []string{"udp [2001:db8::1]:8443", "sendto [2001:db8::1]:8443", "complaint [2001:db8::1]:8443"}
	for op, a := range begin(t, p, byName(f)).attempts(f, six...) {
		want := "EPERM"
		if strings.HasPrefix(op, "complaint") {
			want = "EACCES"
		}
		if a.Errno != want || a.Micros > slow {
			t.Errorf("%s: got %+v, want %s at once", op, a, want)
		}
	}
}

// TestLoopbackIsTheGuests serves inside, and asks from inside, from the host,
// and by Dial.
func TestLoopbackIsTheGuests(t *testing.T) { visits(t, loopbackIsTheGuests) }

func loopbackIsTheGuests(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	s := begin(t, p, byName(f))
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server, err := s.guest.Exec(sandbox.Command{Argv: []string{f.Victim, "attempt", "serve 127.0.0.1:3000", "serve [::1]:3001", "serve 0.0.0.0:3002", "tcp 127.0.0.1:3000", "tcp 192.0.0.8:3002", "wait"}, Stdio: [3]*os.File{in, report, report}})
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	report.Close()
	defer func() {
		feed.Close()
		out.Close()
		for range server.Changes() {
		}
	}()
	lines := bufio.NewScanner(out)
	for range 5 {
		var a probe.Attempt
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &a) != nil || a.Errno != "" || strings.HasPrefix(a.Op, "tcp") && a.Answer != "inside" {
			t.Fatalf("inside: %q", lines.Text())
		}
	}
	for _, address := range []string{"127.0.0.1:3000", "[::1]:3001", "127.0.0.1:3002"} {
		if c, err := net.Dial("tcp", address); err == nil { // the control is Dial below
			c.Close()
			t.Errorf("the host reaches %s of the guest", address)
		}
	}
	for port, want := range map[uint16]error{3000: nil, 3001: nil, 3002: nil, 3003: unix.ECONNREFUSED, 5432: unix.ECONNREFUSED, 61001: unix.ECONNREFUSED, 53: unix.ECONNREFUSED} {
		c, err := s.guest.Dial(port)
		if !errors.Is(err, want) {
			t.Errorf("dial %d: got %v, want %v", port, err, want)
		}
		if err != nil {
			continue
		}
		if text, err := io.ReadAll(c); string(text) != "inside" {
			t.Errorf("dial %d: got %q, %v", port, text, err)
		}
		c.Close()
	}
}

// TestHangUp closes the listeners: every connection is refused from then on,
// and nothing else opens.
func TestHangUp(t *testing.T) { visits(t, hangUp) }

func hangUp(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	s := begin(t, p, byName(f))
	ops := []string{"tcp 1.2.3.4:80", "tcp [2001:db8::1]:443", "tcp 9.9.9.9:53", "tcp 127.0.0.1:5432", "tcp 127.0.0.1:61128", "udp 8.8.8.8:53"}
	for op, a := range s.attempts(f, ops...) {
		if a.Answer == "" {
			t.Errorf("before: %s: %+v", op, a)
		}
	}
	s.hangUp()
	for op, a := range s.attempts(f, ops...) {
		if a.Errno != "ECONNREFUSED" || a.Micros > slow {
			t.Errorf("after: %s: got %+v, want ECONNREFUSED at once", op, a)
		}
	}
}

// TestManyConnections loses none of them and leaves no descriptor behind.
func TestManyConnections(t *testing.T) { visits(t, manyConnections) }

func manyConnections(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	s := begin(t, p, byName(f))
	s.attempts(f, "tcp 1.2.3.4:80") // opens what stays open
	self, first := descriptors(t, "self"), s.descriptorsOfFirst(t)
	count := strconv.Itoa(testenv.Some(10_000, 2_000))
	op := "many 198.18.0.7:443 " + count + " 200"
	if a := s.attempts(f, op)[op]; a.Answer != count {
		t.Errorf("got %+v", a)
	}
	// The ends of the last connections are closed after the guest has closed its own.
	testenv.Until(t, "the end of their descriptors", func() bool { return descriptors(t, "self") <= self+8 })
	testenv.Until(t, "the end of those of PID 1", func() bool { return s.descriptorsOfFirst(t) <= first })
}

func descriptors(t testing.TB, pid string) int {
	t.Helper()
	list, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// descriptorsOfFirst counts those of the sandbox's first process, which only
// root may.
func (s *visit) descriptorsOfFirst(t testing.TB) int {
	t.Helper()
	if os.Geteuid() != 0 {
		return 0
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		for _, pid := range strings.Fields(string(text)) {
			n += descriptors(t, pid)
		}
	}
	if n == 0 {
		t.Fatal("no child found")
	}
	return n
}

// TestFilesAreTheHosts shows files at places that are absent, hidden or others',
// and lets the guest try to change them; on a file of its own all that works.
func TestFilesAreTheHosts(t *testing.T) { visits(t, filesAreTheHosts) }

func filesAreTheHosts(t *testing.T, p sandbox.Provider) {
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	dir := filepath.Join(f.Base, "given")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, []byte("given\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	netrc, hosts := filepath.Join(f.Home, ".netrc"), filepath.Join(f.Home, ".config/gh/hosts.yml")
	for _, p := range []string{netrc, hosts} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	req := byName(f)
	places := []string{"/run/bawn/ca.pem", netrc, hosts, filepath.Join(f.Home, ".config/gh/new/file"), "/etc/hosts"}
	for _, p := range places {
		req.Files = append(req.Files, sandbox.File{Source: source, Target: p})
	}
	req.Files = append(req.Files, sandbox.File{Source: dir, Target: "/run/bawn/dir"})
	req.SetEnv = []string{"GIVEN=1"}
	s := begin(t, p, req)
	for _, p := range append(places, "/run/bawn/dir/source") {
		if r := s.run("cat", p); r.Stdout != "given\n" {
			t.Errorf("%s: the guest reads %q, %q", p, r.Stdout, r.Stderr)
		}
		other := filepath.Join(f.Workspace, "other")
		ops := []string{"write " + p, "append " + p, "chmod " + p, "rename " + p + " " + p + "2", "create " + other, "rename " + other + " " + p, "unlink " + p, "umount " + p, "rename " + filepath.Dir(p) + " " + filepath.Dir(p) + "2"}
		for op, a := range s.attempts(f, ops...) {
			if made := strings.HasPrefix(op, "create"); made != (a.Errno == "") {
				t.Errorf("%s: got %+v", op, a)
			}
		}
		if r := s.run("cat", p); r.Stdout != "given\n" {
			t.Errorf("%s: afterwards the guest reads %q", p, r.Stdout)
		}
	}
	own := filepath.Join(f.Workspace, "own")
	ops := []string{"create " + own, "write " + own, "append " + own, "chmod " + own, "rename " + own + " " + own + "2", "unlink " + own + "2"}
	for op, a := range s.attempts(f, ops...) {
		if a.Errno != "" {
			t.Errorf("control: %s: got %+v", op, a)
		}
	}
	if r := s.run("sh", "-c", "echo $GIVEN; ls "+filepath.Dir(filepath.Dir(hosts))); !strings.HasPrefix(r.Stdout, "1\n") {
		t.Errorf("environment: %q", r.Stdout)
	}
	if text, err := os.ReadFile(source); string(text) != "given\n" || err != nil {
		t.Errorf("the source holds %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(f.Home, ".config/gh/new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory came into being on the host: %v", err)
	}
}
