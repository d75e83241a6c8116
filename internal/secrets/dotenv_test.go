package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkspace finds what is secret in the files of a workspace, and nothing
// behind a link, in a pipe, in an example or too deep.
func TestWorkspace(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".env", "# a comment\nexport STRIPE_KEY=sk_live_0123456789abcdef # mine\nNODE_ENV=production\nPORT=3000\nSITE=https://app.example/path/to/something/1234567890\n"+
		"DATABASE_URL=postgres://app:hunter2hunter2@db/app\nQUOTED_TOKEN=\"abc def 0123456789\"\nRANDOM='Zx81Zx81Zx81Zx81Zx81Zx81'\nAPI_KEY=changeme\nAPP_SECRET=${OTHER}\n"+
		"PRIVATE_KEY=\"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END KEY-----\"\nAFTER_TOKEN=after0123456789\n")
	write("apps/api/.env.local", "TOKEN=fromapps0123456789\n")
	write(".env.example", "TOKEN=fromexample0123456789\n")
	write("node_modules/x/.env", "TOKEN=frommodules0123456789\n")
	write("a/b/c/d/.env", "TOKEN=fromdeep0123456789\n")
	write(".environment", "TOKEN=fromother0123456789\n")
	if err := os.WriteFile(outside, []byte("TOKEN=fromoutside0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, ".env.link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, ".env.pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range Workspace(dir) {
		got[k.Name] += string(k.Value) + "\n"
	}
	want := map[string]string{
		".env:STRIPE_KEY": "sk_live_0123456789abcdef", ".env:DATABASE_URL": "hunter2hunter2", ".env:QUOTED_TOKEN": "abc def 0123456789",
		".env:RANDOM": "Zx81Zx81Zx81Zx81Zx81Zx81", ".env:PRIVATE_KEY": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", ".env:AFTER_TOKEN": "after0123456789", "apps/api/.env.local:TOKEN": "fromapps0123456789",
	}
	for name, value := range want {
		if got[name] != value+"\n" {
			t.Errorf("%s is %q; want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("found too are %q", got)
	}
	if Workspace(filepath.Join(dir, "absent")) != nil {
		t.Error("a workspace that is not there has secrets")
	}
}

// FuzzAssignments: a guest may write the file. Values are of the file, and bounded.
func FuzzAssignments(f *testing.F) {
	f.Add("A=b\nexport C='d\ne'\nF=\"g")
	f.Fuzz(func(t *testing.T, text string) {
		for key, value := range assignments(text) {
			if v := secretIn(key, value); v != "" && (!strings.Contains(text, v) && !strings.Contains(text, "%") || len(v) > maxKeptValue) {
				t.Errorf("%q is not in the file", v)
			}
		}
	})
}
