package netrule

// Named reports whether an entry speaks of a host in normal form, at whatever
// port.
func (r *Rules) Named(name string) bool {
	if r == nil {
		return false
	}
	if r.Hosts != nil {
		if _, ok := first(r.Hosts.index.of(name), func(h Host) bool { return h.matchName(name) }); ok {
			return true
		}
	}
	_, http := first(r.http.of(name), func(h HTTP) bool { return h.host.matchName(name) })
	_, git := first(r.git.of(name), func(g Git) bool { return g.host.matchName(name) })
	return http || git
}
