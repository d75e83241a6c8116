//go:build !linux

package sockowner

import "net/netip"

// Find finds nothing: there is no /proc.
func Find(int, netip.AddrPort) (Program, bool) { return Program{}, false }
