package secrets

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shapes are values as issuers make them, invented, with what must hold for
// their placeholders.
var shapes = map[string]string{
	"ghp_16C7e42F292c6912E7710c838347Ae178B4a":                           `^ghp_[A-Za-z0-9]{36}$`,
	"github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789abcdefgh": `^github_pat_[A-Za-z0-9_]{55}$`,
	"sk-ant-api03-aB3-xyZ_0123456789abcdefABCDEFghij-klmnopAA":           `^sk-ant-api03-[A-Za-z0-9_-]{43}$`,
	"sk-proj-abcDEF0123456789abcDEF0123456789":                           `^sk-proj-[A-Za-z0-9]{32}$`,
	"xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx":           `^xoxb-[A-Za-z0-9]{12}-[A-Za-z0-9]{13}-[A-Za-z0-9]{24}$`,
	"AKIAIOSFODNN7EXAMPLE":                                               `^AKIA[A-Z0-9]{20}$`, // lengthened: 16 characters are too few
	"npm_abcdefghijABCDEFGHIJ0123456789abcdef":                           `^npm_[A-Za-z0-9]{36}$`,
	"glpat-abcDEF0123456789_-xy":                                         `^glpat-[A-Za-z0-9_-]{20,}$`,
	"0123456789abcdef0123456789abcdef":                                   `^[0-9a-f]{32}$`,
	"0123456789ABCDEF0123456789ABCDEF":                                   `^[0-9A-F]{32}$`,
	"f81d4fae-7dec-41d0-a765-00a0c91e6bf6":                               `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$`,
	"-----BEGIN KEY-----\nabcdefABCDEF0123456789==\n-----END KEY-----\n": "^-----BEGIN KEY-----\n[A-Za-z0-9]{22}==\n-----END KEY-----\n$",
	"pw": `^[a-z]{20,}$`, "1234": `^[0-9]{30,}$`, "------------------------": `^[a-z0-9]{24,}$`, "pässwörd": `.{20,}`,
}

func TestPlaceholderShapes(t *testing.T) {
	for value, want := range shapes {
		got, err := Placeholder([]byte(value))
		if err != nil || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q: %q, %v; want %s", value, got, err, want)
		}
	}
}

func TestPlaceholderOfToken(t *testing.T) {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	value := part(`{"alg":"RS256","kid":"inner-key-name"}`) + "." + part(`{"sub":"alice@example.com","exp":4102444800,"scope":"admin"}`) + "." + part(strings.Repeat("signature", 20))
	got, err := Placeholder([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(got, ".")
	var head, claims map[string]any
	for i, into := range []*map[string]any{&head, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			t.Fatalf("part %d of %q: %v", i, got, err)
		}
		for _, private := range []string{"alice", "admin", "inner-key-name"} {
			if strings.Contains(string(text), private) {
				t.Errorf("%s tells %q", text, private)
			}
		}
	}
	if head["alg"] != "RS256" || claims["exp"] != 4102444800.0 || claims["sub"] != "placeholder" || len(parts[2]) != len(strings.Split(value, ".")[2]) {
		t.Errorf("%v %v %q", head, claims, parts[2])
	}
}

// TestPlaceholderProperties: for any value the placeholder shares no piece with
// what is random in it, is never the same twice, is long enough, and can stand
// where the value could.
func TestPlaceholderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom(append([]string{""}, prefixes...)).Draw(t, "prefix")
		body := rapid.OneOf(
			rapid.StringMatching(`[a-zA-Z0-9_-]{1,60}`), rapid.StringMatching(`[0-9a-f]{1,64}`), rapid.StringMatching(`[!-~]{1,80}`),
			rapid.StringMatching(`a{6,40}`), rapid.StringMatching(`[a-zA-Z0-9+/]{20,40}={0,2}`), rapid.StringN(1, 50, 200),
		).Draw(t, "body")
		value := prefix + body
		one, err := Placeholder([]byte(value))
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		two, err := Placeholder([]byte(value))
		if err != nil || one == two || one == value || len(one) < enough {
			t.Fatalf("%q: %q and %q, %v", value, one, two, err)
		}
		if !strings.HasPrefix(one, value[:prefixLen([]byte(value))]) {
			t.Fatalf("%q: %q has another beginning", value, one)
		}
		random := value[prefixLen([]byte(value)):]
		for i := 0; i+shared <= len(random); i++ {
			if strings.Contains(one, random[i:i+shared]) {
				t.Fatalf("%q shares %q with %q", one, random[i:i+shared], value)
			}
		}
		if singleLine([]byte(value)) && !singleLine([]byte(one)) {
			t.Fatalf("%q has control characters, %q has none", one, value)
		}
		if strings.Contains(strings.ToLower(one), "bawn") && !strings.Contains(value, ".") {
			t.Logf("by chance: %q", one)
		}
	})
}
