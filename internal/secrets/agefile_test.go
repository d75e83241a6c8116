package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
)

func identity(t *testing.T, mode os.FileMode) (path string, id *age.X25519Identity) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "identity")
	text := "# created: 2026-03-01T12:00:00Z\n# public key: " + id.Recipient().String() + "\n" + id.String() + "\n"
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path, id
}

// TestIdentityFile: with a file of the user's nobody is asked, now and later,
// and the age library opens what we wrote.
func TestIdentityFile(t *testing.T) {
	o := options(t)
	o.Passphrase = nil
	path, id := identity(t, 0o600)
	o.Identity = path
	set(t, open(t, o), "key", "value-number-one")
	o.Identity = "" // the index knows
	if got := value(t, o, "key"); got != "value-number-one" {
		t.Errorf("got %q", got)
	}
	files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "*.age"))
	sealed, err := os.ReadFile(files[0])
	if err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	plain, err := unseal(sealed, id)
	if line, value, _ := strings.Cut(string(plain), "\n"); err != nil || value != "value-number-one" || !strings.HasPrefix(line, "bawn secret key.") {
		t.Errorf("%q, %v", plain, err)
	}

	other, _ := identity(t, 0o600)
	o.Identity = other
	_, err = open(t, o).Get(t.Context(), "key")
	wantError(t, err, "is the identity of age1", "encrypted to age1")
	o.Identity = path
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, o).Get(t.Context(), "key")
	wantError(t, err, "others may use it")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, o).Get(t.Context(), "key")
	wantError(t, err, "identity file")
}

