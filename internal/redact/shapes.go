package redact

import "strings"

// shapes returns the places in s that look like credentials.
func shapes(s string) []span {
	var spans []span
	if strings.ContainsAny(s, "=:") || strings.Contains(s, "-") || hasBearer(s) {
		spans = findAssigned(s, spans)
	}
	spans = findPrefixed(s, spans)
	if strings.Contains(s, "://") {
		spans = findUserinfo(s, spans)
	}
	if strings.Contains(s, pemBegin) {
		spans = findPEM(s, spans)
	}
	return spans
}

func hasBearer(s string) bool {
	return strings.Contains(s, "earer ") || strings.Contains(s, "EARER ")
}

// A keyPrefix is how keys of one issuer begin: min bytes of the class word
// must follow, else it is somebody's ordinary text.
type keyPrefix struct {
	text string
	min  int
}

// keyPrefixes by first byte. Sources: the issuers' public documentation of
// their key formats (AWS IAM identifiers, GitHub token formats, GitLab token
// overview, Slack token types, Stripe API keys, RFC 7519 for "eyJ").
var keyPrefixes = [256][]keyPrefix{
	'A': {{"AKIA", 16}, {"ASIA", 16}, {"AIza", 30}, {"AGE-SECRET-KEY-1", 20}},
	'e': {{"eyJ", 30}},
	'g': {{"ghp_", 20}, {"gho_", 20}, {"ghu_", 20}, {"ghs_", 20}, {"ghr_", 20}, {"github_pat_", 20}, {"glpat-", 16}},
	'h': {{"hf_", 20}},
	'n': {{"npm_", 30}},
	'p': {{"pypi-", 30}},
	'r': {{"rk_live_", 16}, {"rk_test_", 16}},
	's': {{"sk-", 20}, {"sk_live_", 16}, {"sk_test_", 16}},
	'x': {{"xoxb-", 10}, {"xoxp-", 10}, {"xoxa-", 10}, {"xoxr-", 10}, {"xoxs-", 10}, {"xoxe-", 10}, {"xapp-", 10}},
	'y': {{"ya29.", 20}},
}

// findPrefixed appends keys that begin as their issuer's do.
func findPrefixed(s string, spans []span) []span {
	for i := 0; i < len(s); i++ {
		if keyPrefixes[s[i]] == nil || (i > 0 && isAlnum(s[i-1])) {
			continue
		}
		if end := prefixedEnd(s, i); end > i {
			spans = append(spans, span{i, end})
			i = end - 1
		}
	}
	return spans
}

// prefixedEnd returns where the key that begins at i ends, or i for none.
func prefixedEnd(s string, i int) int {
	for _, p := range keyPrefixes[s[i]] {
		if !strings.HasPrefix(s[i:], p.text) {
			continue
		}
		end := i + len(p.text)
		for end < len(s) && (isWord(s[end]) || s[end] == '.') {
			end++
		}
		if end-i-len(p.text) >= p.min {
			return end
		}
	}
	return i
}

// findUserinfo appends the user part of URLs: all of it, since some services
// take a token as the user's name. A bare user of another scheme than http
// (ssh://git@host) is no credential and stays.
func findUserinfo(s string, spans []span) []span {
	for i := 0; ; {
		at := strings.Index(s[i:], "://")
		if at < 0 {
			return spans
		}
		lo := i + at + len("://")
		hi := lo + authorityLen(s[lo:])
		if n := strings.LastIndexByte(s[lo:hi], '@'); n > 0 {
			user := s[lo : lo+n]
			if strings.Contains(user, ":") || isHTTP(s[:lo]) {
				spans = append(spans, span{lo, lo + n})
			}
		}
		i = hi
	}
}

func authorityLen(s string) int {
	if n := strings.IndexAny(s, "/?#\\\"'`<> \t\r\n"); n >= 0 {
		return n
	}
	return len(s)
}

// isHTTP reports whether text ends in http:// or https://.
func isHTTP(text string) bool {
	scheme := strings.ToLower(text[max(0, len(text)-len("https://")):])
	return strings.HasSuffix(scheme, "http://") || strings.HasSuffix(scheme, "https://")
}

const (
	pemBegin = "-----BEGIN "
	pemKey   = "PRIVATE KEY"
	pemLabel = 64 // bytes; longer than any label in use (RFC 7468 section 3)
)

// findPEM appends private keys (RFC 7468) from their first dash to their last;
// one whose end is missing reaches to the end of the text.
func findPEM(s string, spans []span) []span {
	for i := 0; ; {
		at := strings.Index(s[i:], pemBegin)
		if at < 0 {
			return spans
		}
		lo := i + at
		body := lo + len(pemBegin)
		label, _, _ := strings.Cut(s[body:min(len(s), body+pemLabel)], "-----")
		if !strings.Contains(label, pemKey) {
			i = body
			continue
		}
		hi := pemEnd(s, body)
		spans = append(spans, span{lo, hi})
		i = hi
	}
}

// pemEnd returns the offset behind the END line that follows body.
func pemEnd(s string, body int) int {
	at := strings.Index(s[body:], "-----END ")
	if at < 0 {
		return len(s)
	}
	label := body + at + len("-----END ")
	if n := strings.Index(s[label:min(len(s), label+pemLabel)], "-----"); n >= 0 {
		return label + n + len("-----")
	}
	return len(s)
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }
