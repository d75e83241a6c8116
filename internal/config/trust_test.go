package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTrustFileIsTheUsersAlone(t *testing.T) {
	in := world(t)
	if err := os.MkdirAll(in.State(), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, in.projectFile(), "isolation.network='full'\n")
	trust(t, in)
	for path, want := range map[string]fs.FileMode{in.State(): 0o700, in.trustPath(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	for _, mode := range []fs.FileMode{0o620, 0o602, 0o644} {
		if err := os.Chmod(in.trustPath(), mode); err != nil {
			t.Fatal(err)
		}
		if errs := refused(t, in); !strings.Contains(errs.Error(), "want 0600") {
			t.Errorf("mode %v: %v", mode, errs)
		}
		if _, err := Forget(in, "/x"); err == nil {
			t.Errorf("mode %v: changed it", mode)
		}
	}
}

func TestBrokenTrustFileTrustsNothing(t *testing.T) {
	in := world(t)
	put(t, in.projectFile(), "isolation.network='full'\n")
	trust(t, in)
	good, err := os.ReadFile(in.trustPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{
		"", "{", "[]", "{}", `{"version":2}`, string(good) + "x", strings.Replace(string(good), "{", `{"x":1,`, 1),
		strings.Replace(string(good), `"sha256": "`, `"sha256": "x`, 1), strings.ReplaceAll(string(good), in.Home, "x"),
		strings.Repeat(" ", maxBytes+1),
	} {
		put(t, in.trustPath(), content)
		errs := refused(t, in)
		if last := errs[len(errs)-1]; !strings.Contains(last.Problem, in.trustPath()) {
			t.Errorf("%.40q: %v", content, last)
		}
	}
	if err := os.Remove(in.trustPath()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(in.trustPath(), in.trustPath()); err != nil {
		t.Fatal(err)
	}
	refused(t, in)
	put(t, in.projectFile(), "isolation.network='none'\n") // control: nobody needs trust
	mustLoad(t, in)
}

func TestTrustReplacesAtItsPath(t *testing.T) {
	in := world(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range "ab" {
		put(t, in.projectFile(), "isolation.network='full' # "+string(c))
		tr, err := Examine(in)
		if err != nil {
			t.Fatal(err)
		}
		tr.At = at
		if err := tr.Add(in); err != nil {
			t.Fatal(err)
		}
	}
	list, err := Trusted(in)
	if err != nil || len(list) != 1 || list[0].Path != in.projectFile() || !list[0].At.Equal(at) || len(list[0].Widens) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	mustLoad(t, in)
}

func TestExamineRefuses(t *testing.T) {
	in := world(t)
	if _, err := Examine(in); !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file: %v", err)
	}
	put(t, in.projectFile(), "isolation.network='none'\n")
	if tr, err := Examine(in); err != nil || len(tr.Widens) != 0 {
		t.Errorf("a narrowing file: %+v, %v", tr, err)
	}
	put(t, in.projectFile(), "mode=\n")
	if _, err := Examine(in); err == nil {
		t.Error("a broken file can be examined")
	}
	put(t, in.User(), "mode=\n")
	if _, err := Examine(in); !strings.Contains(err.Error(), in.User()) {
		t.Errorf("a broken file of the user: %v", err)
	}
	absent := Trust{Path: "/x"}
	in.XDGStateHome = in.projectFile() // no directory
	if err := absent.Add(in); err == nil {
		t.Error("stored below a file")
	}
	if _, err := Trusted(in); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Trusted = %v", err)
	}
	if _, err := in.trusts(filepath.Join(in.Home, "gone"), nil); err == nil {
		t.Error("trusted a file of no workspace")
	}
}

func FuzzTrustFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"trusted":[{"path":"/a","sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"version":1,"trusted":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseTrust("/t", data)
		for _, tr := range list {
			if err != nil || len(tr.SHA256) != 64 || !filepath.IsAbs(tr.Path) {
				t.Errorf("%+v, %v", tr, err)
			}
		}
	})
}
