// Package dns is the resolver of one session. It queries no other server. A
// name that is permitted, or that a human may still be asked about, gets an
// address of the session's own table; every other query is refused here. So
// nothing leaves by way of questions, and the address that a guest dials says
// which name it meant.
package dns

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/bawn-dev/bawn/internal/egress/names"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// TTL is the time in seconds that answers may be kept. An address belongs to
// its name until the session ends, at an unknown time, so the TTL is short. A
// cache that outlives the session soon forgets it, and a busy client asks once
// a minute. Refusals carry no SOA record and must not be kept (RFC 2308,
// section 5), because a human may permit the name a moment later.
const TTL = 60

// A Server answers the questions of one session. The zero Server refuses
// every name. It may be used concurrently.
type Server struct {
	// Names gives the addresses.
	Names *names.Table

	// Permit reports whether a name in normal form (hostname.NormalASCII) gets an
	// address, and if not, why: a short text that the guest may read. It is
	// called for one query at a time and must not block. A name about which a
	// human would be asked is permitted here and held when it is dialled.
	Permit func(name string) (ok bool, reason string)
}

// An answer is what becomes of one question: an address, a name, or neither.
type answer struct {
	code   dnsmessage.RCode
	addr   netip.Addr
	name   string // of a PTR record
	reason string // for an Extended DNS Error
}

var (
	noData   = answer{code: dnsmessage.RCodeSuccess}
	notOurs  = answer{code: dnsmessage.RCodeRefused, reason: "only plain questions about names are answered"}
	noSuch   = answer{code: dnsmessage.RCodeNameError}
	loopback = map[dnsmessage.Type]netip.Addr{
		dnsmessage.TypeA:    netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		dnsmessage.TypeAAAA: netip.IPv6Loopback(),
	}
)

// resolve answers one question.
func (s *Server) resolve(q *dnsmessage.Question) answer {
	if q.Class != dnsmessage.ClassINET || meta(q.Type) {
		return notOurs
	}
	if q.Type == dnsmessage.TypePTR && under(q.Name, "arpa.") {
		return s.reverse(q.Name)
	}
	name, class, err := hostname.NormalASCII(q.Name.String())
	if err != nil {
		return refused(err.Error())
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return refused("an address is not a name")
	}
	if class == hostname.Loopback {
		return answer{addr: loopback[q.Type]}
	}
	return s.lookup(name, q.Type)
}

// lookup answers for a name in normal form that is neither an address nor the
// guest's own localhost (RFC 6761, section 6.3).
func (s *Server) lookup(name string, t dnsmessage.Type) answer {
	if s.Permit == nil || s.Names == nil {
		return refused("nothing is permitted")
	}
	if ok, reason := s.Permit(name); !ok {
		return refused(reason)
	}
	if t != dnsmessage.TypeA && t != dnsmessage.TypeAAAA {
		return noData
	}
	addr, err := s.Names.Address(name, t == dnsmessage.TypeAAAA)
	if err != nil {
		return answer{code: dnsmessage.RCodeServerFailure, reason: err.Error()}
	}
	return answer{addr: addr}
}

func refused(reason string) answer {
	if reason == "" {
		reason = "not permitted in this session"
	}
	return answer{code: dnsmessage.RCodeNameError, reason: reason}
}

// meta reports whether t asks for something other than records of one type
// (RFC 6895, section 3.1): a transfer, ANY, a key negotiation.
func meta(t dnsmessage.Type) bool { return t == typeOPT || t >= 128 && t <= 255 }

// reverse tells the names of the session's own addresses; about others there
// is nothing to say.
func (s *Server) reverse(n dnsmessage.Name) answer {
	addr, err := reversed(strings.ToLower(n.String()))
	switch {
	case err != nil:
		return noSuch
	case addr.IsLoopback():
		return answer{name: "localhost"}
	case s.Names == nil:
		return noSuch
	}
	if name, ok := s.Names.Name(addr); ok {
		return answer{name: name}
	}
	return noSuch
}

// under reports whether n is top or lies below it.
func under(n dnsmessage.Name, top string) bool {
	name := strings.ToLower(n.String())
	return name == top || strings.HasSuffix(name, "."+top)
}

var errReverse = errors.New("no address")

// reversed reads an address from a lower-case name below in-addr.arpa (RFC
// 1035, section 3.5) or ip6.arpa (RFC 3596, section 2.5).
func reversed(name string) (netip.Addr, error) {
	if digits, ok := strings.CutSuffix(name, ".in-addr.arpa."); ok {
		f := strings.Split(digits, ".")
		if len(f) != 4 {
			return netip.Addr{}, errReverse
		}
		return netip.ParseAddr(f[3] + "." + f[2] + "." + f[1] + "." + f[0])
	}
	digits, ok := strings.CutSuffix(name, ".ip6.arpa.")
	if !ok || len(digits) != 63 {
		return netip.Addr{}, errReverse
	}
	text := make([]byte, 0, 39)
	for i := 62; i >= 0; i -= 2 {
		if len(text)%5 == 4 {
			text = append(text, ':')
		}
		text = append(text, digits[i])
	}
	if strings.Count(digits, ".") != 31 {
		return netip.Addr{}, errReverse
	}
	return netip.ParseAddr(string(text))
}
