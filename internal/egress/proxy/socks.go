package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/bawn-dev/bawn/internal/egress/refuse"
	"github.com/bawn-dev/bawn/internal/hostname"
)

// Numbers of SOCKS 5 (RFC 1928) and of its user names (RFC 1929).
const (
	socksVersion = 5
	loginVersion = 1

	methodNone  = 0
	methodLogin = 2

	commandConnect = 1

	typeIPv4   = 1
	typeDomain = 3
	typeIPv6   = 4
)

// Replies; the bound address is never told.
const (
	tail          = "\x00\x01\x00\x00\x00\x00\x00\x00"
	succeeded     = "\x05\x00" + tail
	failed        = "\x05\x01" + tail
	notAllowed    = "\x05\x02" + tail
	badCommand    = "\x05\x07" + tail
	badType       = "\x05\x08" + tail
	noMethod      = "\x05\xff"
	loginAccepted = "\x01\x00"
)

// A socksError is answered with a reply.
type socksError struct {
	reply string
	error
}

// socks reads a client of SOCKS 5.
func (in *input) socks() (*Client, error) {
	c := &Client{Request: Request{Kind: SOCKS5}, conn: in.conn}
	err := in.greeting()
	if err == nil {
		c.Host, c.Port, err = in.request()
	}
	if err == nil {
		c.rest = in.buf
		return c, nil
	}
	var bad socksError
	if !errors.As(err, &bad) {
		return nil, errors.Join(err, in.conn.Close())
	}
	return nil, errors.Join(bad.error, say(in.conn, bad.reply), refuse.Leave(in.conn))
}

// greeting agrees on no authentication, or takes any name and password: the
// guest is known by its listener.
func (in *input) greeting() error {
	b, err := in.take(2)
	if err != nil {
		return err
	}
	methods, err := in.take(int(b[1]))
	switch {
	case err != nil:
		return err
	case bytes.IndexByte(methods, methodNone) >= 0:
		return say(in.conn, "\x05\x00")
	case bytes.IndexByte(methods, methodLogin) >= 0:
		return in.login()
	}
	return socksError{noMethod, errors.New("the client offers no authentication that is known")}
}

func (in *input) login() error {
	if err := say(in.conn, "\x05\x02"); err != nil {
		return err
	}
	b, err := in.take(2)
	if err != nil {
		return err
	}
	if b[0] != loginVersion {
		return socksError{"\x01\x01", fmt.Errorf("the login has version %d; want %d", b[0], loginVersion)}
	}
	if _, err := in.take(int(b[1])); err != nil {
		return err
	}
	if b, err = in.take(1); err != nil {
		return err
	}
	if _, err := in.take(int(b[0])); err != nil {
		return err
	}
	return say(in.conn, loginAccepted)
}

// request reads the command and its address.
func (in *input) request() (host string, port uint16, err error) {
	b, err := in.take(4)
	if err != nil {
		return "", 0, err
	}
	version, command, reserved, kind := b[0], b[1], b[2], b[3]
	name, err := in.address(kind)
	if err != nil {
		return "", 0, err
	}
	if b, err = in.take(2); err != nil {
		return "", 0, err
	}
	port = binary.BigEndian.Uint16(b)
	switch {
	case version != socksVersion || reserved != 0:
		return "", 0, socksError{failed, errors.New("the request is malformed")}
	case command != commandConnect:
		return "", 0, socksError{badCommand, fmt.Errorf("the command is %d; want CONNECT: there is no BIND and no UDP", command)}
	case port == 0:
		return "", 0, socksError{failed, errors.New("the port is 0")}
	}
	if host, _, err = hostname.NormalASCII(name); err != nil {
		return "", 0, socksError{notAllowed, err}
	}
	return host, port, nil
}

func (in *input) address(kind byte) (string, error) {
	size := map[byte]int{typeIPv4: 4, typeIPv6: 16}[kind]
	switch {
	case kind == typeDomain:
		n, err := in.take(1)
		if err != nil {
			return "", err
		}
		b, err := in.take(int(n[0]))
		return string(b), err
	case size == 0:
		return "", socksError{badType, fmt.Errorf("the type of the address is %d; want 1, 3 or 4", kind)}
	}
	b, err := in.take(size)
	if err != nil {
		return "", err
	}
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap().String(), nil
}
