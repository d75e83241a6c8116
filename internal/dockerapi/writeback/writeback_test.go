package writeback

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeAll gives Main a stream, and returns its answers.
func writeAll(t *testing.T, dir string, entries ...*tar.Header) map[string]string {
	t.Helper()
	var in, out bytes.Buffer
	w := tar.NewWriter(&in)
	for _, h := range entries {
		text := ""
		if h.Typeflag == tar.TypeReg && h.PAXRecords[Gone] == "" {
			text = "new"
		}
		if h.PAXRecords[Was] == "" {
			h.PAXRecords = map[string]string{Was: Nothing}
		}
		h.Size, h.Format, h.ModTime = int64(len(text)), tar.FormatPAX, time.Unix(1e9, 0)
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := io.WriteString(w, text); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	code := Main(dir, &in, &out)
	failed, done := map[string]string{}, false
	for d := json.NewDecoder(&out); ; {
		var a Answer
		if d.Decode(&a) != nil {
			break
		}
		failed[string(a.Path)], done = a.Error, done || a.Done
	}
	if code != 0 || !done {
		t.Errorf("exit code %d, done %v, %v", code, done, failed)
	}
	return failed
}

// fixture makes a directory with files, and links to another one and within.
func fixture(t *testing.T) (dir, outside string) {
	t.Helper()
	dir, outside = t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"changed": "old", "edited": "edited", "gone": "gone", "kept": "kept"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink("sub", filepath.Join(dir, "near")), os.Mkdir(filepath.Join(dir, "sub"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

const latin = "caf\xe9" // no UTF-8; it is written once

// Names stay below the directory and are reached through no link; what has changed since
// it was compared stays; no file gets a set-id bit.
func TestWrites(t *testing.T) {
	dir, outside := fixture(t)
	was := func(name string, more ...string) map[string]string {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{Was: Stamp(info.Size(), info.ModTime(), info.Mode())}
		for _, k := range more {
			m[k] = "1"
		}
		return m
	}
	failed := writeAll(t, dir,
		&tar.Header{Typeflag: tar.TypeReg, Name: "gone", PAXRecords: was("gone", Gone)},
		&tar.Header{Typeflag: tar.TypeReg, Name: "kept", PAXRecords: map[string]string{Was: "4 1 0", Gone: "1"}},
		&tar.Header{Typeflag: tar.TypeReg, Name: "changed", Mode: 0o6755, PAXRecords: was("changed")},
		&tar.Header{Typeflag: tar.TypeReg, Name: "edited", Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeDir, Name: "made", Mode: 0o2755},
		&tar.Header{Typeflag: tar.TypeReg, Name: "made/file", Mode: 0o600},
		&tar.Header{Typeflag: tar.TypeLink, Name: "made/second", Linkname: "made/file", Mode: 0o600},
		&tar.Header{Typeflag: tar.TypeSymlink, Name: "made/near", Linkname: "file"},
		&tar.Header{Typeflag: tar.TypeReg, Name: latin, Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeReg, Name: latin, Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeReg, Name: "link/x", Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeReg, Name: "near/x", Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeReg, Name: "../x", Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeReg, Name: filepath.Join(outside, "x"), Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o644},
		&tar.Header{Typeflag: tar.TypeChar, Name: "device", Mode: 0o644, Devmajor: 1, Devminor: 3},
	)
	for _, name := range []string{"kept", "edited", latin, "link/x", "near/x", "../x", filepath.Join(outside, "x"), "pipe", "device"} {
		if failed[name] == "" {
			t.Errorf("%s was written", name)
		}
	}
	for name, want := range map[string]string{"kept": "kept", "edited": "edited", "changed": "new", "made/file": "new", "made/second": "new", "made/near": "new", latin: "new"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; %s", name, text, err, failed[name])
		}
	}
	for name, want := range map[string]os.FileMode{"changed": 0o755, "made": os.ModeDir | 0o755, "made/file": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("outside: %v %v", names, err)
	}
	names, err := os.ReadDir(dir)
	for _, n := range names {
		if n.Name() == "gone" || strings.HasPrefix(n.Name(), Beside) {
			t.Errorf("%s is there", n.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}