func TestRefusedIdentities(t *testing.T) {
	good, id := identity(t, 0o600)
	loose, _ := identity(t, 0o644)
	two, _ := identity(t, 0o600)
	if err := os.WriteFile(two, []byte(id.String()+"\n"+id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken, _ := identity(t, 0o600)
	if err := os.WriteFile(broken, []byte(id.String()[:40]), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{good: true, loose: false, two: false, broken: false, "relative": false, t.TempDir(): false, "/dev/null": false, "/nonexistent": false} {
		o := options(t)
		o.Identity = path
		err := open(t, o).Set(t.Context(), "key", bawn.NewSecret([]byte("value-number-one")))
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), id.String()[:20]) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestPassphrases(t *testing.T) {
	o := options(t)
	o.Passphrase = nil
	err := open(t, o).Set(t.Context(), "key", bawn.NewSecret([]byte("value-number-one")))
	wantError(t, err, "nobody can be asked", "ever kept plain")
	if files := wantOnly(t, o.StateDir); len(files) != 0 {
		t.Errorf("a refused Set left %q", files)
	}
	say := func(text string) func(bool) ([]byte, error) {
		return func(bool) ([]byte, error) { return []byte(text), nil }
	}
	o.Passphrase = say("short")
	wantError(t, open(t, o).Set(t.Context(), "key", bawn.NewSecret([]byte("value-number-one"))), "8 at least")
	o.Passphrase = say(passphrase)
	set(t, open(t, o), "key", "value-number-one")

	asked := 0
	o.Passphrase = func(bool) ([]byte, error) { asked++; return []byte(passphrase), nil }
	v := open(t, o)
	set(t, v, "other", "value-number-two")
	if asked != 0 {
		t.Error("a value was set and the passphrase asked for")
	}
	for range 2 {
		for _, name := range []string{"key", "other"} {
			if _, err := v.Get(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times; want once", asked)
	}
	for _, wrong := range []string{"", "another passphrase"} {
		o.Passphrase = say(wrong)
		_, err := open(t, o).Get(t.Context(), "key")
		wantError(t, err, "passphrase")
	}
	o.Passphrase = func(bool) ([]byte, error) { return nil, errors.New("interrupted") }
	_, err = open(t, o).Get(t.Context(), "key")
	wantError(t, err, "interrupted")
}

// wantOnly lists the regular files below a directory that may be absent.
func wantOnly(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// TestSources: where a passphrase may come from.
func TestSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("from the file\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=/home/u"}
	o, err := Standard(env, file)
	if err != nil || o.ConfigDir != "/home/u/.config/bawn" || o.StateDir != "/home/u/.local/state/bawn" {
		t.Fatalf("%+v, %v", o, err)
	}
	if got, err := o.Passphrase(false); err != nil || string(got) != "from the file" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = o.Passphrase(false)
	wantError(t, err, "others may use it")

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(w, "from the pipe")
	w.Close()
	o, err = Standard(append(env, fmt.Sprintf("BAWN_PASSPHRASE_FD=%d", dup(t, r))), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := o.Passphrase(false); err != nil || string(got) != "from the pipe" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"BAWN_PASSPHRASE_FD=x", "BAWN_PASSPHRASE_FD=-1", "BAWN_PASSPHRASE=hello-hello"} {
		_, err := Standard(append(env, bad), "")
		wantError(t, err, "BAWN_PASSPHRASE")
		if strings.Contains(err.Error(), "hello") {
			t.Errorf("the error tells the passphrase: %v", err)
		}
	}
	_, err = Standard([]string{"HOME=relative"}, "")
	wantError(t, err, "HOME")
	if o, err = Standard([]string{"XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=relative", "HOME=/h"}, ""); err != nil || o.ConfigDir != "/c/bawn" || o.StateDir != "/h/.local/state/bawn" {
		t.Errorf("%q %q %v", o.ConfigDir, o.StateDir, err)
	}
}

// TestDamagedFile flips each byte of an encrypted value once.
func TestDamagedFile(t *testing.T) {
	o := options(t)
	path, _ := identity(t, 0o600)
	o.Identity = path
	set(t, open(t, o), "key", "value-number-one")
	files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "*.age"))
	sealed, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if err := os.WriteFile(files[0], bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := open(t, o).Get(t.Context(), "key"); err == nil {
			t.Fatalf("byte %d: %q", i, s.Reveal())
		}
	}
}

// TestValuesCannotChangePlaces: somebody who can write the vault's files, or its index, and
// can't decrypt them, has no secret stand for another one.
func TestValuesCannotChangePlaces(t *testing.T) {
	o := options(t)
	path, _ := identity(t, 0o600)
	o.Identity = path
	v := open(t, o)
	set(t, v, "deploy", "value-of-deploy")
	set(t, v, "read", "value-of-read")
	for name, want := range map[string]string{"deploy": "value-of-deploy", "read": "value-of-read"} {
		if got := value(t, o, name); got != want {
			t.Fatalf("control: %s is %q", name, got)
		}
	}
	deploy, read := v.files.valuePath(idOf(t, v, "deploy")), v.files.valuePath(idOf(t, v, "read"))
	swap := func() {
		for _, move := range [][2]string{{deploy, deploy + "x"}, {read, deploy}, {deploy + "x", read}} {
			if err := os.Rename(move[0], move[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap()
	for _, name := range []string{"deploy", "read"} {
		_, err := open(t, o).Get(t.Context(), name)
		wantError(t, err, "somebody has replaced the file")
	}
	swap()
	index, err := os.ReadFile(v.indexPath())
	if err != nil {
		t.Fatal(err)
	}
	a, b := idOf(t, v, "deploy"), idOf(t, v, "read")
	crossed := strings.NewReplacer(a, b, b, a).Replace(string(index))
	if err := os.WriteFile(v.indexPath(), []byte(crossed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(o)
	wantError(t, err, "which is another one's")
}

func idOf(t *testing.T, v *Vault, name string) string {
	t.Helper()
	idx, err := v.index()
	if err != nil {
		t.Fatal(err)
	}
	return idx.find(name).ID
}

// TestDescriptorOfTwo: two processes that share the descriptor of a file both read it.
func TestDescriptorOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(path, []byte("from the file\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readFD(fd); err != nil || string(got) != "from the file" {
			t.Errorf("%q, %v", got, err)
		}
	}
}
