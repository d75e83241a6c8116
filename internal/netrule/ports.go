package netrule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ports is a set of TCP ports. The zero Ports is empty.
type Ports struct{ spans []span } // in order, neither overlapping nor adjoining

type span struct{ low, high uint16 }

// maxSpans bounds the parts of one list of ports.
const maxSpans = 32

// ParsePorts reads "443", "443,8443", "8000-8100" or "*" for all of them.
func ParsePorts(s string) (Ports, error) {
	if s == "*" {
		return Ports{[]span{{1, 65535}}}, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxSpans {
		return Ports{}, fmt.Errorf("ports %q: want at most %d parts", clip(s), maxSpans)
	}
	var spans []span
	for _, p := range parts {
		low, high, ranged := strings.Cut(p, "-")
		if !ranged {
			high = low
		}
		a, okA := parsePort(low)
		b, okB := parsePort(high)
		if !okA || !okB || a > b {
			return Ports{}, fmt.Errorf("%q is no port; want 1 to 65535, a list such as \"443,8443\", a range such as \"8000-8100\", or \"*\"", clip(p))
		}
		spans = append(spans, span{a, b})
	}
	return Ports{merged(spans)}, nil
}

// parsePort reads a number from 1 to 65535 without sign or leading zero.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n > 0 && s[0] != '0'
}

func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return int(a.low) - int(b.low) })
	out := spans[:1]
	for _, s := range spans[1:] {
		last := &out[len(out)-1]
		if int(s.low) > int(last.high)+1 {
			out = append(out, s)
			continue
		}
		last.high = max(last.high, s.high)
	}
	return slices.Clip(out)
}

// Has reports whether the port is one of them.
func (p Ports) Has(port uint16) bool {
	return slices.ContainsFunc(p.spans, func(s span) bool { return s.low <= port && port <= s.high })
}

// Covers reports whether p has every port of o.
func (p Ports) Covers(o Ports) bool {
	return !slices.ContainsFunc(o.spans, func(s span) bool {
		return !slices.ContainsFunc(p.spans, func(own span) bool { return own.low <= s.low && s.high <= own.high })
	})
}

// Overlaps reports whether a port is in both.
func (p Ports) Overlaps(o Ports) bool {
	return slices.ContainsFunc(o.spans, func(s span) bool {
		return slices.ContainsFunc(p.spans, func(own span) bool { return own.low <= s.high && s.low <= own.high })
	})
}

// Meet returns the ports that are in both.
func (p Ports) Meet(o Ports) Ports {
	var out []span
	for _, a := range p.spans {
		for _, b := range o.spans {
			if s := (span{max(a.low, b.low), min(a.high, b.high)}); s.low <= s.high {
				out = append(out, s)
			}
		}
	}
	return Ports{out}
}

// Without returns the ports of p that are not in o.
func (p Ports) Without(o Ports) Ports {
	var out []span
	for _, s := range p.spans {
		low := int(s.low)
		for _, b := range o.spans {
			if int(b.low) > int(s.high) || int(b.high) < low {
				continue
			}
			if int(b.low) > low {
				out = append(out, span{uint16(low), b.low - 1})
			}
			low = int(b.high) + 1
		}
		if low <= int(s.high) {
			out = append(out, span{uint16(low), s.high})
		}
	}
	return Ports{out}
}

// Empty reports whether there is no port.
func (p Ports) Empty() bool { return len(p.spans) == 0 }

// Lists returns the ports as lists that ParsePorts reads: a list that is too
// long becomes several.
func (p Ports) Lists() []Ports {
	var out []Ports
	for spans := range slices.Chunk(p.spans, maxSpans) {
		out = append(out, Ports{spans})
	}
	return out
}

// String writes the ports in order, in the form that ParsePorts reads.
func (p Ports) String() string {
	var b strings.Builder
	for i, s := range p.spans {
		switch {
		case s == span{1, 65535}:
			return "*"
		case i > 0:
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(s.low)))
		if s.high > s.low {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(int(s.high)))
		}
	}
	return b.String()
}

func portsOf(ports ...uint16) Ports {
	var p Ports
	for _, n := range ports {
		p.spans = append(p.spans, span{n, n})
	}
	return p
}

// clip shortens text in an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
