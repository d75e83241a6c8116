package native

import (
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// withDevices runs a script under a rung, in a session with some devices.
func withDevices(t *testing.T, p sandbox.Provider, script string, names ...string) string {
	t.Helper()
	req := request(workspace(t))
	req.Session.Isolation.Devices = names
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := execute(t, p, plan, script)
	return strings.TrimSpace(out)
}

// TestDeviceByName: a device is there where it was asked for and is not there,
// or can't be opened, where it was not. It is one without a use to a guest.
func TestDeviceByName(t *testing.T) {
	testenv.Need(t, "tun", "landlock", "notify")
	const name = "net/tun"
	look := `stat -c '%F %t:%T' /dev/net/tun 2>&1; (exec 3<>/dev/net/tun) 2>/dev/null && echo open; (exec 3<>/dev/null) && echo null`
	with := "character special file a:c8"
	if _, err := os.OpenFile("/dev/"+name, os.O_RDWR, 0); err == nil { // who may open it
		with += "\nopen"
	}
	if got := withDevices(t, New(""), look, name); got != with+"\nnull" {
		t.Errorf("native, asked for: %q", got)
	}
	if got := withDevices(t, New(""), look); strings.Contains(got, "special") || strings.Contains(got, "open") || !strings.HasSuffix(got, "null") {
		t.Errorf("native, control: %q", got)
	}
	if got := withDevices(t, NewLandlock(""), look, name); got != with+"\nnull" {
		t.Errorf("landlock, asked for: %q", got)
	}
	if got := withDevices(t, NewLandlock(""), look); got != "character special file a:c8\nnull" {
		t.Errorf("landlock, control: %q", got)
	}
}

// TestGuestReadsNoDisk: who may read a disk reads every file that is hidden. The
// devices are opened and not read; as a control the test opens them itself.
func TestGuestReadsNoDisk(t *testing.T) {
	testenv.Need(t, "root", "landlock", "notify")
	var here []string
	for _, d := range []string{"/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/kmsg", "/dev/fuse", "/dev/net/tun"} {
		if f, err := os.Open(d); err == nil {
			here = append(here, d)
			f.Close()
		}
	}
	attack := `for d in ` + strings.Join(here, " ") + `; do (exec 3<"$d") 2>/dev/null && echo "$d"; done; (exec 3</dev/null) && echo done`
	for _, p := range []sandbox.Provider{New(""), NewLandlock("")} {
		if out := withDevices(t, p, attack); out != "done" || len(here) == 0 {
			t.Errorf("%s: the guest opens %q; outside %q can be", p.Name(), out, here)
		}
	}
}

// TestGuestOpensNoTerminalOfTheHost: what is typed at the user's terminals, and
// what they show, is not a guest's. The control opens the same one outside.
func TestGuestOpensNoTerminalOfTheHost(t *testing.T) {
	testenv.Need(t, "landlock", "notify")
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if f, err := os.OpenFile(slave.Name(), os.O_RDWR, 0); err != nil {
		t.Fatalf("control: %v", err)
	} else {
		f.Close()
	}
	attack := strings.ReplaceAll(`(exec 3<>T) 2>/dev/null && echo both; (exec 3<T) 2>/dev/null && echo read; (exec 3>T) 2>/dev/null && echo write; echo done`, "T", slave.Name())
	for _, p := range []sandbox.Provider{New(""), NewLandlock("")} {
		if out := withDevices(t, p, attack); out != "done" {
			t.Errorf("%s: the guest opens %s: %q", p.Name(), slave.Name(), out)
		}
	}
}
