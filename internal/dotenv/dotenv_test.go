package dotenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// TestMaskEverywhere: a file is masked wherever it lies, and what would be read past the
// masks is an error that names it.
func TestMaskEverywhere(t *testing.T) {
	const secret = "API_TOKEN=sk_live_0123456789abcdef\n"
	outside := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		files  []string
		links  [][2]string // name, target
		masked int
		fails  string
	}{
		"deep and oddly named":       {files: []string{"a/b/c/d/e/f/.env", "my app (1)/.env", "dist/.env", "vendor/.env.local"}, masked: 4},
		"what others have":           {files: []string{"node_modules/x/.env"}},
		"a link to a masked file":    {files: []string{".env"}, links: [][2]string{{"a/.env", "../.env"}}, masked: 1},
		"a link that leads nowhere":  {links: [][2]string{{".env", "gone"}}},
		"a link to a directory":      {links: [][2]string{{".env", "a"}}, files: []string{"a/.env"}, masked: 1},
		"a link to another name":     {files: []string{"real.txt"}, links: [][2]string{{".env", "real.txt"}}, fails: "is a link to"},
		"a link out":                 {links: [][2]string{{"a/.env", outside}}, fails: "is a link to"},
		"a link to what others have": {files: []string{"node_modules/x/.env"}, links: [][2]string{{".env", "node_modules/x/.env"}}, fails: "is a link to"},
		"deeper than is looked":      {files: []string{strings.Repeat("d/", maxMaskDepth+1) + ".env"}, fails: ErrTooMuch.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range tt.files {
				f = filepath.Join(dir, f)
				if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, []byte(secret), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for _, l := range tt.links {
				name := filepath.Join(dir, l[0])
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.Symlink(l[1], name)); err != nil {
					t.Fatal(err)
				}
			}
			all, err := MaskAll(dir)
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("it says %v, want %q", err, tt.fails)
			}
			if tt.fails == "" && len(all) != tt.masked {
				t.Errorf("%d files are masked, want %d", len(all), tt.masked)
			}
		})
	}
}

// TestUnread: what can't be read is an error where the guest, who is the same user, could
// open it by chmod.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"own", "foreign"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(dir, "foreign")
	if os.Geteuid() != 0 {
		dir, foreign = "/", "/etc/passwd"
	} else if err := os.Chown(foreign, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		name  string
		err   error
		fails bool
	}{
		"of another user": {strings.TrimPrefix(foreign, dir), fs.ErrPermission, false},
		"not there":       {"gone", fs.ErrNotExist, false},
		"broken":          {strings.TrimPrefix(foreign, dir), syscall.EIO, true},
	} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := &masking{}
		if m.unread(root, strings.TrimPrefix(c.name, "/"), c.err); (m.failed != nil) != c.fails {
			t.Errorf("%s: %v", name, m.failed)
		}
	}
	own, err := os.OpenRoot(filepath.Dir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	m := &masking{}
	if m.unread(own, ".", fs.ErrPermission); m.failed == nil {
		t.Error("of our own: no error")
	}
}

// FuzzMask: what is recognised is not left where it stood.
func FuzzMask(f *testing.F) {
	f.Add("TOKEN=abcdef0123456789\n")
	f.Add("URL=https://a:bbbbbbbbbb1@h/\nURL=x")
	f.Fuzz(func(t *testing.T, text string) {
		w := walk{mask: &masking{}}
		w.mask.file(".env", text)
		n := 0
		for a := range assignments(text) {
			if secretIn(a.key, a.value) != "" {
				n++
			}
		}
		if masks := 0; n > 0 {
			for a := range assignments(string(w.mask.masked[0].Text)) {
				if strings.Contains(a.value, "masked-by-bawn-") {
					masks++
				}
			}
			if masks != n || len(w.mask.masked[0].Masks) != n {
				t.Errorf("%d secrets, %d masks, %d are read", n, len(w.mask.masked[0].Masks), masks)
			}
		}
	})
}
