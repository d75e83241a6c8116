package netrule

import (
	"errors"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// An index finds the values whose hosts match a name, without looking at the
// others: it costs as much as the name has labels.
type index[T any] struct {
	named, below map[string][]T
	networks     map[netip.Prefix][]T
	lengths      []int // of the networks, the longest first
}

func (x *index[T]) add(h Host, v T) {
	if x.named == nil {
		x.named, x.below, x.networks = map[string][]T{}, map[string][]T{}, map[netip.Prefix][]T{}
	}
	switch {
	case h.prefix.IsValid():
		x.networks[h.prefix] = append(x.networks[h.prefix], v)
		if n := h.prefix.Bits(); !slices.Contains(x.lengths, n) {
			x.lengths = append(x.lengths, n)
			slices.SortFunc(x.lengths, func(a, b int) int { return b - a })
		}
	case h.below:
		x.below[h.name] = append(x.below[h.name], v)
	case h.name != "":
		x.named[h.name] = append(x.named[h.name], v)
	}
}

// of yields the values that a name may match, the most exact first.
func (x *index[T]) of(name string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if a, ok := address(name); ok {
			x.at(a)(yield)
			return
		}
		list := x.named[name]
		for rest, more := name, true; more; list = x.below[rest] {
			for _, v := range list {
				if !yield(v) {
					return
				}
			}
			_, rest, more = strings.Cut(rest, ".")
		}
	}
}

// at yields the values whose networks hold an address.
func (x *index[T]) at(a netip.Addr) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, n := range x.lengths {
			p, err := a.Prefix(n)
			if err != nil {
				continue // longer than an IPv4 address
			}
			for _, v := range x.networks[p] {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// address reads a name that is an address. Names that can't match, which are
// nearly all, cost nothing.
func address(name string) (netip.Addr, bool) {
	if name == "" || !strings.Contains(name, ":") && (name[len(name)-1] < '0' || name[len(name)-1] > '9') {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(name)
	return a.Unmap(), err == nil && a.Zone() == ""
}

// Hosts are entries of isolation.hosts, ready to be matched: a thousand cost
// no more than ten. A nil Hosts matches nothing.
type Hosts struct{ index index[Host] }

// NewHosts makes the entries ready.
func NewHosts(hosts []Host) *Hosts {
	h := &Hosts{}
	for _, e := range hosts {
		h.index.add(e, e)
	}
	return h
}

// ParseHosts reads entries and makes them ready. Its error names all that can't be
// read.
func ParseHosts(entries []string) (*Hosts, error) {
	hosts, err := parseAll(entries, ParseHost)
	if err != nil {
		return nil, err
	}
	return NewHosts(hosts), nil
}

// Match returns the most exact entry that opens the port of the host, which is
// in normal form or an address.
func (h *Hosts) Match(name string, port uint16) (Host, bool) {
	if h == nil {
		return Host{}, false
	}
	return first(h.index.of(name), func(e Host) bool { return e.Match(name, port) })
}

// MatchAddr returns the most exact entry that names the address or a network
// that holds it, and opens its port.
func (h *Hosts) MatchAddr(a netip.Addr, port uint16) (Host, bool) {
	if h == nil {
		return Host{}, false
	}
	return first(h.index.at(a.Unmap()), func(e Host) bool { return e.MatchAddr(a, port) })
}

func first[T any](all iter.Seq[T], ok func(T) bool) (T, bool) {
	for v := range all {
		if ok(v) {
			return v, true
		}
	}
	var none T
	return none, false
}

// Rules are all entries of a session, ready to be matched. A nil Rules matches
// nothing.
//
// A host of an HTTP or Git entry is opened: its traffic is inspected. A request
// is permitted by an HTTP entry; where no HTTP entry speaks of the host by a
// Hosts entry. Where a Git entry speaks of the host, operations of git are
// permitted by Git entries alone. Where a closed host is spoken of, only
// entries count that are no wider than it.
type Rules struct {
	Hosts  *Hosts
	http   index[HTTP]
	git    index[Git]
	closed index[Host]
}

// NewRules makes the entries ready.
func NewRules(hosts []Host, http []HTTP, git []Git) *Rules {
	r := &Rules{Hosts: NewHosts(hosts)}
	for _, e := range http {
		r.http.add(e.host, e)
	}
	for _, e := range git {
		r.git.add(e.host, e)
	}
	return r
}

// Compile reads the hosts, HTTP and git entries of a session. Its error names
// all that can't be read; then there are no rules.
func Compile(e bawn.Egress) (*Rules, error) {
	hosts, err1 := parseAll(e.Hosts, ParseHost)
	http, err2 := parseAll(e.HTTP, ParseHTTP)
	git, err3 := parseAll(e.Git, ParseGit)
	closed, err4 := parseAll(e.Closed, ParseHost)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	r := NewRules(hosts, http, git)
	for _, c := range closed {
		r.closed.add(c, c)
	}
	return r, nil
}

func parseAll[T any](entries []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	var errs []error
	for _, s := range entries {
		v, err := parse(s)
		out, errs = append(out, v), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// HTTP yields the entries that speak of the port of a host in normal form.
func (r *Rules) HTTP(name string, port uint16) iter.Seq[HTTP] {
	return func(yield func(HTTP) bool) {
		if r == nil {
			return
		}
		for e := range r.http.of(name) {
			if e.host.Match(name, port) && r.counts(e.host, name, port) && !yield(e) {
				return
			}
		}
	}
}

// Git yields the entries that speak of the port of a host in normal form.
func (r *Rules) Git(name string, port uint16) iter.Seq[Git] {
	return func(yield func(Git) bool) {
		if r == nil {
			return
		}
		for e := range r.git.of(name) {
			if e.host.Match(name, port) && r.counts(e.host, name, port) && !yield(e) {
				return
			}
		}
	}
}

// Opened reports whether traffic to the port of a host is inspected, because of
// an HTTP or git entry.
func (r *Rules) Opened(name string, port uint16) bool {
	_, http := first(r.HTTP(name, port), func(HTTP) bool { return true })
	_, git := first(r.Git(name, port), func(Git) bool { return true })
	return http || git
}
