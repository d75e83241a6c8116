//go:build !linux

package dns

import "net"

// tellDestination does nothing: where there are no network namespaces the
// socket is bound to the one address that is asked.
func tellDestination(*net.UDPConn) error { return nil }
