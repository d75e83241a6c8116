package dial

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/egress/dns"
	"github.com/bawn-dev/bawn/internal/egress/names"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// blackHole listens at 127.0.0.5 and has no room for another connection, so
// that nothing answers who knocks.
func blackHole(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 5}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.5"), uint16(sa.(*unix.SockaddrInet4).Port))
	for range 10 {
		c, err := net.DialTimeout("tcp", at.String(), 500*time.Millisecond)
		if err != nil {
			return at
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("everybody is let in")
	return at
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestSilentAddressFirst(t *testing.T) {
	hole := blackHole(t)
	s := listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), hole.Port()).String())
	allow := only("127.0.0.1", "127.0.0.5")
	before := descriptors(t)
	var asked atomic.Int32
	begin := time.Now()
	greeted(t, &Dialer{Lookup: answers(&asked, []string{"127.0.0.5", "127.0.0.1"}), Allow: allow}, "x.example", s.at.Port(), "127.0.0.1")
	if took := time.Since(begin); took < stagger {
		t.Errorf("the second address was tried after %v, want %v", took, stagger)
	}

	for _, hosts := range [][]string{{"127.0.0.5"}, {"127.0.0.5", "::ffff:127.0.0.5", "127.0.0.6"}} {
		d := &Dialer{Lookup: answers(&asked, hosts), Allow: only("127.0.0.5", "127.0.0.6"), Timeout: 400 * time.Millisecond}
		begin = time.Now()
		c, _, err := d.Dial(t.Context(), "x.example", hole.Port())
		if !timedOut(err) && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v: %v, %v", hosts, c, err)
		}
		if took := time.Since(begin); took < d.Timeout || took > d.Timeout+20*time.Second {
			t.Errorf("%v: gave up after %v, want %v", hosts, took, d.Timeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		begin, d.Timeout = time.Now(), 0
		if _, _, err := d.Dial(ctx, "x.example", hole.Port()); err == nil || time.Since(begin) > 20*time.Second {
			t.Errorf("%v cancelled: %v after %v", hosts, err, time.Since(begin))
		}
	}
	testenv.Until(t, "the end of the descriptors", func() bool { return descriptors(t) <= before })
}

const inside = "BAWN_TEST_DIAL_INSIDE"

// TestInNamespace runs what needs a machine of its own: a public address, a
// resolver, /etc/hosts.
func TestInNamespace(t *testing.T) {
	testenv.Need(t, "userns")
	if os.Getenv(inside) != "" {
		t.Run("public", publicInside)
		t.Run("resolver", resolverInside)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestInNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestInNamespace")) {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// publicInside gives the machine a public address: a service there is the
// machine's own, and not to be reached by it. Control: the same address when
// nobody says whose it is.
func publicInside(t *testing.T) {
	configure(t, "lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil })
	configure(t, "lo:1", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{8, 8, 8, 8}) })
	s := listen(t, "8.8.8.8:0")
	var asked atomic.Int32
	d := &Dialer{Lookup: answers(&asked, []string{"8.8.8.8"})}
	refused(t, d, "x.example", s.at.Port(), own)
	refused(t, d, "8.8.8.8", s.at.Port(), own)
	if n := s.count.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
	d.Own = func() ([]netip.Addr, error) { return nil, nil }
	greeted(t, d, "x.example", s.at.Port(), "8.8.8.8")
	greeted(t, d, "8.8.8.8", s.at.Port(), "8.8.8.8")
}

// resolverInside: the host's resolver is asked for the name itself, never for
// one below a domain of its search list; /etc/hosts counts.
func resolverInside(t *testing.T) {
	for path, text := range map[string]string{
		"/etc/resolv.conf": "nameserver 127.0.0.1\nsearch corp.example\noptions timeout:1 attempts:1 ndots:5\n",
		"/etc/hosts":       "127.0.0.1 localhost\n10.9.8.7 listed.example\n",
	} {
		f := t.TempDir() + "/f"
		if err := errors.Join(os.WriteFile(f, []byte(text), 0o644), unix.Mount(f, path, "", unix.MS_BIND, "")); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	resolver := dns.Server{Names: names.New(), Permit: func(name string) (bool, string) { return strings.HasSuffix(name, ".corp.example"), "" }}
	go func() { _ = resolver.ServePacket(t.Context(), pc) }()

	if addrs, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", "www.example"); err != nil || !resolver.Names.Owns(addrs[0]) {
		t.Errorf("control: the search list leads to %v, %v", addrs, err)
	}
	for _, host := range []string{"www.example", "db.internal"} {
		if addrs, err := hostLookup(t.Context(), host); err == nil {
			t.Errorf("%s leads to %v", host, addrs)
		}
	}
	for _, host := range []string{"www.corp.example", "wiki"} {
		if addrs, err := hostLookup(t.Context(), host); err != nil || !resolver.Names.Owns(addrs[0]) {
			t.Errorf("%s leads to %v, %v", host, addrs, err)
		}
	}
	refused(t, &Dialer{}, "listed.example", 80, "private")
}

// configure changes an interface of a new namespace (netdevice(7)).
func configure(t *testing.T, name string, request uint, fill func(*unix.Ifreq) error) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err == nil {
		err = fill(r)
	}
	if err == nil {
		err = unix.IoctlIfreq(fd, request, r)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
