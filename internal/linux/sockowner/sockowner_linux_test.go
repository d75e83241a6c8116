package sockowner

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestFind finds the program behind a connection, and the command that it comes
// from; and nothing for an address that no socket has, or below another process.
func TestFind(t *testing.T) {
	testenv.Need(t, "python3")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/`+strings.Split(l.Addr().String(), ":")[1]+`; python3 -c 'import sys; sys.stdin.read()' 3>&- & wait; :`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from := netip.MustParseAddrPort(c.RemoteAddr().String())
	testenv.Until(t, "bash itself", func() bool { // its child has the socket too until it is python3
		p, ok := Find(os.Getpid(), from)
		return ok && p.Name == "bash" && p.From == ""
	})
	if p, ok := Find(os.Getpid(), netip.AddrPortFrom(from.Addr(), 1)); ok {
		t.Errorf("an address that no socket has is that of %+v", p)
	}
	if p, ok := Find(cmd.Process.Pid, from); ok {
		t.Errorf("below bash itself is %+v", p)
	}
	if _, ok := Find(1, from); ok {
		t.Error("all of the machine was looked through")
	}
}
