package egress_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// rebindFirst is the address of rebind.test when it is first asked for.
const rebindFirst = "93.184.215.60"

// linkLocal is an address outside that routers do not forward.
const linkLocal = "169.254.7.7"

// serveNames starts dnsmasq and the servers that say what it can't.
func (o *outsider) serveNames() error {
	conf := filepath.Join(o.dir, "dnsmasq.conf")
	if err := os.WriteFile(conf, []byte(dnsmasqConfig(o.dir)), 0o644); err != nil {
		return err
	}
	for _, at := range []string{zoneServer, net.JoinHostPort(openDNS, "53"), net.JoinHostPort(openDNSv6, "53")} {
		if err := o.serveZone(at); err != nil {
			return err
		}
	}
	cmd := exec.Command(world.Sbin("dnsmasq"), "--conf-file="+conf)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return listening(net.JoinHostPort(resolverV4, "53"))
}

// listening waits until a TCP port is open.
func listening(addr string) error {
	var err error
	for range 2000 {
		var c net.Conn
		if c, err = net.DialTimeout("tcp", addr, time.Second); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// serveZone answers questions over UDP and TCP.
func (o *outsider) serveZone(at string) error {
	p, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	var rebound atomic.Bool
	go func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			if a := o.answer(at, buf[:n], &rebound); a != nil {
				_, _ = p.WriteTo(a, from)
			}
		}
	}()
	go accept(l, func(c net.Conn) {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		a := o.answer(at, q, &rebound)
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
	})
	return nil
}

// answer answers one question and notes it.
func (o *outsider) answer(at string, query []byte, rebound *atomic.Bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := strings.TrimSuffix(q.Name.String(), ".")
	o.saw(event{Server: "dns", Local: at, Host: name, Method: q.Type.String()})
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionDesired: h.RecursionDesired, RecursionAvailable: true})
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA:
		for _, a := range zoneAddresses(name, rebound) {
			_ = b.AResource(head, dnsmessage.AResource{A: netip.MustParseAddr(a).As4()})
		}
	case dnsmessage.TypeTXT:
		_ = b.TXTResource(head, dnsmessage.TXTResource{TXT: []string{"answer"}})
	case dnsmessage.TypeCNAME:
		_ = b.CNAMEResource(head, dnsmessage.CNAMEResource{CNAME: q.Name})
	case dnsmessage.TypeMX:
		_ = b.MXResource(head, dnsmessage.MXResource{MX: q.Name})
	case dnsmessage.TypeSRV:
		_ = b.SRVResource(head, dnsmessage.SRVResource{Target: q.Name})
	case dnsmessage.TypeAAAA:
	default:
		_ = b.UnknownResource(head, dnsmessage.UnknownResource{Type: q.Type, Data: []byte("answer")})
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}

// zoneAddresses changes its mind about rebind.test, and gives mixed.test an
// address of each kind.
func zoneAddresses(name string, rebound *atomic.Bool) []string {
	switch {
	case name == "rebind.test" && !rebound.Swap(true):
		return []string{rebindFirst}
	case name == "rebind.test":
		rebound.Store(false)
		return []string{hosts["private.test"]}
	case name == "mixed.test":
		return []string{hosts["private.test"], rebindFirst}
	}
	return []string{"93.184.215.99"}
}
