package redact

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// The keys below are put together from parts so that no scanner takes this
// file for a leak.
var (
	aws    = "AKIA" + strings.Repeat("Q", 16)
	github = "ghp_" + strings.Repeat("a1", 18)
	slack  = "xoxb-" + "123456789012-abcdef"
	openai = "sk-proj-" + strings.Repeat("Zz9_", 8)
	claude = "sk-ant-" + "api03-" + strings.Repeat("x-Y", 10)
	jwt    = "eyJ" + strings.Repeat("hbGci", 6) + ".eyJzdWIi.c2ln"
	pem    = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----"
)

func TestShapes(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"ls -la /home/me":                       "ls -la /home/me",
		"TOKEN=abc":                             "TOKEN=[redacted]",
		"export GITHUB_TOKEN=abc; ls":           "export GITHUB_TOKEN=[redacted]; ls",
		"mysql --password=hunter2 db":           "mysql --password=[redacted] db",
		"mysql --password hunter2 db":           "mysql --password [redacted] db",
		"gh --token   x":                        "gh --token   [redacted]",
		"x --password -v":                       "x --password -v",
		"x --password":                          "x --password",
		"x --password ":                         "x --password ",
		"password: hunter2":                     "password: [redacted]",
		"password := \"a b\" next":              "password := \"[redacted]\" next",
		"Password => 'a b' next":                "Password => '[redacted]' next",
		"secret=`cat x` y":                      "secret=`[redacted]` y",
		`{"api_key":"abc","n":1}`:               `{"api_key":"[redacted]","n":1}`,
		`{"api_key": "a\"bc", "n":1}`:           `{"api_key": "[redacted]", "n":1}`,
		`"{\"password\":\"abc\",\"n\":1}"`:      `"{\"password\":\"[redacted]\",\"n\":1}"`,
		`password="abc`:                         `password="[redacted]`,
		`password="abc\`:                        `password="[redacted]`,
		"password=":                             "password=",
		"password":                              "password",
		"max_tokens=4096":                       "max_tokens=4096",
		"AWS_ACCESS_KEY_ID=x":                   "AWS_ACCESS_KEY_ID=x",
		"aws.secretAccessKey=x":                 "aws.secretAccessKey=[redacted]",
		"?a=1&access_token=x&b=2":               "?a=1&access_token=[redacted]&b=2",
		"curl -H 'Authorization: Bearer a.b' u": "curl -H 'Authorization: [redacted]' u",
		"Authorization: \"Basic abc\" x":        "Authorization: \"[redacted]\" x",
		"Authorization: Basic abc":              "Authorization: [redacted]",
		"Cookie: a=b; c=d\r\nHost: x":           "Cookie: [redacted]\r\nHost: x",
		"auth token: Bearer abcdefgh x":         "auth token: [redacted] x",
		"Bearer abcdefghij":                     "Bearer [redacted]",
		"BEARER abcdefghij":                     "BEARER [redacted]",
		"Bearer bonds":                          "Bearer bonds",
		"token://host/x":                        "token://host/x",
		"key " + aws:                            "key [redacted]",
		"x" + aws:                               "x" + aws,
		"AKIA short":                            "AKIA short",
		"(" + github + ")":                      "([redacted])",
		slack + "," + openai:                    "[redacted],[redacted]",
		claude + " " + jwt:                      "[redacted] [redacted]",
		"risk-aversion-of-a-careful-man":        "risk-aversion-of-a-careful-man",
		"a\n" + pem + "\nb":                     "a\n[redacted]\nb",
		pem[:40]:                                "[redacted]",
		pem[:len(pem)-5]:                        "[redacted]",
		"-----BEGIN CERTIFICATE-----\nMIIB":     "-----BEGIN CERTIFICATE-----\nMIIB",
		"https://u:p@h/x":                       "https://[redacted]@h/x",
		"HTTP://tok@h":                          "HTTP://[redacted]@h",
		"https://u:p@ss@h":                      "https://[redacted]@h",
		"ssh://git@github.com/x":                "ssh://git@github.com/x",
		"ssh://git:pw@github.com/x":             "ssh://[redacted]@github.com/x",
		"https://h/@x":                          "https://h/@x",
		"postgres://a:b@h https://h2":           "postgres://[redacted]@h https://h2",
	} {
		if got := String(in); got != want {
			t.Errorf("String(%q) = %q; want %q", in, got, want)
		}
	}
}

func TestArgs(t *testing.T) {
	in := []string{"mysql", "--password", "hunter2", "-u", "root", "--token", "--verbose", "TOKEN=x", "--secret=y", "z"}
	want := []string{"mysql", "--password", Mark, "-u", "root", "--token", "--verbose", "TOKEN=" + Mark, "--secret=" + Mark, "z"}
	if got := Args(in); !slices.Equal(got, want) {
		t.Errorf("Args = %q; want %q", got, want)
	}
	if in[2] != "hunter2" {
		t.Error("Args changed its argument")
	}
}

// TestLinear gives each finder the text that would make a careless one
// quadratic. Eight times the text may take eight times as long, here with room
// for a busy machine; a quadratic search takes sixty-four times.
func TestLinear(t *testing.T) {
	testenv.Whole(t) // it measures time
	for _, unit := range []string{
		"a", "token=", "token='", `token=\"`, "token ", "--token ", "a:", " ", "://", "://a", "https://a@",
		"-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN X PRIVATE KEY-----\n-----END ",
		"sk-", "ghp_ghp_", "eyJ.", "Bearer ", "cookie:", "\\", "'", "password=\\",
	} {
		small, large := strings.Repeat(unit, 1<<17/len(unit)), strings.Repeat(unit, 1<<20/len(unit))
		a, b := fastest(small), fastest(large)
		for try := 0; b > 40*a+50*time.Millisecond; try++ { // quadratic would be 64 times, each time; a busy machine is not
			if try == 20 {
				t.Errorf("%q: 128 KiB take %v, 1 MiB %v; want about 8 times as long", unit, a, b)
				break
			}
			b = min(b, fastest(large))
		}
	}
}

func fastest(s string) time.Duration {
	least := time.Hour
	for range 3 {
		start := time.Now()
		String(s)
		least = min(least, time.Since(start))
	}
	return least
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":            "plain text",
		"größe 日本 👍":            "größe 日本 👍",
		"a\nb\tc\rd":            `a\nb\tc\rd`,
		"\x1b[31m\x00\x7f":      `\x1b[31m\x00\x7f`,
		"\u009b31m":             `\u009b31m`,
		"bad\xff\xc3":           `bad\xff\xc3`,
		"user\u202etxt.exe":     `user\u202etxt.exe`,
		"zero\u200bwidth\ufeff": `zero\u200bwidth\ufeff`,
		"no\u00a0break":         `no\u00a0break`,
		"tag\U000e0041":         `tag\U000e0041`,
		"fill\u3164\u2800":      `fill\u3164\u2800`,
		"vs\ufe0f":              `vs\ufe0f`,
		"lines\u2028\u2029":     `lines\u2028\u2029`,
		"\ufffd":                "\ufffd",
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q; want %q", in, got, want)
		}
	}
}
