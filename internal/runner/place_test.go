//go:build linux || darwin

package runner

import (
	"os"
	"path/filepath"
	"testing"
)

func makePlace(t *testing.T, base, name string) *Place {
	t.Helper()
	p, err := MakePlace(base, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func there(p string) bool { _, err := os.Lstat(p); return err == nil }

// A place goes with its session, whatever a guest left in it, and nothing that
// a link in it leads to.
func TestPlaceEnds(t *testing.T) {
	base, other := filepath.Join(t.TempDir(), "split"), t.TempDir()
	p := makePlace(t, base, "one")
	kept := filepath.Join(other, "kept")
	closed := filepath.Join(p.Tmp(), "a/closed/inside")
	for _, err := range []error{
		os.WriteFile(kept, nil, 0o600), os.Symlink(other, filepath.Join(p.Tmp(), "link")), os.MkdirAll(closed, 0o700), os.Chmod(filepath.Dir(closed), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(p.Tmp()); err != nil || info.Mode()&os.ModeSticky == 0 || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := p.Close(); err != nil || there(filepath.Join(base, "one")) || !there(kept) {
		t.Errorf("%v; the place is there: %t, what a link led to: %t", err, there(filepath.Join(base, "one")), there(kept))
	}
}

// What a killed session left goes when the next one begins; the place of a
// session that lives stays, and so does what is no place.
func TestPlacesAreSwept(t *testing.T) {
	base := t.TempDir()
	dead, alive := makePlace(t, base, "dead"), makePlace(t, base, "alive")
	if err := os.Mkdir(filepath.Join(base, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	dead.mark.Close()                                                                                   // as the kernel does for a process that was killed
	for name, inside := range map[string]string{"empty": "", "marked": placeMark, "furnished": "tmp"} { // and where it was killed early, or while it removed
		if err := os.MkdirAll(filepath.Join(base, halfPlace+name, inside), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	next := makePlace(t, base, "next")
	for name, want := range map[string]bool{"dead": false, "alive": true, "mine": true, "next": true, halfPlace + "empty": false, halfPlace + "marked": false, halfPlace + "furnished": false, halfPlace + "next": false} {
		if got := there(filepath.Join(base, name)); got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
	if _, err := MakePlace(base, "alive"); err == nil {
		t.Error("a place was made twice")
	}
	if next.Close() != nil || alive.Close() != nil || remove(filepath.Join(base, "mine")) == nil {
		t.Error("a place did not go, or what is none did")
	}
}
