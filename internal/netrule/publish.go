package netrule

import (
	"fmt"
	"strconv"
	"strings"
)

// A Publish is one entry of isolation.ports: a port of the guest that can be
// reached on the host's loopback.
type Publish struct{ Host, Guest uint16 }

// ParsePublish reads HOST:GUEST, or one number that is both.
func ParsePublish(s string) (Publish, error) {
	host, guest, err := pair(s, "port %q: want HOST:GUEST such as \"8080:3000\", or one number from 1 to 65535 for both")
	return Publish{host, guest}, err
}

// String writes the entry in the form that ParsePublish reads.
func (p Publish) String() string { return pairText(p.Host, p.Guest) }

// A HostPort is one entry of isolation.host_ports: a port of the guest's
// loopback that leads to one of the host's.
type HostPort struct{ Guest, Host uint16 }

// ParseHostPort reads GUEST:HOST, or one number that is both.
func ParseHostPort(s string) (HostPort, error) {
	guest, host, err := pair(s, "host port %q: want GUEST:HOST such as \"15432:5432\", or one number from 1 to 65535 for both")
	return HostPort{guest, host}, err
}

// String writes the entry in the form that ParseHostPort reads.
func (p HostPort) String() string { return pairText(p.Guest, p.Host) }

func pair(s, wrong string) (uint16, uint16, error) {
	first, second, two := strings.Cut(s, ":")
	if !two {
		second = first
	}
	a, okA := parsePort(first)
	b, okB := parsePort(second)
	if !okA || !okB {
		return 0, 0, fmt.Errorf(wrong, clip(s))
	}
	return a, b, nil
}

func pairText(a, b uint16) string {
	if a == b {
		return strconv.Itoa(int(a))
	}
	return strconv.Itoa(int(a)) + ":" + strconv.Itoa(int(b))
}
