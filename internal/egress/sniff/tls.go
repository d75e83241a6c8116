package sniff

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// Numbers of TLS (RFC 8446 sections 4 and 5.1, RFC 9849, IANA's registry).
const (
	recordHandshake = 22
	maxRecord       = 1 << 14
	typeClientHello = 1

	extensionServerName = 0
	extensionALPN       = 16
	extensionESNI       = 0xffce // the draft before ECH
	extensionECH        = 0xfe0d
)

// records puts the ClientHello together from its records (RFC 8446 section
// 5.1: it may span several, and nothing else may come between them).
func (s *scanner) records(b []byte) bool {
	if s.at == 0 && len(b) > 1 && b[1] != 3 {
		return s.oddVersion(b)
	}
	for len(b)-s.at >= 5 {
		r := b[s.at:]
		n := int(r[3])<<8 | int(r[4])
		switch {
		case r[0] != recordHandshake || n == 0 || n > maxRecord:
			return s.refuse(TLS, "the ClientHello is not in proper records")
		case r[1] != 3:
			return s.refuse(TLS, fmt.Sprintf("the record has version %d.%d; want one of TLS", r[1], r[2]))
		case s.at+5+n > s.limit.Hello:
			return s.refuse(TLS, "the ClientHello is too long")
		case len(r) < 5+n:
			return false
		}
		s.handshake = append(s.handshake, r[5:5+n]...)
		s.at += 5 + n
		if s.message() {
			return true
		}
	}
	return len(b) >= s.limit.Hello && s.refuse(TLS, "the ClientHello is too long")
}

// oddVersion tells a record whose version no TLS has, but which some servers
// read all the same, from another protocol (a length of 22, for example).
func (s *scanner) oddVersion(b []byte) bool {
	switch {
	case len(b) < 6:
		return false
	case b[5] != typeClientHello:
		return s.unknown()
	}
	return s.refuse(TLS, fmt.Sprintf("the record has version %d.%d; want one of TLS", b[1], b[2]))
}

// message reads the ClientHello once it is complete.
func (s *scanner) message() bool {
	m := s.handshake
	if m[0] != typeClientHello {
		return s.refuse(TLS, fmt.Sprintf("the first message has type %d; want a ClientHello", m[0]))
	}
	if len(m) < 4 {
		return false
	}
	n := 4 + int(m[1])<<16 + int(m[2])<<8 + int(m[3])
	switch {
	case n > s.limit.Hello:
		return s.refuse(TLS, "the ClientHello is too long")
	case len(m) < n:
		return false
	case len(m) > n:
		return s.refuse(TLS, "another message follows the ClientHello in its record")
	}
	if err := s.hello.read(m[4:]); err != nil {
		return s.refuse(TLS, err.Error())
	}
	if s.hello.Host == "" {
		s.hello.Problem = NoServerName
	}
	return true
}

var errMalformed = errors.New("the ClientHello is malformed")

// read reads the body of a ClientHello (RFC 8446 section 4.1.2).
func (h *Hello) read(b []byte) error {
	s := cryptobyte.String(b)
	var version uint16
	var random []byte
	var session, suites, compressions cryptobyte.String
	if !s.ReadUint16(&version) || !s.ReadBytes(&random, 32) || !s.ReadUint8LengthPrefixed(&session) ||
		!s.ReadUint16LengthPrefixed(&suites) || len(suites)%2 != 0 || !s.ReadUint8LengthPrefixed(&compressions) {
		return errMalformed
	}
	if version < 0x0301 {
		return fmt.Errorf("the ClientHello has version %#04x; want TLS", version)
	}
	if s.Empty() { // TLS 1.2 may do without extensions
		return nil
	}
	var extensions cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&extensions) || !s.Empty() {
		return errMalformed
	}
	return h.extensions(extensions)
}

func (h *Hello) extensions(s cryptobyte.String) error {
	var seen []uint16
	for !s.Empty() {
		var id uint16
		var data cryptobyte.String
		if !s.ReadUint16(&id) || !s.ReadUint16LengthPrefixed(&data) {
			return errMalformed
		}
		seen = append(seen, id)
		if err := h.extension(id, data); err != nil {
			return err
		}
	}
	slices.Sort(seen)
	if len(slices.Compact(slices.Clone(seen))) != len(seen) {
		return errors.New("the ClientHello has an extension twice")
	}
	return nil
}

func (h *Hello) extension(id uint16, data cryptobyte.String) (err error) {
	switch id {
	case extensionServerName:
		h.Host, err = serverName(data)
	case extensionALPN:
		h.ALPN, err = protocols(data)
	case extensionECH:
		var kind uint8
		h.ECH = true
		if !data.ReadUint8(&kind) || kind != 0 { // 1, inner, is for the encrypted part only
			return errMalformed
		}
	case extensionESNI:
		h.ECH = true
	}
	return err
}

// serverName reads the one name (RFC 6066 section 3).
func serverName(s cryptobyte.String) (string, error) {
	var list, name cryptobyte.String
	var kind uint8
	if !s.ReadUint16LengthPrefixed(&list) || !s.Empty() || !list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&name) {
		return "", errMalformed
	}
	if !list.Empty() || kind != 0 {
		return "", errors.New("the ClientHello names more than one server, or not by host")
	}
	host, _, err := hostname.NormalASCII(string(name))
	if err != nil {
		return "", fmt.Errorf("the server name: %v", err)
	}
	if _, err := netip.ParseAddr(host); err == nil || strings.HasSuffix(string(name), ".") {
		return "", fmt.Errorf("the server name %q is an address, or ends in a dot", host)
	}
	return host, nil
}

// protocols reads the list of ALPN (RFC 7301 section 3.1).
func protocols(s cryptobyte.String) ([]string, error) {
	var list cryptobyte.String
	if !s.ReadUint16LengthPrefixed(&list) || !s.Empty() || list.Empty() {
		return nil, errMalformed
	}
	var out []string
	for !list.Empty() {
		var name cryptobyte.String
		if !list.ReadUint8LengthPrefixed(&name) || name.Empty() {
			return nil, errMalformed
		}
		out = append(out, string(name))
	}
	return out, nil
}
