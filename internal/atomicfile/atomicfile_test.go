package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v (%v); want only %q", dir, entries, err, name)
	}
}

func TestWriteReplacesWithMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, content := range []string{"long content", "short"} {
		if err := Write(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("content %q; want %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v; want 0640", info.Mode(), err)
	}
	onlyFile(t, dir, "f")
}

func TestWriteDoesNotFollowALink(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(out, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	if err := os.Symlink(out, path); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, out); got != "untouched" {
		t.Errorf("the link's target was written: %q", got)
	}
	if got := read(t, path); got != "new" {
		t.Errorf("content %q; want %q", got, "new")
	}
}

func TestWriteLeavesNothingBehindOnFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Error("replaced a directory that is not empty")
	}
	onlyFile(t, dir, "d")
	if err := Write(filepath.Join(dir, "absent", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v; want ErrNotExist", err)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Create(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("err = %v; want ErrExist", err)
	}
	if got := read(t, path); got != "first" {
		t.Errorf("content %q; want %q", got, "first")
	}
	onlyFile(t, dir, "f")
}

func TestUpdateLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	add := func(old []byte) ([]byte, error) {
		n, _ := strconv.Atoi(string(old))
		return []byte(strconv.Itoa(n + 1)), nil
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := Update(path, 0o600, 100, add); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := read(t, path); got != "20" {
		t.Errorf("20 updates left %q", got)
	}
}

func TestUpdateKeepsTheOldOnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	fail := func([]byte) ([]byte, error) { return nil, stop }
	if err := Update(path, 0o600, 100, fail); !errors.Is(err, stop) {
		t.Errorf("err = %v; want edit's", err)
	}
	if err := Update(path, 0o600, 2, fail); err == nil || errors.Is(err, stop) {
		t.Errorf("err = %v; want one about the size", err)
	}
	if err := Update(filepath.Join(path, "x", "y"), 0o600, 2, fail); err == nil || errors.Is(err, stop) {
		t.Errorf("err = %v; want one about the directory", err)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("content %q; want %q", got, "old")
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, fifo, "/dev/null", filepath.Join(dir, "absent")} {
		if _, err := Read(path, 100); err == nil {
			t.Errorf("Read(%q) succeeded", path)
		}
	}
	if _, err := Read(file, 3); err == nil {
		t.Error("read 4 bytes with a limit of 3")
	}
	if data, err := Read(file, 4); err != nil || string(data) != "1234" {
		t.Errorf("Read = %q, %v", data, err)
	}
}

// What a killed process has half written goes; what is being written, and other
// files, stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for name, age := range map[string]time.Time{".tmp-1": old, ".tmp-2": time.Now(), "kept": old, "a.tmp-3": old} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o600), os.Chtimes(filepath.Join(dir, name), age, age)); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(dir, time.Minute)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 3 {
		t.Errorf("left: %q, %v", left, err)
	}
}
