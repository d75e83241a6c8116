package kernel

import (
	"errors"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A netSupport says whether guests here can have a network by name.
type netSupport struct {
	ok   bool
	ipv6 bool   // of their own, too
	err  string // why not
	fix  string // and what to do about it
}

// probeNetwork sets such a network up and lets it go. Where it can't be had
// with IPv6, it is tried without.
func probeNetwork() netSupport {
	first := tryNetwork(layout.Own4, layout.Own6)
	if first == nil {
		return netSupport{ok: true, ipv6: true}
	}
	err := tryNetwork(layout.Own4)
	if err == nil {
		return netSupport{ok: true}
	}
	return netSupport{err: err.Error(), fix: NetworkRemedy(err)}
}

// tryNetwork does in a namespace of its own what a start does.
func tryNetwork(own ...netip.Addr) error {
	c := NewSteps()
	uid, gid := os.Geteuid(), os.Getegid()
	c.Identity(&layout.Plan{UID: layout.Mapping{Inside: uid, Outside: uid}, GID: layout.Mapping{Inside: gid, Outside: gid}})
	c.Loopback()
	c.Network(&layout.Network{Listen: layout.PortListen, DNS: layout.PortDNS, Proxy: layout.PortProxy, HostPorts: []uint16{1}, Own: own})
	in, err := rawproc.Start(rawproc.Config{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET, Program: &c.Program})
	if err == nil {
		in.Kill()
	}
	return err
}

// NetworkRemedy says what to do where the network can't be set up.
func NetworkRemedy(err error) string {
	var step *rawproc.StepError
	switch {
	case !errors.As(err, &step):
		return NamespaceRemedy(err, "net")
	case strings.Contains(step.Step, "_map"):
		return UsernsRemedy()
	case strings.HasPrefix(step.Step, NetworkStep):
		return "the kernel lacks a part of nftables; load it: sudo modprobe -a nf_tables nft_chain_nat nft_redir nft_reject_inet nft_ct (CONFIG_NF_TABLES_INET, CONFIG_NFT_REDIR, CONFIG_NFT_REJECT_INET)"
	}
	return "\"bawn doctor\" shows what this machine can enforce"
}

// capability describes network "allowlist".
func (s netSupport) capability() bawn.Capability {
	c := bawn.Capability{Attribute: sandbox.NetAllow, Strength: bawn.Enforced, How: "network namespace without devices; nftables leads TCP and DNS to the relay and refuses the rest"}
	switch {
	case !s.ok:
		return bawn.Capability{Attribute: sandbox.NetAllow, Why: s.err, Remedy: s.fix}
	case !s.ipv6:
		c.How += "; guests have IPv4 only"
	}
	return c
}
