package dotenv

import (
	"errors"
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
		for a := range assignments(text) {
			key, value := a.key, a.value
			if at := a.at; at < 0 || !strings.HasPrefix(text[at:], value) {
				t.Fatalf("%q stands not at %d of %q", value, at, text)
			}
			if v := secretIn(key, value); v != "" && (!strings.Contains(text, v) && !strings.Contains(text, "%") || len(v) > maxKeptValue) {
				t.Errorf("%q is not in the file", v)
			}
		}
	})
}

// TestMaskAll: each secret has a placeholder, and all else is as it was; what can't be
// looked through as a whole is an error.
func TestMaskAll(t *testing.T) {
	dir := t.TempDir()
	const text = "# mine\nexport STRIPE_KEY=sk_live_0123456789abcdef # live\r\nPORT=3000\nURL=postgres://hunter2hunter2:hunter2hunter2@db/app?x=hunter2hunter2y\nESC=postgres://app:hunter%402hunter2@db/app\n" +
		"KEY=\"-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END KEY-----\"\nSAME_TOKEN='Zx81Zx81Zx81'\nNODE_ENV=production"
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(".env", text)
	put(".env.plain", "PORT=3000\n")
	all, err := MaskAll(dir)
	if err != nil || len(all) != 1 || all[0].Path != ".env" || len(all[0].Masks) != 5 {
		t.Fatalf("%+v, %v", all, err)
	}
	got := string(all[0].Text)
	for _, secret := range []string{"sk_live", "hunter", "MIIE", "Zx81"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is left in\n%s", secret, got)
		}
	}
	for _, m := range all[0].Masks {
		got = strings.ReplaceAll(got, m.Placeholder, "<"+m.Name+">")
	}
	want := "# mine\nexport STRIPE_KEY=<.env:STRIPE_KEY> # live\r\nPORT=3000\nURL=postgres://<.env:URL>:<.env:URL>@db/app?x=<.env:URL>y\nESC=<.env:ESC>\n" +
		"KEY=\"-----BEGIN KEY-----\n<.env:KEY>\n-----END KEY-----\"\nSAME_TOKEN='<.env:SAME_TOKEN>'\nNODE_ENV=production"
	if got != want {
		t.Errorf("masked:\n%s\nwant\n%s", got, want)
	}
	put(".env.big", strings.Repeat("#", maxKeptSize+1))
	if _, err := MaskAll(dir); !errors.Is(err, ErrTooMuch) {
		t.Errorf("a file too large: %v", err)
	}
}

// FuzzMask: what is recognised is not left where it stood.
func FuzzMask(f *testing.F) {
	f.Add("TOKEN=abcdef0123456789\n")
	f.Add("URL=https://a:bbbbbbbbbb1@h/\nURL=x")
	f.Fuzz(func(t *testing.T, text string) {
		w := walk{masking: true}
		w.mask(".env", text)
		n := 0
		for a := range assignments(text) {
			if secretIn(a.key, a.value) != "" {
				n++
			}
		}
		if masks := 0; n > 0 {
			for a := range assignments(string(w.masked[0].Text)) {
				if strings.Contains(a.value, "masked-by-bawn-") {
					masks++
				}
			}
			if masks != n || len(w.masked[0].Masks) != n {
				t.Errorf("%d secrets, %d masks, %d are read", n, len(w.masked[0].Masks), masks)
			}
		}
	})
}
