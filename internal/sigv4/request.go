package sigv4

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Request is what a signature speaks of.
type Request struct {
	Method  string
	Path    string // escaped, as it is sent
	Query   string // raw, without the question mark
	Host    string // with the port where it is sent
	Length  int64  // of the body, for clients that sign it; -1 where it is not known
	Header  map[string][]string
	Payload string // hex of the body's SHA-256, or what stands in X-Amz-Content-Sha256
}

// A Reading is how a client has written the path into what it signs: services
// differ. Only the one that the client took verifies.
type Reading uint8

// The readings, the commonest first.
const (
	AsSent Reading = iota // as in S3
	Twice                 // escaped once more, as everywhere else
	Strict                // with everything escaped that is neither unreserved nor a slash
)

// Lines returns the values of a header, whatever its case.
func (r Request) Lines(name string) []string {
	var out []string
	for key, lines := range r.Header {
		if strings.EqualFold(key, name) {
			out = append(out, lines...)
		}
	}
	return out
}

// time is the one that the client has signed for: X-Amz-Date, or Date.
func (r Request) time() (time.Time, error) {
	if lines := r.Lines("X-Amz-Date"); len(lines) > 0 {
		at, err := time.Parse(stamp, lines[0])
		if err != nil || len(lines) > 1 {
			return time.Time{}, fmt.Errorf("stands in a request of the time %.40q; want one X-Amz-Date such as %q", lines, stamp)
		}
		return at, nil
	}
	if lines := r.Lines("Date"); len(lines) == 1 {
		for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", stamp} {
			if at, err := time.Parse(layout, lines[0]); err == nil {
				return at.UTC(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("stands in a request without a time; want X-Amz-Date")
}

// canonical is the canonical request ("Create a signed AWS API request", step
// 1). A signed header that is missing is an error.
func (r Request) canonical(signed []string, reading Reading) (string, error) {
	var b strings.Builder
	for _, part := range []string{r.Method, r.path(reading), canonicalQuery(r.Query)} {
		b.WriteString(part + "\n")
	}
	for _, name := range signed {
		value, ok := r.value(name)
		if !ok {
			return "", fmt.Errorf("stands beside the signed header %.80q, which the request does not have", name)
		}
		b.WriteString(name + ":" + value + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + r.Payload)
	return b.String(), nil
}

// Has reports whether there is a value to sign for a header.
func (r Request) Has(name string) bool {
	_, ok := r.value(name)
	return ok
}

func (r Request) value(name string) (string, bool) {
	lines := r.Lines(name)
	switch {
	case name == "host":
		return r.Host, true
	case name == "content-length" && len(lines) == 0 && r.Length >= 0:
		return strconv.FormatInt(r.Length, 10), true
	case len(lines) == 0:
		return "", false
	}
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, strings.Join(strings.FieldsFunc(l, func(c rune) bool { return c == ' ' }), " "))
	}
	return strings.Join(out, ","), true
}

func (r Request) path(reading Reading) string {
	path := r.Path
	if path == "" {
		path = "/"
	}
	switch reading {
	case Twice:
		return escape(path, "/")
	case Strict:
		if plain, err := url.PathUnescape(path); err == nil {
			return escape(plain, "/")
		}
	case AsSent:
	}
	return path
}

// canonicalQuery sorts the parameters by their escaped names and values.
func canonicalQuery(query string) string {
	var out [][2]string
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		out = append(out, [2]string{again(name), again(value)})
	}
	slices.SortFunc(out, func(a, b [2]string) int {
		if a[0] != b[0] {
			return strings.Compare(a[0], b[0])
		}
		return strings.Compare(a[1], b[1])
	})
	pairs := make([]string, 0, len(out))
	for _, p := range out {
		pairs = append(pairs, p[0]+"="+p[1])
	}
	return strings.Join(pairs, "&")
}

// again escapes what may be escaped otherwise.
func again(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		s = plain
	}
	return escape(s, "")
}

// escape writes every byte as %XX that is neither unreserved (RFC 3986 section
// 2.3) nor kept.
func escape(s, kept string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; alnum(c) || strings.IndexByte("-_.~"+kept, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
