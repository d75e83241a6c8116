package dns

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestAnswersFromTheAddressAsked: a guest's resolv.conf may hold any address;
// a connected socket, as resolvers use, takes answers from that one only.
// Control: a socket that does not know where a datagram arrived.
func TestAnswersFromTheAddressAsked(t *testing.T) {
	for _, tt := range []struct {
		network string
		to      netip.Addr
	}{
		{"udp4", netip.MustParseAddr("127.0.0.2")},
		{"udp", netip.MustParseAddr("127.0.0.2")}, // both families
		{"udp6", netip.IPv6Loopback()},
	} {
		for _, control := range []bool{false, true} {
			pc, err := net.ListenPacket(tt.network, ":0")
			if err != nil {
				t.Fatal(err)
			}
			served := pc
			if control {
				served = struct{ net.PacketConn }{pc}
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = newServer("open.example").ServePacket(ctx, served) }()
			port := pc.LocalAddr().(*net.UDPAddr).AddrPort().Port()
			c, err := net.Dial("udp", netip.AddrPortFrom(tt.to, port).String())
			if err != nil {
				t.Fatal(err)
			}
			got := exchange(t, c, map[bool]int{false: 200, true: 3}[control])
			if want := !control || tt.to.Is6(); strings.HasPrefix(got, "Success A ") != want {
				t.Errorf("%s asked at %s, control %v: %s", tt.network, tt.to, control, got)
			}
			cancel()
			c.Close()
			pc.Close()
		}
	}
}

const inside = "BAWN_TEST_DNS_INSIDE"

// TestGetent lets the C library ask, in namespaces where /etc/resolv.conf
// names our server at port 53.
func TestGetent(t *testing.T) {
	testenv.Need(t, "userns", "getent")
	if os.Getenv(inside) != "" {
		getentInside(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestGetent$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestGetent")) {
		t.Fatalf("%v:\n%s", err, out)
	}
}

func getentInside(t *testing.T) {
	configure(t, "lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP); return nil })
	files := map[string]string{
		"/etc/resolv.conf":   "nameserver 127.0.0.53\noptions timeout:2 attempts:1 edns0\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
	}
	for path, text := range files {
		f := t.TempDir() + "/f"
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(f, path, "", unix.MS_BIND, ""); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	pc, err := net.ListenPacket("udp", "0.0.0.0:53")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	s := newServer("open.example")
	go func() { _ = s.ServePacket(t.Context(), pc) }()
	v4, _ := s.Names.Address("open.example", false)
	v6, _ := s.Names.Address("open.example", true)
	getent := func(db, key, want string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "getent", db, key).CombinedOutput()
		if (err == nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("getent %s %s: %v, %q, want %q", db, key, err, out, want)
		}
	}
	getent("ahosts", "open.example", v4.String())
	getent("ahosts", "Open.Example.", v6.String())
	getent("hosts", v4.String(), "open.example")
	getent("hosts", v6.String(), "open.example")
	getent("ahosts", "closed.example", "")
	getent("hosts", "8.8.8.8", "")

	// Who asks for one family with AI_ADDRCONFIG (getaddrinfo(3)) gets nothing
	// where the machine has loopback addresses only.
	getent("ahostsv4", "open.example", "")
	configure(t, "lo:1", unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{192, 0, 0, 8}) })
	getent("ahostsv4", "open.example", v4.String())
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
