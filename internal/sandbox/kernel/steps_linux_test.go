package kernel

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/netlink"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestFailedRuleIsNamed lets the kernel refuse a part of the network: the start
// fails with the name of that part.
func TestFailedRuleIsNamed(t *testing.T) {
	testenv.Need(t, "userns")
	table := netlink.NewTable("t")
	table.Output("o", "filter", netlink.PriorityFilter, true).Rule("lead nowhere", netlink.Redirect(1)) // of no nat chain
	cases := map[string]struct {
		list []netlink.Message
		kind int
		want string
	}{
		"rule":    {table.Messages(), unix.NETLINK_NETFILTER, NetworkStep + "lead nowhere"},
		"route":   {[]netlink.Message{netlink.AddLocalRoute(99, layout.Own4)}, unix.NETLINK_ROUTE, NetworkStep + "make all of IPv4 local"},
		"address": {[]netlink.Message{netlink.AddAddress(99, layout.Own6)}, unix.NETLINK_ROUTE, NetworkStep + "add the address fd62:6177:6e00:1::1"},
		"nothing": {[]netlink.Message{netlink.AddAddress(loIndex, layout.Own4)}, unix.NETLINK_ROUTE, ""}, // the control
	}
	for name, c := range cases {
		p := NewSteps()
		p.Identity(&layout.Plan{UID: layout.Mapping{Inside: os.Getuid(), Outside: os.Getuid()}, GID: layout.Mapping{Inside: os.Getgid(), Outside: os.Getgid()}})
		p.Loopback()
		p.netlink(c.kind, c.list)
		in, err := rawproc.Start(rawproc.Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET, Program: &p.Program})
		if err == nil {
			in.Kill()
		}
		var step *rawproc.StepError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &step) || step.Step != c.want) {
			t.Errorf("%s: got %v, want a failure of %q", name, err, c.want)
		}
		if got := NetworkRemedy(err); c.kind == unix.NETLINK_NETFILTER && !strings.Contains(got, "nft_redir") {
			t.Errorf("%s: remedy of %v: %q", name, err, got)
		}
	}
}

// TestTrials sets networks up with and without IPv6, and one that can't be.
func TestTrials(t *testing.T) {
	testenv.Need(t, "userns")
	if s := probeNetwork(); !s.ok || !s.ipv6 || s.capability().Strength != bawn.Enforced {
		t.Errorf("got %+v", s)
	}
	if err := tryNetwork(layout.Own4); err != nil {
		t.Errorf("without IPv6: %v", err)
	}
	if err := tryNetwork(netip.MustParseAddr("224.0.0.1")); err == nil {
		t.Error("a multicast address of its own: got nil error")
	}
	for err, want := range map[error]string{
		unix.ENOSPC: "user.max_net_namespaces=", unix.EPERM: UsernsRemedy(),
		&rawproc.StepError{Step: "write /proc/self/uid_map", Errno: unix.EPERM}: UsernsRemedy(),
		&rawproc.StepError{Step: NetworkStep + "x", Errno: unix.ENOENT}:         "modprobe",
		&rawproc.StepError{Step: "bind 127.0.0.1:1", Errno: unix.EADDRINUSE}:    "doctor",
	} {
		if got := NetworkRemedy(err); !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
	if c := (netSupport{err: "why", fix: "how"}).capability(); c.Strength != bawn.Unenforced || c.Why != "why" || c.Remedy != "how" {
		t.Errorf("got %+v", c)
	}
	if c := (netSupport{ok: true}).capability(); c.Strength != bawn.Enforced || !strings.Contains(c.How, "IPv4 only") {
		t.Errorf("got %+v", c)
	}
}
