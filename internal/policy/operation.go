package policy

import "strings"

// longPart is how long a part of a path is at least that is taken for an identity
// where digits are in it.
const longPart = 16

// Operation is the path of a request without the parts that distinguish things of
// one kind: a yes to a lent secret holds for it. For a request that only reads it
// is the whole host.
func Operation(method, path string) string {
	if method == "GET" || method == "HEAD" || method == "OPTIONS" {
		return "/"
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if identity(p) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// identity reports whether a part of a path is a number, a digest or the like.
func identity(part string) bool {
	digits, hexadecimal := 0, 0
	for _, c := range part {
		if c >= '0' && c <= '9' {
			digits++
		}
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == '-' {
			hexadecimal++
		}
	}
	return digits > 0 && (digits == len(part) || hexadecimal == len(part) && len(part) >= 7 || len(part) >= longPart)
}
