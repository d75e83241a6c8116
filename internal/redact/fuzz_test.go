package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzString: text without a mark in it stays as long as nothing was found, and
// nothing panics.
func FuzzString(f *testing.F) {
	for _, s := range []string{"token=x", pem, "https://u:p@h", "Bearer abcdefghij", "--password x", "aaaa", `"a":"b"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := String(text)
		if !strings.Contains(out, Mark) && out != text {
			t.Errorf("String(%q) = %q; changed without a mark", text, out)
		}
		if got := Args([]string{"--password", text})[1]; !strings.HasPrefix(text, "-") && got != Mark {
			t.Errorf("Args(--password %q) = %q; want it redacted", text, got)
		}
	})
}

// FuzzVisible: what comes out is one line of valid UTF-8 and nothing in it is
// invisible; showing it again changes nothing.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\nb", "\xff", "\u202e", "é", "\U000e0001", "\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Visible(s)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, Invisible) {
			t.Errorf("Visible(%q) = %q; want valid UTF-8 without invisible characters", s, out)
		}
		if again := Visible(out); again != out {
			t.Errorf("Visible(%q) = %q; want it unchanged", out, again)
		}
	})
}

func BenchmarkString(b *testing.B) {
	text := `curl -sS -H "Accept: application/json" https://api.example.com/v1/items?limit=10 | jq '.items[].name'`
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		String(text)
	}
}
