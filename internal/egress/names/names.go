// Package names gives every name that a guest asks for an address of its own,
// so that the address the guest then dials says which name it meant.
package names

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
)

// Max is the number of names that one table takes.
const Max = 65536

// ErrFull is returned for a new name once the table has Max of them.
var ErrFull = fmt.Errorf("the session has asked for %d names already; start another one", Max)

var (
	errName = errors.New("want a name of 1 to 253 characters")
	errZero = errors.New("the table of names was not made by New")
)

// The addresses come from what no network routes: the range for benchmarks
// (RFC 2544) and a unique local prefix of ours (RFC 4193).
var (
	prefix4 = netip.MustParsePrefix("198.18.0.0/15")
	prefix6 = netip.MustParsePrefix("fd62:6177:6e00::/64")
)

// The last byte of an IPv4 address is never 0 or 255: some programs still take
// these for a network or a broadcast.
const (
	perBlock = 254
	places4  = 512 * perBlock
)

// A Table is the names of one session with their addresses, an IPv4 and an
// IPv6 address each, which never change and are never given to another name.
// It starts at a random place, so that an address a guest kept from another
// session most likely names nothing. Use New; the zero Table refuses. It may
// be used concurrently.
type Table struct {
	start uint32 // place of the first name in prefix4
	nonce uint32 // upper half of the interface identifiers in prefix6

	mu    sync.RWMutex
	index map[string]uint32
	names []string
}

// New returns an empty table.
func New() *Table {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails (crypto/rand)
	return &Table{
		start: binary.BigEndian.Uint32(random[:4]) % places4,
		nonce: binary.BigEndian.Uint32(random[4:]),
		index: map[string]uint32{},
	}
}

// Address returns the IPv4 or IPv6 address of a name in normal form
// (hostname.NormalASCII), and assigns one if needed. It returns ErrFull when the
// table is.
func (t *Table) Address(name string, v6 bool) (netip.Addr, error) {
	t.mu.RLock()
	n, ok := t.index[name]
	t.mu.RUnlock()
	if !ok {
		var err error
		if n, err = t.add(name); err != nil {
			return netip.Addr{}, err
		}
	}
	if v6 {
		return t.v6(n), nil
	}
	return t.v4(n), nil
}

func (t *Table) add(name string) (uint32, error) {
	if len(name) == 0 || len(name) > 253 {
		return 0, fmt.Errorf("name %q: %w", name, errName)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok := t.index[name]; ok { // another goroutine came first
		return n, nil
	}
	switch {
	case t.index == nil:
		return 0, errZero
	case len(t.names) >= Max:
		return 0, ErrFull
	}
	name = strings.Clone(name) // the caller's may be a piece of something large
	n := uint32(len(t.names))
	t.names = append(t.names, name)
	t.index[name] = n
	return n, nil
}

// Name returns the name that has the address a. An IPv4 address that is
// written as IPv6 counts as itself.
func (t *Table) Name(a netip.Addr) (string, bool) {
	n, ok := t.number(a.Unmap())
	if !ok {
		return "", false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n >= uint32(len(t.names)) {
		return "", false
	}
	return t.names[n], true
}

// Owns reports whether a lies where the addresses of tables lie, whether or
// not a name has it.
func (t *Table) Owns(a netip.Addr) bool {
	a = a.Unmap()
	return prefix4.Contains(a) || prefix6.Contains(a)
}

func (t *Table) v4(n uint32) netip.Addr {
	place := (t.start + n) % places4
	b := prefix4.Addr().As4()
	base := binary.BigEndian.Uint32(b[:])
	binary.BigEndian.PutUint32(b[:], base+place/perBlock<<8+place%perBlock+1)
	return netip.AddrFrom4(b)
}

func (t *Table) v6(n uint32) netip.Addr {
	b := prefix6.Addr().As16()
	binary.BigEndian.PutUint32(b[8:], t.nonce)
	binary.BigEndian.PutUint32(b[12:], n+1)
	return netip.AddrFrom16(b)
}

// number is the inverse of v4 and v6.
func (t *Table) number(a netip.Addr) (uint32, bool) {
	switch {
	case prefix4.Contains(a):
		b := a.As4()
		offset := binary.BigEndian.Uint32(b[:]) & (1<<17 - 1)
		last := offset & 0xff
		if last == 0 || last == 0xff {
			return 0, false
		}
		return (offset>>8*perBlock + last - 1 + places4 - t.start) % places4, true
	case prefix6.Contains(a):
		b := a.As16()
		n := binary.BigEndian.Uint32(b[12:])
		return n - 1, n > 0 && binary.BigEndian.Uint32(b[8:]) == t.nonce
	}
	return 0, false
}
