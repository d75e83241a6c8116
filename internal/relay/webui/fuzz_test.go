package webui

import (
	"strings"
	"testing"
	"time"
)

// FuzzPairingCode: only the codes themselves are good, however they are typed.
func FuzzPairingCode(f *testing.F) {
	for _, s := range []string{"", "0000-0000", "oooo iiii", strings.Repeat("A", longSize), "\xff", "ABCD-EFGH"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, code string) {
		var p pairing
		now := time.Unix(1, 0)
		long, short, _ := p.open(false, now)
		if _, ok := p.try(code, now); ok && code != long {
			t.Errorf("%q is taken for %q or %q", code, long, short)
		}
		if plain, ok := plainCode(code); ok && (len(plain) != shortSize || strings.Trim(plain, shortAlphabet) != "") {
			t.Errorf("%q is read as %q", code, plain)
		}
	})
}

// FuzzWays: errors hold nothing of an address.
func FuzzWays(f *testing.F) {
	for _, s := range []string{"ntfy://host/topic", "# x\nsecret:name\n", "secret:", "://", "generic+https://example.org/x", "slack://a@b", "telegram://\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ways, err := ParseWays(text)
		if err == nil {
			for _, w := range ways {
				if (w.Secret == "") == (string(w.Address.Reveal()) == "") || w.Line < 1 {
					t.Errorf("%q: %+v", text, w)
				}
			}
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// FuzzDeviceName: what is accepted can be shown as it stands.
func FuzzDeviceName(f *testing.F) {
	for _, s := range []string{"", " Anna's phone ", "\u202e", strings.Repeat("ü", maxName), "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := deviceName(name)
		if err == nil && (got == "" || len([]rune(got)) > maxName || strings.ContainsAny(got, "\n\r\t\x1b\u202e")) {
			t.Errorf("%q is accepted as %q", name, got)
		}
	})
}

// FuzzSubscription: what is accepted is an https URL of a name.
func FuzzSubscription(f *testing.F) {
	f.Add("https://push.example.com/x", "BA", "AA")
	f.Add("https://127.0.0.1/x", strings.Repeat("B", 87), strings.Repeat("A", 22))
	f.Fuzz(func(t *testing.T, endpoint, key, auth string) {
		err := checkSubscription(Subscription{Endpoint: endpoint, P256dh: key, Auth: auth})
		if err == nil && !strings.HasPrefix(strings.ToLower(endpoint), "https://") {
			t.Errorf("%q is accepted", endpoint)
		}
	})
}
