package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// TestHostsCanBeServed: a host that a binding may have is one that egress can
// match. Otherwise one binding would keep every session with it from starting.
func TestHostsCanBeServed(t *testing.T) {
	to := func(host string) error {
		return bindable(bawn.Binding{Secret: "key", Host: host, Place: bawn.Bearer})
	}
	check := func(t interface{ Errorf(string, ...any) }, host string) {
		if to(host) != nil {
			return
		}
		if _, err := netrule.ParseHost(host); err != nil {
			t.Errorf("%q may be bound, and can't be matched: %v", host, err)
		}
	}
	for _, host := range []string{
		"localhost", "a.localhost", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::]", "0.0.0.0", "224.0.0.1", "255.255.255.255", "[ff02::1]", "10.0.0.1", "[2001:db8::1]:443", "*.localhost.x",
		"*.a.localhost", "db", "a.internal:5432", "[::ffff:10.0.0.1]", "*.10.0.0.1", "host.bawn.internal",
	} {
		check(t, host)
	}
	for _, host := range []string{"api.example.com", "*.example.com:8443", "10.0.0.1", "[2001:db8::1]:443", "db"} {
		if err := to(host); err != nil {
			t.Errorf("control: %v", err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(
			rapid.StringMatching(`(\*\.)?([a-z0-9_-]{1,4}\.){0,3}(localhost|example|local|[a-z0-9]{1,3})(:[0-9]{1,5})?`),
			rapid.StringMatching(`[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(:[0-9]{1,5})?`),
			rapid.StringMatching(`\[[0-9a-f]{0,4}:?:[0-9a-f:]{0,9}\](:[0-9]{1,5})?`),
		).Draw(t, "host"))
	})
}

// TestProxyLoginsAreNotShown: a login needs no scheme before it to be one.
func TestProxyLoginsAreNotShown(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		leaves     bool
	}{
		{"pip.conf", "proxy = user:hunter2@proxy.example:3128", false}, {"pip.conf", "index-url = //user:hunter2@h.example/x", false},
		{".npmrc", "proxy=user:hunter2@proxy.example:3128", false},
		{".npmrc", "@team:registry=https://h.example:8443/@team/", true}, {"pip.conf", "index-url = https://h.example:8443/simple", true},
	} {
		format := map[string]string{"pip.conf": "pip", ".npmrc": "npmrc"}[tt.name]
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, tt.name), []byte("[global]\n"+tt.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b := bawn.Binding{Secret: "k", Host: "pypi.example", Place: bawn.Basic, File: "~/" + tt.name, Format: format, Placeholder: "PLACEHOLDERPLACE1234"}
		masks, _, _, err := Masks([]bawn.Binding{b}, home)
		if err != nil || len(masks) != 1 {
			t.Fatal(masks, err)
		}
		if text := string(masks[0].Content); strings.Contains(text, tt.line) != tt.leaves || strings.Contains(text, "hunter2") {
			t.Errorf("%q became %q", tt.line, text)
		}
	}
}
