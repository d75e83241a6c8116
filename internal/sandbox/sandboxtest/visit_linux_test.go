//go:build linux

package sandboxtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	words "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/bwrap"
	kernel "github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// byName asks for a session that reaches others by name.
func byName(f *sandboxtest.Fixtures) sandbox.Request {
	iso := words.Isolation{
		Workspace: f.Workspace, Protect: true, Network: words.NetworkAllowlist, Env: []string{"PATH", "HOME"}, Resources: words.Resources{TmpMB: 64},
		Mounts: []words.Mount{{Path: f.Workspace, Access: words.ReadWrite, Why: "workspace"}, {Path: f.Writable, Access: words.ReadWrite, Why: "--rw"},
			{Path: filepath.Dir(f.Secret), Access: words.Hidden}, {Path: f.Denied, Access: words.Hidden}},
	}
	return sandbox.Request{Session: words.Session{ID: "t" + f.Token, Isolation: iso}, Argv: []string{f.Victim}, Dir: f.Workspace, Environ: f.Environ, Relay: true, HostPorts: []uint16{5432}}
}

// A visit is a guest and the toy that serves its network.
type visit struct {
	t       testing.TB
	guest   sandbox.Guest
	network *sandbox.GuestNetwork
	toy     []io.Closer // the copies that accept
	begun   chan string // original destinations of connections
}

// visits runs f with each provider that hands out its guests' sockets.
func visits(t *testing.T, f func(t *testing.T, p sandbox.Provider)) {
	for name, p := range map[string]sandbox.Provider{"native": kernel.New(""), "bwrap": bwrap.New("", "")} {
		t.Run(name, func(t *testing.T) {
			if name == "native" {
				testenv.ByUser(t)
			} else {
				testenv.ByRoot(t)
			}
			testenv.Need(t, contenderNamed(t, name).needs...)
			f(t, p)
		})
	}
}

// begin starts a guest and, where its network is by name, serves that.
func begin(t testing.TB, p sandbox.Provider, req sandbox.Request) *visit {
	t.Helper()
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		t.Fatal(err)
	}
	s := &visit{t: t, guest: g, network: g.Network(), begun: make(chan string, 1<<16)}
	t.Cleanup(s.end)
	if s.network == nil {
		return s
	}
	for _, f := range s.network.Connect {
		s.accept(f, func(c net.Conn) string { return "relay " + originalDestination(c) })
	}
	for _, f := range s.network.DNSStream {
		s.accept(f, func(net.Conn) string { return "resolver" })
	}
	for _, f := range s.network.Proxy {
		s.accept(f, func(net.Conn) string { return "proxy" })
	}
	for _, f := range s.network.DNS {
		s.resolve(f)
	}
	return s
}

// accept answers each connection, from outside of the namespace.
func (s *visit) accept(f *os.File, answer func(net.Conn) string) {
	l, err := net.FileListener(f)
	if err != nil {
		s.t.Fatal(err)
	}
	s.toy = append(s.toy, l)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			text := answer(c)
			s.begun <- text
			_, _ = io.WriteString(c, text)
			_, _ = c.Read(make([]byte, 1)) // the question, so that closing is no reset
			c.Close()
		}
	}()
}

// told wants that a socket says of the first datagram already to which address
// it was sent: an answer that leaves from another never arrives.
func (s *visit) told(f *os.File) {
	v4, err4 := unix.GetsockoptInt(int(f.Fd()), unix.IPPROTO_IP, unix.IP_PKTINFO)
	v6, err6 := unix.GetsockoptInt(int(f.Fd()), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO)
	if (err4 != nil || v4 == 0) && (err6 != nil || v6 == 0) {
		s.t.Errorf("the resolver's socket does not tell destinations: %d %v, %d %v", v4, err4, v6, err6)
	}
}

func (s *visit) resolve(f *os.File) {
	s.told(f)
	c, err := net.FilePacketConn(f)
	if err != nil {
		s.t.Fatal(err)
	}
	s.toy = append(s.toy, c)
	go func() {
		buf := make([]byte, 512)
		for {
			_, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte("resolver"), from)
		}
	}()
}

// hangUp closes every copy of the sockets.
func (s *visit) hangUp() {
	for _, c := range s.toy {
		c.Close()
	}
	s.toy = nil
	if s.network != nil {
		s.network.Close()
	}
}

func (s *visit) end() {
	s.hangUp()
	s.guest.Close()
}

// run runs a command inside to its end.
func (s *visit) run(argv ...string) sandboxtest.Result {
	out, in, errs := tempFile(s.t), null(s.t), tempFile(s.t)
	p, err := s.guest.Exec(sandbox.Command{Argv: argv, Stdio: [3]*os.File{in, out, errs}})
	if err != nil {
		return sandboxtest.Result{Code: -1, Stderr: err.Error()}
	}
	var last sandbox.Change
	for last = range p.Changes() {
	}
	return sandboxtest.Result{Stdout: contents(s.t, out), Stderr: contents(s.t, errs), Code: last.Status.ExitStatus()}
}

func null(t testing.TB) *os.File {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func tempFile(t testing.TB) *os.File {
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func contents(t testing.TB, f *os.File) string {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// attempts lets the victim try things inside.
func (s *visit) attempts(f *sandboxtest.Fixtures, ops ...string) map[string]probe.Attempt {
	s.t.Helper()
	return attemptsIn(s.t, s.run(append([]string{f.Victim, "attempt"}, ops...)...), ops)
}

func attemptsIn(t testing.TB, r sandboxtest.Result, ops []string) map[string]probe.Attempt {
	t.Helper()
	all := map[string]probe.Attempt{}
	lines := bufio.NewScanner(strings.NewReader(r.Stdout))
	for lines.Scan() {
		var a probe.Attempt
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		all[a.Op] = a
	}
	if len(all) != len(ops) {
		t.Fatalf("%d of %d attempts came back: %.2000s%.2000s", len(all), len(ops), r.Stdout, r.Stderr)
	}
	return all
}

// bare lets the victim try things in a network namespace of its own that has
// no route and no filter, and where it may do what it likes.
func bare(t testing.TB, f *sandboxtest.Fixtures, ops ...string) map[string]probe.Attempt {
	t.Helper()
	ops = append([]string{"bring-up"}, ops...)
	cmd := exec.Command(f.Victim, append([]string{"attempt"}, ops...)...)
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: ids(os.Getuid()), GidMappings: ids(os.Getgid())}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return attemptsIn(t, sandboxtest.Result{Stdout: string(out)}, ops)
}

// originalDestination is where a redirected connection was to go
// (SO_ORIGINAL_DST, linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h).
func originalDestination(c net.Conn) string {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err.Error()
	}
	const originalDst = 80
	var at netip.AddrPort
	var got error
	err = raw.Control(func(fd uintptr) {
		if c.LocalAddr().(*net.TCPAddr).IP.To4() != nil {
			var m *unix.IPv6Mreq // as large as a sockaddr_in
			if m, got = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, originalDst); got == nil {
				a := m.Multiaddr
				at = netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), uint16(a[2])<<8|uint16(a[3]))
			}
			return
		}
		var m *unix.IPv6MTUInfo // begins with a sockaddr_in6
		if m, got = unix.GetsockoptIPv6MTUInfo(int(fd), unix.IPPROTO_IPV6, originalDst); got == nil {
			at = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), m.Addr.Port<<8|m.Addr.Port>>8)
		}
	})
	if err := errors.Join(err, got); err != nil {
		return err.Error()
	}
	return at.String()
}
