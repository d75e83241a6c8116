package netrule

import (
	"fmt"
	"slices"
	"strings"
)

// An HTTP is one entry of isolation.http: requests that a host takes. The zero
// HTTP matches nothing.
type HTTP struct {
	host    Host
	methods []string // in order; none stands for all
	path    glob
}

// ParseHTTP reads HOST METHODS PATH: a host as for ParseHost, a list of methods
// such as "GET,HEAD" or "*" for all, and a pattern of paths. "*" matches
// anything within a segment, "**" anything across segments. The path is written
// as it is once its escapes are resolved; a query is no part of it. CONNECT is
// never permitted: traffic through it can't be seen.
func ParseHTTP(s string) (HTTP, error) {
	f, err := fields(s)
	if err == nil && len(f) != 3 {
		err = fmt.Errorf("http rule %q has %d parts; want a host, methods and a path: \"api.example.org GET,HEAD /v1/**\"", clip(s), len(f))
	}
	if err != nil {
		return HTTP{}, err
	}
	h := HTTP{}
	if h.host, err = ParseHost(f[0]); err == nil {
		h.methods, err = methods(f[1])
	}
	if err == nil {
		h.path, err = pathGlob(f[2])
	}
	if err != nil {
		return HTTP{}, fmt.Errorf("http rule %q: %w", clip(s), err)
	}
	return h, nil
}

// fields splits an entry at its blanks.
func fields(s string) ([]string, error) {
	if len(s) > MaxEntry || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, fmt.Errorf("rule %q: want at most %d bytes, and no control character", clip(s), MaxEntry)
	}
	return strings.Fields(s), nil
}

func methods(s string) ([]string, error) {
	if s == "*" {
		return nil, nil
	}
	list := strings.Split(s, ",")
	for _, m := range list {
		switch {
		case !isMethod(m) && isMethod(strings.ToUpper(m)):
			return nil, fmt.Errorf("method %q: methods are in upper case; write %q", clip(m), strings.ToUpper(m))
		case !isMethod(m):
			return nil, fmt.Errorf("method %q is invalid; want for example GET, a list such as \"GET,HEAD\", or \"*\"", clip(m))
		case m == "CONNECT":
			return nil, fmt.Errorf("method \"CONNECT\" makes a tunnel that nothing can be seen in; open the host in isolation.hosts instead")
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// isMethod accepts the tokens that methods are made of in practice (RFC 9110
// section 9.1).
func isMethod(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(c rune) bool { return !(c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') })
}

func pathGlob(s string) (glob, error) {
	switch {
	case s[0] != '/':
		return "", fmt.Errorf("path %q: want one that begins with \"/\", or \"/**\" for all", clip(s))
	case strings.ContainsAny(s, "?#"):
		return "", fmt.Errorf("path %q: a query or fragment is no part of a path; leave it out", clip(s))
	case strings.Contains(s, "%"):
		return "", fmt.Errorf("path %q: write the characters themselves, or \"*\" in their place, without escapes", clip(s))
	}
	return parseGlob(s)
}

// Match reports whether the entry permits a request. The name is in normal
// form, the method as sent, the path absolute, with its escapes resolved and
// without ".", ".." and empty segments.
func (h HTTP) Match(name string, port uint16, method, path string) bool {
	return h.host.Match(name, port) && h.Permits(method, path)
}

// Permits is Match without looking at the host.
func (h HTTP) Permits(method, path string) bool {
	return method != "CONNECT" && isMethod(method) && (h.methods == nil || slices.Contains(h.methods, method)) && h.path.match(path)
}

// AnyMethod reports whether the entry permits a path with every method.
func (h HTTP) AnyMethod(path string) bool { return h.methods == nil && h.path.match(path) }

// Host returns the host that the entry opens.
func (h HTTP) Host() Host { return h.host }

// Covers reports whether h permits every request that o permits.
func (h HTTP) Covers(o HTTP) bool {
	return h.host.Covers(o.host) && h.path.covers(o.path) &&
		(h.methods == nil || o.methods != nil && !slices.ContainsFunc(o.methods, func(m string) bool { return !slices.Contains(h.methods, m) }))
}

// On returns the entry for another host.
func (h HTTP) On(host Host) HTTP {
	h.host = host
	return h
}

// Meet returns an entry for h's host that permits the methods and paths that both
// permit. It reports false if the entries permit nothing in common, or if no single
// pattern says which paths both permit.
func (h HTTP) Meet(o HTTP) (HTTP, bool) {
	var ok bool
	if h.path, ok = h.path.meet(o.path); !ok {
		return HTTP{}, false
	}
	switch {
	case h.methods == nil:
		h.methods = o.methods
	case o.methods != nil:
		h.methods = slices.DeleteFunc(slices.Clone(h.methods), func(m string) bool { return !slices.Contains(o.methods, m) })
		ok = len(h.methods) > 0
	}
	return h, ok
}

// String writes the entry in the form that ParseHTTP reads.
func (h HTTP) String() string {
	methods := "*"
	if h.methods != nil {
		methods = strings.Join(h.methods, ",")
	}
	return h.host.String() + " " + methods + " " + h.path.String()
}
