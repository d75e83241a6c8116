package head

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/hostname"
)

// A Form says how a target is written (RFC 9112 section 3.2). The zero Form is
// invalid.
type Form uint8

const (
	_         Form = iota
	Origin         // /path?query
	Absolute       // http://host/path
	Authority      // host:port, of CONNECT
	Asterisk       // *, of OPTIONS
)

// Form returns how the target is written, or an error where the method and the
// target do not go together.
func (h Head) Form() (Form, error) {
	switch {
	case h.Method == "CONNECT":
		return Authority, nil
	case strings.HasPrefix(h.Target, "/"):
		return Origin, nil
	case h.Target == "*" && h.Method == "OPTIONS":
		return Asterisk, nil
	case len(h.Target) > 7 && strings.EqualFold(h.Target[:7], "http://"):
		return Absolute, nil
	}
	return 0, fmt.Errorf("the target %.64q is neither a path nor an http:// URL", h.Target)
}

// Host returns the host that the request is for, in normal form, and the port
// it names, 0 where it names none. There must be one Host field, and it must
// agree with the target; only CONNECT may do without the field, as clients of
// HTTP/1.0 do.
func (h Head) Host() (host string, port uint16, err error) {
	form, err := h.Form()
	if err != nil {
		return "", 0, err
	}
	fields := h.Values("Host")
	switch {
	case len(fields) > 1:
		return "", 0, fmt.Errorf("the head has %d Host fields; want one", len(fields))
	case len(fields) == 0 && form != Authority:
		return "", 0, errors.New("the head has no Host field")
	case form == Authority:
		return agree(h.Target, fields, 443)
	case form == Absolute:
		return agree(authorityOf(h.Target), fields, 80)
	}
	return authority(fields[0])
}

// agree reads the names in the target and in the Host fields, which must be the
// same. A Host field without a port stands for any port of a CONNECT, and else
// for the port of the scheme.
func agree(target string, fields []string, scheme uint16) (string, uint16, error) {
	host, port, err := authority(target)
	if err != nil || len(fields) == 0 {
		return host, port, err
	}
	h, p, err := authority(fields[0])
	if err != nil {
		return "", 0, err
	}
	same := or(p, scheme) == or(port, scheme) || p == 0 && scheme == 443
	if h != host || !same {
		return "", 0, fmt.Errorf("the target names %.128q and the Host field %.128q", target, fields[0])
	}
	return host, port, nil
}

func or(port, scheme uint16) uint16 {
	if port == 0 {
		return scheme
	}
	return port
}

// authorityOf returns the text between http:// and the path.
func authorityOf(url string) string {
	rest := url[len("http://"):]
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// authority reads HOST or HOST:PORT. An IPv6 address stands in brackets.
func authority(s string) (string, uint16, error) {
	if strings.ContainsAny(s, "/?#") || strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return "", 0, fmt.Errorf("%.128q is no host, or host and port", s)
	}
	host, _, port, err := hostname.SplitASCII(s)
	if err != nil || port == "" {
		return host, 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return host, uint16(n), err
}

// Path returns the target in origin form: that of an absolute target without
// its scheme and host.
func (h Head) Path() string {
	form, _ := h.Form()
	switch form {
	case Absolute:
		path := h.Target[len("http://")+len(authorityOf(h.Target)):]
		if !strings.HasPrefix(path, "/") {
			return "/" + path
		}
		return path
	case Authority:
		return ""
	}
	return h.Target
}

// Body says how long the body is: length bytes, or chunked. A head with two
// possible lengths is refused (RFC 9112 section 6.3).
func (h Head) Body() (length int64, chunked bool, err error) {
	lengths, codings := h.Values("Content-Length"), h.Values("Transfer-Encoding")
	switch {
	case len(lengths) > 1 || len(codings) > 1 || len(lengths) == 1 && len(codings) == 1:
		return 0, false, errors.New("the head says more than once how long the body is")
	case len(codings) == 1 && (!strings.EqualFold(codings[0], "chunked") || h.Minor == 0):
		return 0, false, fmt.Errorf("the transfer coding is %.64q; want chunked, in HTTP/1.1", codings[0])
	case len(codings) == 1:
		return 0, true, nil
	case len(lengths) == 0:
		return 0, false, nil
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	if err != nil || lengths[0][0] == '+' {
		return 0, false, fmt.Errorf("the length of the body is %.32q; want a number", lengths[0])
	}
	return int64(n), false, nil
}
