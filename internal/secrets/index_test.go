package secrets

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

const sound = `{
  "version": 1,
  "secrets": [
    {
      "name": "a", "store": "file", "id": "a.0123456789abcdef",
      "created": "2026-03-01T12:00:00Z", "changed": "2026-03-01T12:00:00Z", "single_line": true,
      "bindings": [{"host": "api.example.com", "place": "bearer"}]
    },
    {
      "name": "b", "store": "keyring", "id": "b.0123456789abcdef",
      "created": "2026-03-01T12:00:00Z", "changed": "2026-03-01T12:00:00Z", "single_line": true
    }
  ]
}
`

// TestCorruptIndex breaks the index in each way once: it is refused with file
// and line, and stays as it is.
func TestCorruptIndex(t *testing.T) {
	if idx, err := parseIndex("f", []byte(sound)); err != nil || len(idx.Secrets) != 2 {
		t.Fatalf("control: %v", err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`"version": 1`, `"version": 2`, "f:1: its version"},
		{`"version": 1,`, `"version": 1, "extra": 1,`, "f:"},
		{`"name": "b"`, `"name": "b", "value": "x"`, "f:10: "},
		{`b.0123456789abcdef`, `a.0123456789abcdef`, "f:9: the secret \"b\" has the value"},
		{`"name": "b", "store": "keyring", "id": "b.`, `"name": "a", "store": "keyring", "id": "a.`, "f:9: the secret \"a\" is there twice"},
		{`"name": "b"`, `"name": "b", "name": "c"`, "f:10: \"name\" is there twice"},
		{`"store": "keyring"`, `"store": "plain"`, "f:9: "},
		{`b.0123456789abcdef`, `../../etc/passwd`, "f:9: the secret"},
		{`b.0123456789abcdef`, `b.short`, "f:9: the secret"},
		{`"place": "bearer"`, `"place": "body"`, "f:4: unknown place"},
		{`"place": "bearer"`, `"place": "header"`, "f:4: the binding"},
		{`api.example.com`, `*`, "f:4: the binding"},
		{`"single_line": true,`, `"single_line": false,`, "f:4: the secret \"a\" has control"},
		{"\n  ]", "\n", "f:14: "},
		{"]\n}\n", "]\n}\n{}", "f:15: something"},
		{sound, "null", "f:"},
		{sound, "[]", "f:"},
		{sound, "\x00", "f:1: "},
		{sound, sound[:len(sound)/2], "f:"},
	} {
		if !strings.Contains(sound, tt.old) {
			t.Fatalf("the sound index has no %q", tt.old)
		}
		text := strings.Replace(sound, tt.old, tt.new, 1)
		_, err := parseIndex("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q to %q: %v; want %q", tt.old, tt.new, err, tt.want)
		}
	}
}

func TestCorruptIndexStays(t *testing.T) {
	o := options(t)
	set(t, open(t, o), "key", "value-number-one")
	path := filepath.Join(o.ConfigDir, indexName)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(o)
	wantError(t, err, indexName+":1:")
	if text, _ := os.ReadFile(path); string(text) != "{" {
		t.Errorf("it became %q", text)
	}
}

// TestLoosePermissions opens what others could read or have written.
func TestLoosePermissions(t *testing.T) {
	o := options(t)
	v := open(t, o)
	set(t, v, "key", "value-number-one")
	files, _ := filepath.Glob(filepath.Join(o.StateDir, "vault", "key.*.age"))
	read := func() error {
		v, err := Open(o)
		if err != nil {
			return err
		}
		defer v.Close()
		_, err = v.Get(t.Context(), "key")
		return err
	}
	if err := read(); err != nil || len(files) != 1 {
		t.Fatalf("control: %v, %q", err, files)
	}
	for _, file := range []string{filepath.Join(o.ConfigDir, indexName), filepath.Join(o.StateDir, "vault", "identity.age"), files[0]} {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s was written with mode %v, %v", file, info.Mode(), err)
		}
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			var e *Error
			if err := read(); !errors.As(err, &e) || !strings.Contains(e.Hint, "chmod 600") {
				t.Errorf("%s with mode %v: %v", file, mode, err)
			}
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		moved := file + ".moved"
		if err := errors.Join(os.Rename(file, moved), os.Symlink(moved, file)); err != nil {
			t.Fatal(err)
		}
		wantError(t, read(), "symbolic link")
		if err := os.Rename(moved, file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(o.ConfigDir, 0o777); err != nil {
		t.Fatal(err)
	}
	wantError(t, v.Set(t.Context(), "key", bawn.NewSecret([]byte("another-value"))), "written by others")
}

// TestIndexHoldsNoValue also compares what is written with what is read.
func TestIndexHoldsNoValue(t *testing.T) {
	o := options(t)
	v := open(t, o)
	set(t, v, "key", "value-number-one")
	if err := v.Bind(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.ConfigDir, indexName))
	if err != nil || strings.Contains(string(text), "value-number") {
		t.Fatalf("%s, %v", text, err)
	}
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	one, err := parseIndex("f", text)
	if err != nil {
		t.Fatal(err)
	}
	two, err := parseIndex("f", one.encode())
	if diff := cmp.Diff(one, two); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(sound))
	f.Add([]byte(`{"version":1,"pending":[{"store":"file","id":"a.0123456789abcdef"}],"secrets":[]}`))
	f.Add([]byte(`{"version":1,"secrets":[{"name":"a","name":"b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		idx, err := parseIndex("f", data)
		if err != nil {
			return
		}
		again, err := parseIndex("f", idx.encode())
		if err != nil {
			t.Fatalf("what was accepted is refused when written: %v", err)
		}
		for _, r := range again.Secrets {
			if strings.ContainsAny(r.ID, "/\x00") || strings.HasPrefix(r.ID, ".") {
				t.Fatalf("the id %q", r.ID)
			}
		}
	})
}
