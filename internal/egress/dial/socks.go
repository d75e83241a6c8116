package dial

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// What SOCKS 5 is made of (RFC 1928; RFC 1929 for the password).
const (
	socksVersion  = 5
	socksNoAuth   = 0
	socksPassword = 2
	socksNone     = 0xff
	socksDial     = 1
	socksIPv4     = 1
	socksName     = 3
	socksIPv6     = 4
	authVersion   = 1
)

// socksReplies are the answers of RFC 1928, section 6, from 1 on.
var socksReplies = []string{
	"general failure", "not allowed by its rules", "network unreachable", "host unreachable", "connection refused", "TTL expired",
	"command not supported", "address type not supported",
}

var errSocks = errors.New("it does not speak SOCKS 5")

// socksConnect has the proxy connect to a name, which it resolves.
func (p *Proxy) socksConnect(conn net.Conn, name string, port uint16) error {
	if err := p.socksGreet(conn); err != nil {
		return err
	}
	request := append([]byte{socksVersion, socksDial, 0, socksName, byte(len(name))}, name...)
	if _, err := conn.Write(binary.BigEndian.AppendUint16(request, port)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	switch code := int(head[1]); {
	case head[0] != socksVersion:
		return errSocks
	case code > 0 && code <= len(socksReplies):
		return fmt.Errorf("it answered %q", socksReplies[code-1])
	case code != 0:
		return fmt.Errorf("it answered with code %d", code)
	}
	return skipAddress(conn, head[3])
}

// skipAddress reads the rest of an answer: from where the proxy has connected.
func skipAddress(conn net.Conn, kind byte) error {
	size := map[byte]int{socksIPv4: 4, socksIPv6: 16}[kind]
	if kind == socksName {
		var n [1]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			return err
		}
		size = int(n[0])
	}
	if size == 0 {
		return errSocks
	}
	_, err := io.ReadFull(conn, make([]byte, size+2))
	return err
}

// socksGreet agrees on how to log in, and does.
func (p *Proxy) socksGreet(conn net.Conn) error {
	methods := []byte{socksVersion, 1, socksNoAuth}
	if p.user != nil {
		methods = []byte{socksVersion, 2, socksNoAuth, socksPassword}
	}
	if _, err := conn.Write(methods); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	switch {
	case answer[0] != socksVersion:
		return errSocks
	case answer[1] == socksNoAuth:
		return nil
	case answer[1] == socksPassword && p.user != nil:
		return p.socksLogin(conn)
	case answer[1] == socksNone:
		return errAuth
	}
	return errSocks
}

func (p *Proxy) socksLogin(conn net.Conn) error {
	user, password := p.credentials()
	if len(user) == 0 || len(user) > 255 || len(password) > 255 {
		return errors.New("its user and password must have 1 to 255 bytes each")
	}
	request := append([]byte{authVersion, byte(len(user))}, user...)
	request = append(append(request, byte(len(password))), password...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != authVersion {
		return errSocks
	}
	if answer[1] != 0 {
		return errAuth
	}
	return nil
}
