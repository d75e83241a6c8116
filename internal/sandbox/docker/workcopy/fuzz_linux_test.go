package workcopy

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a made-up stream is made of.
var (
	fuzzNames = []string{"a", "d", "d/f", "d/sub", "d/sub/g", "l", "l/x", "out", "out/x", "hidden", "hidden/x", ".git", ".git/config", ".git/new", "kept", "kept/x", "..", "../outside/x", "/etc/x", "d/../../outside/x", "", "A", "Hidden/x"}
	fuzzLinks = []string{"a", "../outside", "../outside/x", "/etc/passwd", ".git", ".git/config", "hidden", "l", "d", "d/..", "d/sub/../../..", "../d", "..", "."}
	fuzzTypes = []byte{tar.TypeReg, tar.TypeReg, tar.TypeDir, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo, tar.TypeChar}
)

// made is a stream of which each entry is three bytes: name, type, where a link
// leads.
func made(choices []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "w/", Mode: 0o755})
	for ; len(choices) >= 3; choices = choices[3:] {
		h := tar.Header{Name: "w/" + fuzzNames[int(choices[0])%len(fuzzNames)], Typeflag: fuzzTypes[int(choices[1])%len(fuzzTypes)], Mode: int64(choices[2]) << 4}
		to := fuzzLinks[int(choices[2])%len(fuzzLinks)]
		switch h.Typeflag {
		case tar.TypeSymlink:
			h.Linkname = to
		case tar.TypeLink:
			h.Linkname = "w/" + to
		case tar.TypeReg:
			h.Size = 5
		}
		if w.WriteHeader(&h) == nil && h.Size > 0 {
			_, _ = w.Write([]byte("guest"))
		}
	}
	_ = w.Close()
	return b.Bytes()
}

// FuzzReturn: whatever comes back, nothing outside of the workspace changes, and
// nothing in it that is not the guest's; and each new link stays inside.
func FuzzReturn(f *testing.F) {
	for _, choices := range []string{
		"\x00\x00\x00\x01\x02\x00\x02\x00\x00", "\x05\x04\x01\x06\x00\x00", "\x11\x00\x00", "\x01\x04\x01\x02\x00\x00", "\x0b\x02\x00\x0c\x00\x00\x0d\x00\x00", "\x05\x04\x0a", "\x07\x04\x02\x08\x00\x00",
		"\x01\x02\x00\x05\x05\x00", "\x09\x02\x00\x0a\x00\x00\x16\x00\x00", "",
	} {
		f.Add([]byte(choices))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 60 {
			return
		}
		ws := workspace(t, map[string]string{"a": "host's", "d/f": "host's", "hidden/x": "host's", ".git/config": "host's", "kept/x": "host's", "out": "->../outside"})
		outside := filepath.Join(filepath.Dir(ws), "outside")
		fill(t, filepath.Dir(ws), "outside/x", "outside")
		r := Rules{Hidden: []string{"hidden"}, Kept: []string{"kept"}, Refuses: func(_ Change, rel string, _ bool) string {
			return map[bool]string{true: "protected"}[strings.HasPrefix(rel, ".git/config") || rel == ".git"]
		}}
		m, _, _ := taken(t, ws, r)
		b := made(choices)
		c, err := Read(bytes.NewReader(b), int64(len(b)), "w", plenty)
		if err == nil {
			steps, _ := Compare(m, c, r)
			Apply(opened(t, ws), bytes.NewReader(b), steps)
		}
		if diff := cmp.Diff(map[string]string{"x": "outside"}, tree(t, outside)); diff != "" {
			t.Errorf("outside (-want +got):\n%s", diff)
		}
		now := tree(t, ws)
		for _, p := range []string{"hidden/x", ".git/config", "kept/x"} {
			if now[p] != "host's" {
				t.Errorf("%q is %q", p, now[p])
			}
		}
		for p, text := range now {
			if to, link := strings.CutPrefix(text, "->"); link && p != "out" {
				real, err := filepath.EvalSymlinks(filepath.Join(ws, p))
				if err == nil && real != ws && !strings.HasPrefix(real, ws+"/") || filepath.IsAbs(to) {
					t.Errorf("%q leads to %q: %q", p, to, real)
				}
			}
			if strings.HasPrefix(filepath.Base(p), temporary) {
				t.Errorf("%q is left", p)
			}
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(ws), "x")); err == nil {
			t.Error("something was made beside the workspace")
		}
	})
}
