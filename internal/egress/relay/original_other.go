//go:build !linux

package relay

import (
	"errors"
	"net"
	"net/netip"
)

// original needs the redirection of a Linux network namespace.
func original(*net.TCPConn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("there is no redirection on this system")
}
