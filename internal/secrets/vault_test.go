package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

const passphrase = "correct horse battery"

// options are those of a vault in new directories, with encrypted files and a
// cheap scrypt.
func options(t *testing.T) Options {
	t.Helper()
	home := t.TempDir()
	return Options{
		ConfigDir: filepath.Join(home, ".config/bawn"), StateDir: filepath.Join(home, ".local/state/bawn"),
		Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }, Store: File,
		Passphrase: func(bool) ([]byte, error) { return []byte(passphrase), nil }, work: 4,
	}
}

func open(t *testing.T, o Options) *Vault {
	t.Helper()
	v, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func set(t *testing.T, v *Vault, name, value string) {
	t.Helper()
	if err := v.Set(t.Context(), name, bawn.NewSecret([]byte(value))); err != nil {
		t.Fatal(err)
	}
}

// value reads a secret with a vault that is opened anew.
func value(t *testing.T, o Options, name string) string {
	t.Helper()
	s, err := open(t, o).Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(s.Reveal())
}

// wantError wants an error that has every word.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q; want %q in it", err, w)
		}
	}
}

var api = bawn.Binding{Secret: "key", Host: "api.example.com", Place: bawn.Header, Name: "x-api-key", Env: "EXAMPLE_KEY"}

func TestSetGetRemove(t *testing.T) {
	o := options(t)
	v := open(t, o)
	set(t, v, "key", "value-number-one")
	set(t, v, "other", "line one\nline two\n")
	if got := value(t, o, "key"); got != "value-number-one" {
		t.Errorf("got %q", got)
	}
	set(t, v, "key", "value-number-two")
	if got := value(t, o, "key"); got != "value-number-two" {
		t.Errorf("after a second Set got %q", got)
	}
	if files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "*.age")); len(files) != 3 { // and the identity
		t.Errorf("files %q; want the old value's gone", files)
	}
	if err := v.Remove(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get(t.Context(), "key"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after Remove: %v", err)
	}
	list, err := v.List()
	at := o.Now()
	want := []Entry{{Name: "other", Store: File, Created: at, Changed: at, Bindings: []bawn.Binding{}}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestRefusedValuesAndNames(t *testing.T) {
	o := options(t)
	v := open(t, o)
	for name, text := range map[string]string{
		"": "x", "-a": "x", "a b": "x", "a/b": "x", "..": "x", strings.Repeat("n", 65): "x",
		"empty": "", "nul": "a\x00b", "big": strings.Repeat("v", MaxValue+1),
	} {
		err := v.Set(t.Context(), name, bawn.NewSecret([]byte(text)))
		wantError(t, err)
		if len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("the error tells the value: %v", err)
		}
	}
	set(t, v, "biggest", strings.Repeat("v", MaxValue))
	if got := value(t, o, "biggest"); len(got) != MaxValue {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestLendOnlyWhatIsBound(t *testing.T) {
	o := options(t)
	v := open(t, o)
	set(t, v, "key", "value-number-one")
	set(t, v, "unbound", "value-number-two")
	if err := v.Bind(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	bs, err := v.Bindings(t.Context(), []string{"key", "key"})
	if err != nil || len(bs) != 1 || bs[0].Placeholder == "" {
		t.Fatalf("%v, %v", bs, err)
	}
	if s, err := v.Lend(t.Context(), "s1", bs[0]); err != nil || string(s.Reveal()) != "value-number-one" {
		t.Fatalf("control: %q, %v", s.Reveal(), err)
	}
	for name, change := range map[string]func(*bawn.Binding){
		"zero": func(b *bawn.Binding) { *b = bawn.Binding{} }, "host": func(b *bawn.Binding) { b.Host = "evil.example.com" },
		"place": func(b *bawn.Binding) { b.Place = bawn.InQuery }, "name": func(b *bawn.Binding) { b.Name = "x-other" },
		"secret": func(b *bawn.Binding) { b.Secret = "unbound" }, "unknown": func(b *bawn.Binding) { b.Secret = "none" },
		"file": func(b *bawn.Binding) { b.File = "~/.netrc" }, "env": func(b *bawn.Binding) { b.Env = "" },
	} {
		b := bs[0]
		change(&b)
		if s, err := v.Lend(t.Context(), "s1", b); err == nil || s.Reveal() != nil {
			t.Errorf("%s: lent %d bytes, %v", name, len(s.Reveal()), err)
		}
	}
	if _, err := v.Lend(t.Context(), "", bs[0]); err == nil {
		t.Error("lent outside a session")
	}
	_, err = v.Bindings(t.Context(), []string{"unbound"})
	wantError(t, err, "bound to nothing")
}

// TestRevoked lets another process take away what a session uses.
func TestRevoked(t *testing.T) {
	o := options(t)
	v, other := open(t, o), open(t, o)
	set(t, v, "key", "value-number-one")
	if err := v.Bind(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	lend := func() (string, error) {
		s, err := v.Lend(t.Context(), "s1", api)
		return string(s.Reveal()), err
	}
	if got, err := lend(); err != nil || got != "value-number-one" {
		t.Fatalf("control: %q, %v", got, err)
	}
	set(t, other, "key", "value-number-two")
	if got, err := lend(); err != nil || got != "value-number-two" {
		t.Errorf("after a new value: %q, %v", got, err)
	}
	if n, err := other.Unbind(t.Context(), bawn.Binding{Secret: "key", Host: api.Host}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got, err := lend(); err == nil {
		t.Errorf("after unbind: %q", got)
	}
	list, _ := v.List()
	if want := o.Now(); !list[0].Used.IsZero() && !list[0].Used.Equal(want) {
		t.Errorf("used %v; want %v or, for the new value, never", list[0].Used, want)
	}
}

func TestCloseZeroes(t *testing.T) {
	v := open(t, options(t))
	set(t, v, "key", "value-number-one")
	s, err := v.Get(t.Context(), "key")
	if err != nil || string(s.Reveal()) != "value-number-one" {
		t.Fatal(err)
	}
	v.Close()
	if !bytes.Equal(s.Reveal(), make([]byte, len("value-number-one"))) {
		t.Errorf("after Close the value is %q", s.Reveal())
	}
	if s, err = v.Get(t.Context(), "key"); err != nil || string(s.Reveal()) != "value-number-one" {
		t.Fatal(err)
	}
	if err := v.Remove(t.Context(), "key"); err != nil || !bytes.Equal(s.Reveal(), make([]byte, len("value-number-one"))) {
		t.Errorf("after Remove the value is %q, %v", s.Reveal(), err)
	}
}

func TestBindRefuses(t *testing.T) {
	v := open(t, options(t))
	set(t, v, "key", "value-number-one")
	set(t, v, "pem", "line one\nline two\n")
	for _, tt := range []struct {
		change func(*bawn.Binding)
		want   string
	}{
		{func(b *bawn.Binding) { b.Host = "*" }, "host"},
		{func(b *bawn.Binding) { b.Host = "*.com" }, "too wide"},
		{func(b *bawn.Binding) { b.Host = "API.example.com" }, "normal form"},
		{func(b *bawn.Binding) { b.Host = "api.example.com:0" }, "port"},
		{func(b *bawn.Binding) { b.Host = "user@example.com" }, "not accepted"},
		{func(b *bawn.Binding) { b.Host = "" }, "host"},
		{func(b *bawn.Binding) { b.Place = 0 }, "place"},
		{func(b *bawn.Binding) { b.Place = 9 }, "place"},
		{func(b *bawn.Binding) { b.Name = "" }, "header"},
		{func(b *bawn.Binding) { b.Name = "Host" }, "header"},
		{func(b *bawn.Binding) { b.Name = "x\r\ny" }, "header"},
		{func(b *bawn.Binding) { b.Place = bawn.Bearer }, "want none"},
		{func(b *bawn.Binding) { b.Place, b.Name = bawn.Basic, "a:b" }, "user"},
		{func(b *bawn.Binding) { b.Env = "A B" }, "variable"},
		{func(b *bawn.Binding) { b.Env = "1A" }, "variable"},
		{func(b *bawn.Binding) { b.Format = "netrc" }, "no file"},
		{func(b *bawn.Binding) { b.File, b.Format = "~/.netrc", "netrc" }, "basic"},
		{func(b *bawn.Binding) { b.File, b.Format = "~/../x", "raw" }, "clean path"},
		{func(b *bawn.Binding) { b.File, b.Format = "x", "raw" }, "clean path"},
		{func(b *bawn.Binding) { b.File, b.Format = "~/x", "raw:none" }, "{}"},
		{func(b *bawn.Binding) { b.File, b.Format = "~/.aws/credentials", "aws" }, "Signature Version 4"},
		{func(b *bawn.Binding) { b.Place, b.Name = bawn.Signed, "s3" }, "REGION/SERVICE"},
		{func(b *bawn.Binding) { b.Place, b.Name, b.Env = bawn.Signed, "", "AWS_SECRET_ACCESS_KEY" }, "AWS_ACCESS_KEY_ID"},
		{func(b *bawn.Binding) {
			b.Place, b.Name, b.Env, b.File, b.Format = bawn.Signed, "", "", "~/.aws/credentials", "aws:a b"
		}, "name of a profile"},
		{func(b *bawn.Binding) { b.Placeholder = "x" }, "placeholder"},
		{func(b *bawn.Binding) { b.Secret = "none" }, "no such secret"},
		{func(b *bawn.Binding) { b.Secret = "pem" }, "control characters"},
	} {
		b := api
		tt.change(&b)
		wantError(t, v.Bind(t.Context(), b), tt.want)
	}
	if err := v.Bind(t.Context(), api); err != nil {
		t.Fatalf("control: %v", err)
	}
	wantError(t, v.Bind(t.Context(), api), "already")
	wantError(t, v.Set(t.Context(), "key", bawn.NewSecret([]byte("two\nlines"))), "bound to a place")
}

func TestHosts(t *testing.T) {
	for host, ok := range map[string]bool{
		"api.example.com": true, "api.example.com:8443": true, "*.example.com": true, "*.example.com:443": true, "localhost:8080": true, "db.internal": true,
		"192.0.2.1": true, "127.0.0.1:3000": true, "[2001:db8::1]:443": true, "[::1]": true, "[fd00::1]:1": true,
		"": false, "*": false, "*.": false, "*.com": false, "*.internal": false, "a.*.example.com": false, "*example.com": false, "::1": false, "[::1": false, "example.com:": false,
		"example.com:99999": false, "example.com:080": false, "Example.com": false, "example.com.": false, "http://example.com": false, "example.com/x": false,
		"a@example.com": false, "0x7f.1": false, "2130706433": false, "exa mple.com": false, "example.com\x00": false, "*.192.0.2.1": false,
	} {
		if err := checkHost(host); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestConcurrentWriters has several vaults, as several processes would, change
// one index.
func TestConcurrentWriters(t *testing.T) {
	o := options(t)
	set(t, open(t, o), "first", "value-of-first")
	var wg sync.WaitGroup
	for i := range 8 {
		v := open(t, o)
		wg.Go(func() {
			for j := range 4 {
				name := fmt.Sprintf("s%d", i)
				if j == 3 {
					name = "shared"
				}
				if err := v.Set(context.Background(), name, bawn.NewSecret(fmt.Appendf(nil, "value-%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v := open(t, o)
	list, err := v.List()
	if err != nil || len(list) != 10 {
		t.Fatalf("%d secrets, %v; want 10", len(list), err)
	}
	for _, e := range list {
		if _, err := v.Get(t.Context(), e.Name); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "*.age")); len(files) != 11 {
		t.Errorf("%d files; want one for each and the identity", len(files))
	}
}

// dying is a store that fails, or ends the process as it were, at one call.
type dying struct {
	keeping
	at string
}

var errDied = errors.New("died")

func (d dying) put(ctx context.Context, id string, value []byte) error {
	if d.at == "before put" {
		panic(errDied)
	}
	err := d.keeping.put(ctx, id, value)
	if d.at == "after put" {
		panic(errDied)
	}
	return err
}

func (d dying) drop(ctx context.Context, id string) error {
	if d.at == "before drop" {
		panic(errDied)
	}
	err := d.keeping.drop(ctx, id)
	if d.at == "after drop" {
		panic(errDied)
	}
	return err
}

// TestDiesAnywhere stops Set and Remove between the store and the index: the
// name then means the old value or the new one, and the next change leaves no
// value behind that nothing names.
func TestDiesAnywhere(t *testing.T) {
	for _, at := range []string{"before put", "after put", "before drop", "after drop"} {
		t.Run(at, func(t *testing.T) {
			o := options(t)
			o.Store, o.keyring = Keyring, nil
			disk := &ageFiles{dir: filepath.Join(o.StateDir, "other"), opts: &o}
			if err := os.MkdirAll(disk.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := disk.begin(); err != nil {
				t.Fatal(err)
			}
			o.keyring = func() keeping { return disk }
			set(t, open(t, o), "key", "old-old-old-old")

			v := open(t, o)
			v.keyring = dying{disk, at}
			func() {
				defer func() { _ = recover() }()
				_ = v.Set(t.Context(), "key", bawn.NewSecret([]byte("new-new-new-new")))
				t.Error("it did not die")
			}()
			want := map[bool]string{true: "old-old-old-old", false: "new-new-new-new"}[strings.Contains(at, "put")]
			if got := value(t, o, "key"); got != want {
				t.Errorf("got %q; want %q", got, want)
			}
			set(t, open(t, o), "another", "third-third-third")
			if files, _ := filepath.Glob(filepath.Join(disk.dir, "*.age")); len(files) != 3 {
				t.Errorf("files %q; want two values and the identity", files)
			}
		})
	}
}

func TestList(t *testing.T) {
	o := options(t)
	v := open(t, o)
	for _, name := range []string{"b", "a", "c"} {
		set(t, v, name, "value of "+name)
	}
	var names []string
	list, err := v.List()
	for _, e := range list {
		names = append(names, e.Name)
	}
	if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", names, err)
	}
}
