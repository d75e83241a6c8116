package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/sigv4"
)

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"

	// enough is how many random characters a placeholder has at least, of
	// letters and digits; of digits or hex alone there are half as many more.
	enough = 20
	// shared is the length in bytes from which a piece of the value's random
	// part may not stand in its placeholder.
	shared = 6
)

// prefixes are how keys of well-known issuers begin; clients look at them. The
// longest that fits counts. Sources: the issuers' public documentation.
var prefixes = []string{
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "gldt-", "glrt-",
	"sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk-",
	"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-", "npm_", "pypi-", "hf_", "gsk_", "xai-",
	"AKIA", "ASIA", "AIza", "ya29.", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "dop_v1_", "SG.", "dckr_pat_",
	"lin_api_", "ntn_", "secret_", "figd_", "r8_", "pplx-", "ABSK",
}

// Placeholder returns the text that a guest gets in place of value. It has the issuer's
// prefix, random letters and digits of the same kinds, and the same punctuation. It has
// the same length, unless that is too short to be unguessable. It shares no 6 bytes in a
// row with the random part of the value. The placeholder of a JSON Web Token (RFC 7519)
// can be decoded and has the times of the value, but no other claim of it. That of an AWS
// access key has the same parts. Nothing marks it as a placeholder. Checksums of issuers
// are not imitated.
func Placeholder(value []byte) (string, error) {
	if c, err := sigv4.ParseCredential(value); err == nil {
		for try := range 40 {
			if s, err := imitateKey(c, try < 30); err != nil || !sharesPart(s, c) {
				return s, err
			}
		}
		return "", errSimilar
	}
	draw := func() (string, error) { return imitate(value, true) }
	private := value[prefixLen(value):]
	fixed := fixedAt(private)
	if head, claims, signature, ok := token(value); ok {
		draw = func() (string, error) { return imitateToken(head, claims, signature) }
		private, fixed = signature, nil
	}
	for try := range 40 {
		if try == 30 { // its punctuation is in the way, as in "------"
			draw = func() (string, error) { return imitate(value, false) }
		}
		s, err := draw()
		if err != nil || !sharesPiece(s, private, fixed) {
			return s, err
		}
	}
	return "", errSimilar
}

var errSimilar = errors.New("no placeholder differs enough from the value; want one with more different characters")

// sharesPiece looks for every piece of what is private, except those in which
// all is fixed.
func sharesPiece(s string, private []byte, fixed map[int]bool) bool {
	run := 0
	for i := 0; i+shared <= len(private); i++ {
		for run = max(run, i); run < i+shared && fixed[run]; {
			run++
		}
		if run < i+shared && strings.Contains(s, string(private[i:i+shared])) {
			return true
		}
	}
	return false
}

func prefixLen(value []byte) int {
	n := 0
	for _, p := range prefixes {
		if bytes.HasPrefix(value, []byte(p)) {
			n = max(n, len(p))
		}
	}
	return n
}

// imitate draws each letter and digit behind the prefix anew.
func imitate(value []byte, punctuation bool) (string, error) {
	n := prefixLen(value)
	out, body := append([]byte(nil), value[:n]...), value[n:]
	set, hex := alphabet(body)
	kept := fixedAt(body)
	random := 0
	for i, c := range body {
		keep := !alnum(rune(c)) || kept[i]
		if keep && punctuation && c < 0x80 {
			out = append(out, c)
			continue
		}
		r, err := pick(set)
		if err != nil {
			return "", err
		}
		out, random = append(out, r), random+1
	}
	want := enough
	if hex || len(set) < 26 {
		want += enough / 2
	}
	for ; random < want; random++ {
		r, err := pick(set)
		if err != nil {
			return "", err
		}
		out = append(out, r)
	}
	return string(out), nil
}

// alphabet returns the characters to draw from: the kinds that body has, or
// hex digits where it has only those.
func alphabet(body []byte) (set string, hex bool) {
	has := func(chars string) bool { return bytes.ContainsAny(body, chars) }
	rest := bytes.IndexFunc(body, func(c rune) bool { return alnum(c) && !strings.ContainsRune(digits+"abcdefABCDEF", c) })
	switch letters := has(lower + upper); {
	case rest < 0 && has(digits) && letters && !has(upper):
		return digits + "abcdef", true
	case rest < 0 && has(digits) && letters && !has(lower):
		return digits + "ABCDEF", true
	}
	for _, kind := range []string{lower, upper, digits} {
		if has(kind) {
			set += kind
		}
	}
	if set == "" {
		set = lower + digits
	}
	return set, false
}

// fixedAt says which letters and digits of body are no random ones: the lines
// around a PEM block (RFC 7468), version and variant of a UUID (RFC 9562).
func fixedAt(body []byte) map[int]bool {
	fixed := map[int]bool{}
	if len(body) == 36 && body[8] == '-' && body[13] == '-' && body[18] == '-' && body[23] == '-' {
		fixed[14], fixed[19] = true, true
	}
	at, pem := 0, bytes.HasPrefix(body, []byte("-----BEGIN "))
	for line := range bytes.Lines(body) {
		for i, c := range line {
			fixed[at+i] = fixed[at+i] || pem && (!alnum(rune(c)) || bytes.HasPrefix(line, []byte("-----")))
		}
		at += len(line)
	}
	return fixed
}

// pick draws one character of set, each as likely as any other.
func pick(set string) (byte, error) {
	most := 256 - 256%len(set)
	for {
		var b [1]byte
		if _, err := rand.Read(b[:]); err != nil {
			return 0, err
		}
		if int(b[0]) < most {
			return set[int(b[0])%len(set)], nil
		}
	}
}

// token takes a JSON Web Token apart.
func token(value []byte) (head, claims map[string]json.RawMessage, signature []byte, ok bool) {
	parts := bytes.Split(value, []byte("."))
	if len(parts) != 3 || len(parts[2]) == 0 {
		return nil, nil, nil, false
	}
	for i, into := range []*map[string]json.RawMessage{&head, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(string(parts[i]))
		if err != nil || json.Unmarshal(text, into) != nil || *into == nil {
			return nil, nil, nil, false
		}
	}
	return head, claims, parts[2], true
}

// imitateToken makes a token with the algorithm and the times of another one,
// claims that say whose it is, and a random signature.
func imitateToken(head, claims map[string]json.RawMessage, signature []byte) (string, error) {
	var alg string
	if json.Unmarshal(head["alg"], &alg) != nil || len(alg) > 8 {
		alg = "HS256"
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return "", err
	}
	body := map[string]any{"iss": "bawn", "sub": "placeholder", "jti": base64.RawURLEncoding.EncodeToString(id)}
	for _, name := range []string{"exp", "iat", "nbf"} {
		var at int64
		if json.Unmarshal(claims[name], &at) == nil {
			body[name] = at
		}
	}
	mark := make([]byte, max(32, base64.RawURLEncoding.DecodedLen(len(signature))))
	if _, err := rand.Read(mark); err != nil {
		return "", err
	}
	var out []string
	for _, part := range []any{map[string]string{"alg": alg, "typ": "JWT"}, body} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("write a token: %w", err)
		}
		out = append(out, base64.RawURLEncoding.EncodeToString(text))
	}
	return strings.Join(append(out, base64.RawURLEncoding.EncodeToString(mark)), "."), nil
}
