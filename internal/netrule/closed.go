package netrule

import "net/netip"

// Closed reports whether the port of a host is closed to all but entries that
// are no wider than what closes it. Everything else is denied without a
// question.
func (r *Rules) Closed(name string, port uint16) bool {
	if r == nil {
		return false
	}
	_, closed := first(r.closed.of(name), func(c Host) bool { return c.Match(name, port) })
	return closed
}

// counts reports whether an entry is no wider than any that closes the port of
// the host.
func (r *Rules) counts(entry Host, name string, port uint16) bool {
	_, wider := first(r.closed.of(name), func(c Host) bool { return c.Match(name, port) && !c.CoversName(entry) })
	return !wider
}

// Host returns the most exact Hosts entry that counts for the port of a host
// in normal form.
func (r *Rules) Host(name string, port uint16) (Host, bool) {
	if r == nil || r.Hosts == nil {
		return Host{}, false
	}
	return first(r.Hosts.index.of(name), func(e Host) bool { return e.Match(name, port) && r.counts(e, name, port) })
}

// HostAddr returns the most exact Hosts entry that names the address, or a
// network that holds it, and counts for its port.
func (r *Rules) HostAddr(a netip.Addr, port uint16) (Host, bool) {
	if r == nil || r.Hosts == nil {
		return Host{}, false
	}
	a = a.Unmap()
	return first(r.Hosts.index.at(a), func(e Host) bool { return e.MatchAddr(a, port) && r.counts(e, a.String(), port) })
}
