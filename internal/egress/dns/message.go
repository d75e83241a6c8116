package dns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/dns/dnsmessage"
)

// Sizes in bytes.
const (
	headerSize  = 12
	maxQuery    = 4096 // longer messages are not read
	maxResponse = 512  // what every client takes over UDP (RFC 1035, section 4.2.1)
	packetSize  = 1232 // that we say we take over UDP: it goes through every network in one piece
	maxText     = 160  // of an Extended DNS Error; with it the longest response stays below maxResponse
)

const (
	typeOPT        = dnsmessage.TypeOPT
	optionEDE      = 15 // RFC 8914
	edeOther       = 0
	edeProhibited  = 18
	badVersion     = dnsmessage.RCode(16) // RFC 6891, section 9
	notImplemented = dnsmessage.RCodeNotImplemented
)

// A query is the question of a message, as far as it could be read.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	asked    bool // question is there
	edns     bool
	dnssec   bool // the DO bit, copied back (RFC 3225)
	version  byte
}

var errFormat = errors.New("malformed")

// parse reads a message that has a header. The part that it could read before
// an error is in q.
func parse(msg []byte) (q query, err error) {
	var p dnsmessage.Parser
	if q.header, err = p.Start(msg); err != nil {
		return q, err
	}
	if q.header.Response || q.header.OpCode != 0 {
		return q, nil
	}
	count := func(i int) uint16 { return binary.BigEndian.Uint16(msg[4+2*i:]) }
	if count(0) != 1 || count(1) != 0 || count(2) != 0 || pointed(msg) {
		return q, errFormat
	}
	if q.question, err = p.Question(); err != nil {
		return q, err
	}
	q.asked = true
	return q, q.additionals(&p)
}

// pointed reports whether the first name of a message leads elsewhere, which
// could only be into the header: a short question that grows when it is sent
// back.
func pointed(msg []byte) bool {
	for i := headerSize; i < len(msg) && msg[i] != 0; i += 1 + int(msg[i]) {
		if msg[i] > 63 {
			return true
		}
	}
	return false
}

// additionals reads the records after the question, of which only OPT means
// anything here. There are answers and authorities before them to skip, none
// of each.
func (q *query) additionals(p *dnsmessage.Parser) error {
	for _, skip := range []func() error{p.SkipAllQuestions, p.SkipAllAnswers, p.SkipAllAuthorities} {
		if err := skip(); err != nil {
			return err
		}
	}
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return nil
		}
		if err == nil && h.Type == typeOPT {
			err = q.opt(&h)
		}
		if err == nil {
			err = p.SkipAdditional()
		}
		if err != nil {
			return err
		}
	}
}

// opt reads the fixed part of an OPT record: its options (cookies, client
// subnets, padding) are for resolvers that ask others.
func (q *query) opt(h *dnsmessage.ResourceHeader) error {
	if q.edns || h.Name.Length != 1 { // RFC 6891, section 6.1.1
		return errFormat
	}
	q.edns = true
	q.version = byte(h.TTL >> 16)
	q.dnssec = h.DNSSECAllowed()
	return nil
}

// respond appends the response to a message to out and returns it, or returns
// nil for what gets none: fragments, and responses, since answering those
// makes loops. No response is longer than 512 bytes, so none is ever cut,
// whatever size the client says it takes: a smaller one counts as 512 (RFC
// 6891, section 6.2.3).
func (s *Server) respond(out, msg []byte) []byte {
	if len(msg) < headerSize || msg[2]&0x80 != 0 {
		return nil
	}
	q, err := parse(msg)
	var a answer
	switch {
	case q.header.OpCode != 0:
		a = answer{code: notImplemented}
	case err != nil:
		a = answer{code: dnsmessage.RCodeFormatError}
	case q.version != 0:
		a = answer{code: badVersion}
	default:
		a = s.resolve(&q.question)
	}
	r, err := q.pack(out, &a)
	if err != nil || len(r)-len(out) > maxResponse {
		return nil
	}
	return r
}

// pack appends the response with the answer a to out.
func (q *query) pack(out []byte, a *answer) ([]byte, error) {
	b := dnsmessage.NewBuilder(out, dnsmessage.Header{
		ID:                 q.header.ID,
		Response:           true,
		OpCode:             q.header.OpCode,
		RecursionDesired:   q.header.RecursionDesired,
		RecursionAvailable: true, // some resolvers take an answer without it for a referral to nowhere
		CheckingDisabled:   q.header.CheckingDisabled,
		RCode:              a.code & 0xf,
	})
	b.EnableCompression()
	if q.asked {
		if err := errors.Join(b.StartQuestions(), b.Question(q.question)); err != nil {
			return nil, err
		}
		if err := errors.Join(b.StartAnswers(), a.pack(&b, q.question.Name)); err != nil {
			return nil, err
		}
	}
	if q.edns {
		if err := errors.Join(b.StartAdditionals(), q.packOPT(&b, a)); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// pack adds the answer's record, if it has one. The name is spelled as it was
// asked: clients that mix upper and lower case compare it.
func (a *answer) pack(b *dnsmessage.Builder, asked dnsmessage.Name) error {
	h := dnsmessage.ResourceHeader{Name: asked, Class: dnsmessage.ClassINET, TTL: TTL}
	switch {
	case a.name != "":
		name, err := dnsmessage.NewName(a.name + ".")
		if err != nil {
			return err
		}
		return b.PTRResource(h, dnsmessage.PTRResource{PTR: name})
	case a.addr.Is4():
		return b.AResource(h, dnsmessage.AResource{A: a.addr.As4()})
	case a.addr != netip.Addr{}:
		return b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.addr.As16()})
	}
	return nil
}

// packOPT adds the OPT record, with the reason of a refusal as an Extended
// DNS Error.
func (q *query) packOPT(b *dnsmessage.Builder, a *answer) error {
	var h dnsmessage.ResourceHeader
	if err := h.SetEDNS0(packetSize, a.code, q.dnssec); err != nil {
		return err
	}
	var r dnsmessage.OPTResource
	if a.reason != "" {
		r.Options = []dnsmessage.Option{{Code: optionEDE, Data: extended(a)}}
	}
	return b.OPTResource(h, r)
}

// extended is the content of an Extended DNS Error: a code and a text (RFC
// 8914, section 2).
func extended(a *answer) []byte {
	code := uint16(edeProhibited)
	if a.code == dnsmessage.RCodeServerFailure {
		code = edeOther
	}
	return append(binary.BigEndian.AppendUint16(nil, code), plain(a.reason)...)
}

// plain makes a text fit: valid, on one line, and not too long.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
