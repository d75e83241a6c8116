package redact

import "strings"

// maxName is how many bytes at the end of a name are looked at.
const maxName = 64

// secretWords make a name a secret's name wherever they stand in it, written
// without separators; secretEnds only at its end ("max_tokens" is a number).
var (
	secretWords = []string{"password", "passwd", "passphrase", "secret", "apikey", "privatekey", "accesskey", "credential"}
	secretEnds  = []string{"token", "authorization", "authkey", "signingkey", "encryptionkey", "cookie"}
)

// SecretName reports whether a variable, flag, header or field of this name
// holds a credential, as PASSWORD, --api-key and x.clientSecret do.
func SecretName(name string) bool {
	folded := fold(name)
	if strings.HasSuffix(folded, "keyid") { // AWS_ACCESS_KEY_ID names a key
		return false
	}
	for _, w := range secretWords {
		if strings.Contains(folded, w) {
			return true
		}
	}
	for _, w := range secretEnds {
		if strings.HasSuffix(folded, w) {
			return true
		}
	}
	return false
}

// fold returns the last bytes of name in lower case, letters and digits only.
func fold(name string) string {
	name = name[max(0, len(name)-maxName):]
	out := make([]byte, 0, maxName)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if isAlnum(c) {
			out = append(out, c)
		}
	}
	return string(out)
}

// isSecretFlag reports whether arg is a flag whose value follows as the next
// argument and is a credential.
func isSecretFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, "=: ") && SecretName(arg)
}

// findAssigned appends values that a name calls secret: name=value,
// name: value, "name": "value", --name value, and what follows Bearer.
func findAssigned(s string, spans []span) []span {
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		end := i
		for end < len(s) && (isWord(s[end]) || s[end] == '.') {
			end++
		}
		lo, hi := assigned(s, i, end)
		if hi > lo {
			spans = append(spans, span{lo, hi})
		}
		i = max(end, hi)
	}
	return spans
}

// assigned returns the value given to the name s[i:end]. It returns 0, 0 if the
// name has no value or is not the name of a secret.
func assigned(s string, i, end int) (lo, hi int) {
	name := s[i:end]
	if strings.EqualFold(name, "bearer") {
		return bearerValue(s, end)
	}
	sep := separator(s, end)
	if sep < 0 && name[0] == '-' {
		sep = flagValue(s, end)
	}
	if sep < 0 || !SecretName(name) {
		return 0, 0
	}
	if isHeader(name) && !strings.ContainsAny(s[sep:min(sep+1, len(s))], "\\\"'`") {
		return sep, headerEnd(s, sep)
	}
	return value(s, sep)
}

// isHeader reports whether the whole rest of the line is the credential, as in
// Authorization and Cookie (RFC 9110 section 11.6.2, RFC 6265 section 4.2).
func isHeader(name string) bool {
	folded := fold(name)
	return strings.HasSuffix(folded, "authorization") || strings.HasSuffix(folded, "cookie")
}

// headerEnd returns where the line, or the quoted word, that holds a header
// ends.
func headerEnd(s string, i int) int {
	if n := strings.IndexAny(s[i:], "\r\n\"'`"); n >= 0 {
		return i + n
	}
	return len(s)
}

// separator returns the offset behind = or : after a name, with the quotes and
// blanks around it, or -1.
func separator(s string, i int) int {
	for i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '\\') {
		i++
	}
	i = skipBlanks(s, i)
	if i == len(s) || s[i] != '=' && s[i] != ':' {
		return -1
	}
	if strings.HasPrefix(s[i:], "://") { // token://host is a URL
		return -1
	}
	for i < len(s) && (s[i] == '=' || s[i] == ':' || s[i] == '>') { // == := =>
		i++
	}
	return skipBlanks(s, i)
}

// flagValue returns the offset of a value that follows a flag after blanks,
// or -1 where the next word is another flag or nothing.
func flagValue(s string, i int) int {
	at := skipBlanks(s, i)
	if at == i || at == len(s) || s[at] == '-' {
		return -1
	}
	return at
}

func skipBlanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// value returns the value that begins at i: up to the closing quote, or to
// the end of the word; behind an authentication scheme, with what follows it.
func value(s string, i int) (lo, hi int) {
	for i < len(s) && s[i] == '\\' { // \"name\":\"value\"
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`') {
		return i + 1, quotedEnd(s, i+1, s[i])
	}
	hi = wordEnd(s, i)
	if isScheme(s[i:hi]) {
		hi = wordEnd(s, skipBlanks(s, hi))
	}
	return i, hi
}

// quotedEnd returns where the text quoted with q ends; a backslash before the
// quote is left out of the value when the quotes themselves were escaped.
func quotedEnd(s string, i int, q byte) int {
	escaped := i >= 2 && s[i-2] == '\\'
	for ; i < len(s) && s[i] != q; i++ {
		if s[i] != '\\' || i+1 == len(s) {
			continue
		}
		if escaped && s[i+1] == q {
			return i
		}
		i++
	}
	return min(i, len(s))
}

func wordEnd(s string, i int) int {
	if n := strings.IndexAny(s[i:], " \t\r\n&;|<>\"'`"); n >= 0 {
		return i + n
	}
	return len(s)
}

// isScheme reports whether word is an HTTP authentication scheme (IANA's
// registry), behind which the credential follows as another word.
func isScheme(word string) bool {
	switch strings.ToLower(word[:min(len(word), len("negotiate")+1)]) {
	case "bearer", "basic", "digest", "negotiate", "token", "apikey":
		return true
	}
	return false
}

// bearerValue returns the word after "Bearer" where it is long enough to be a
// credential (RFC 6750 section 2.1).
func bearerValue(s string, i int) (lo, hi int) {
	lo = skipBlanks(s, i)
	hi = wordEnd(s, lo)
	if lo == i || hi-lo < 8 {
		return 0, 0
	}
	return lo, hi
}
