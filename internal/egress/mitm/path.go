package mitm

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/bawn-dev/bawn/internal/redact"
)

// structure are the characters by which a path is divided.
const structure = `./\\%;?#`

// lookalikes are characters that servers with "best fit" mappings (windows-1252, 932 and
// 949) take for path separators: slashes, backslashes and a percent sign that no Unicode
// normalization makes of them.
const lookalikes = "\u2215\u2044\u29f8\u2216\u29f9\u20e5\u00a5\u20a9\u066a"

// readings returns the unescaped paths that servers may take an escaped path
// for. It errs for a path that only some servers would resolve elsewhere: dot
// segments, empty segments, backslashes, escapes within escapes.
func readings(escaped string) ([]string, error) {
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, fmt.Errorf("path %q: want each %% to begin an escape", escaped)
	}
	kept, err := url.PathUnescape(keepSlashes.Replace(escaped))
	if err != nil {
		return nil, fmt.Errorf("path %q: want each %% to begin an escape", escaped)
	}
	if escapedTwice(plain) {
		return nil, fmt.Errorf("path %q: a separator, dot or percent sign that is escaped twice is not forwarded", escaped)
	}
	var out []string
	for _, p := range []string{plain, kept} {
		short, _, _ := strings.Cut(p, "?")
		short, _, _ = strings.Cut(short, "#")
		for _, reading := range []string{p, withoutParameters(p), short, withoutParameters(short)} {
			if err := unambiguous(reading); err != nil {
				return nil, err
			}
			for _, r := range []string{reading, norm.NFKC.String(reading)} { // of letters, too: ﬁ, fullwidth ones
				if !slices.Contains(out, r) {
					out = append(out, r)
				}
			}
		}
	}
	return out, nil
}

// keepSlashes escapes escaped slashes once more, for the servers that do not
// take them for separators (RFC 3986 section 2.2).
var keepSlashes = strings.NewReplacer("%2f", "%252F", "%2F", "%252F")

// withoutParameters drops the text after a semicolon in each segment, as
// servlet containers do (RFC 3986 section 3.3).
func withoutParameters(path string) string {
	if !strings.Contains(path, ";") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

func unambiguous(path string) error {
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("path %q: want it to begin with /", path)
	}
	if !utf8.ValidString(path) || strings.ContainsFunc(path, isControl) {
		return fmt.Errorf("path %q: want valid UTF-8 without control characters", path)
	}
	if strings.ContainsAny(path, `\`+lookalikes) || structured(norm.NFKC.String(path)) != structured(path) {
		return fmt.Errorf("path %q: a backslash, or a character that looks like a dot or a slash, is not forwarded", path)
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		if s == "" && i < len(segments)-1 {
			return fmt.Errorf("path %q: an empty segment (//) is not forwarded", path)
		}
		if s != "" && strings.TrimFunc(s, isDotOrBlank) == "" {
			return fmt.Errorf("path %q: the segment %q is not forwarded; write the path without it", path, s)
		}
	}
	return nil
}

// structured counts the characters that divide a path. A server that normalizes a path
// (Unicode Standard Annex 15, form KC) makes them of others: U+FE52 becomes a dot,
// U+2026 three.
func structured(path string) int {
	return strings.Count(strings.Map(func(r rune) rune {
		if strings.ContainsRune(structure, r) {
			return '.'
		}
		return -1
	}, path), ".")
}

// isDotOrBlank reports whether a segment of such characters only may be taken for a
// dot segment: servers trim blanks, and drop invisible characters and combining
// marks.
func isDotOrBlank(r rune) bool {
	return r == '.' || unicode.IsSpace(r) || unicode.Is(unicode.Mn, r) || redact.Invisible(r)
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// escapedTwice reports whether an unescaped path still holds an escape that
// another round of unescaping would turn into structure.
func escapedTwice(path string) bool {
	for {
		_, rest, ok := strings.Cut(path, "%")
		if !ok || len(rest) < 2 {
			return false
		}
		switch strings.ToLower(rest[:2]) {
		case "2e", "2f", "5c", "25", "3b", "3f", "23", "00":
			return true
		}
		path = rest
	}
}
