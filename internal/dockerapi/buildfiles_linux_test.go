package dockerapi

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/dockerapi/dockerfile"
)

// filesIn reads an archive as a build does.
func filesIn(t testing.TB, from io.Reader) (*fileSet, error) {
	t.Helper()
	s, had := newStore(), load{}
	s.each.bytes = 16 << 20
	c, err := newContents(t.TempDir(), func(more load) error { return s.take(&had, more) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c.read(from)
}

// unending is an archive that repeats the same bytes without end.
type unending struct{ of, left []byte }

func (u *unending) Read(p []byte) (int, error) {
	if len(u.left) == 0 {
		u.left = u.of
	}
	n := copy(p, u.left)
	u.left = u.left[n:]
	return n, nil
}

// records is an extended header of so many bytes, without the file that it is of.
func records(t testing.TB, bytesOf int) []byte {
	t.Helper()
	whole := archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", PAXRecords: map[string]string{"BAWN.x": strings.Repeat("x", bytesOf)}})
	end := bytes.LastIndex(whole, []byte("ustar"))
	return whole[:end-257] // the offset of the magic in a header
}

// An archive makes the session's host process use a limited amount of memory and work,
// also if it is endless or highly compressed.
func TestArchivesOfBuildsAreBounded(t *testing.T) {
	long := strings.Repeat("d/", 1<<18) + "x"
	many := make([]tar.Header, 0, 8000)
	for n := range cap(many) {
		many = append(many, tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprint(strings.Repeat("d/", 1500), n)})
	}
	zeros := func() io.Reader {
		r, w := io.Pipe()
		t.Cleanup(func() { r.Close() })
		go func() {
			z := gzip.NewWriter(w)
			a := tar.NewWriter(z)
			_ = a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 40})
			for block := make([]byte, 1<<20); ; {
				if _, err := a.Write(block); err != nil {
					return
				}
			}
		}()
		return r
	}
	for name, tt := range map[string]struct {
		from io.Reader
		want string
	}{
		"a long name":         {bytes.NewReader(archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: long})), "a name or a target of more than"},
		"a long target":       {bytes.NewReader(archiveOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: long})), "a name or a target of more than"},
		"long names":          {bytes.NewReader(archiveOf(t, many...)), "the names of the build's files"},
		"unending records":    {&unending{of: records(t, 1000)}, "a header is too long"},
		"unending headers":    {&unending{of: archiveOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "d"})[:512]}, "more than 20000 files"},
		"large headers":       {&unending{of: withoutEnd(archiveOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "d", PAXRecords: map[string]string{"BAWN.x": strings.Repeat("x", 1<<19)}}))}, "the headers of the archive"},
		"zeros without end":   {zeros(), "16 MiB"},
		"a link to a link":    {bytes.NewReader(archiveOf(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc/passwd"}, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "l"})), "does not come before it"},
		"a link to nothing":   {bytes.NewReader(archiveOf(t, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "../../../etc/passwd"})), "does not come before it"},
		"a device":            {bytes.NewReader(archiveOf(t, tar.Header{Typeflag: tar.TypeBlock, Name: "b"})), "is a device"},
		"no archive":          {strings.NewReader(strings.Repeat("x", 4096)), "no tar stream"},
		"an archive cut off":  {iotest.TimeoutReader(bytes.NewReader(archiveOf(t, many[:2000]...))), "no tar stream"},
		"a broken compressed": {bytes.NewReader([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}), "no tar stream"},
	} {
		if s, err := filesIn(t, tt.from); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v; want %q", name, s, err, tt.want)
		}
	}
	s, err := filesIn(t, bytes.NewReader(archiveOf(t, many[:1000]...))) // the control
	if err != nil || len(s.files) != 1000 {
		t.Error(err)
	}
}

// withoutEnd is an archive without the two empty blocks.
func withoutEnd(archive []byte) []byte { return archive[:len(archive)-1024] }

// Names lead nowhere but into the tree itself, and each is copied once.
func TestMatch(t *testing.T) {
	s, err := filesIn(t, bytes.NewReader(archiveOf(t,
		tar.Header{Typeflag: tar.TypeReg, Name: "../../a"}, tar.Header{Typeflag: tar.TypeReg, Name: "/d/b"}, tar.Header{Typeflag: tar.TypeReg, Name: "d/e/c"},
		tar.Header{Typeflag: tar.TypeReg, Name: "d.x"}, tar.Header{Typeflag: tar.TypeReg, Name: `w\z`}, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "d/b"},
	)))
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string][]string{
		"a": {"a"}, "../../a": {"a"}, "d": {"d"}, "d/": {"d"}, "/d/e/../b": {"d/b"}, "*": {"a", "d.x", "h", `w\z`}, "d*": {"d.x"}, "d/*": {"d/b"}, ".": {"."}, "e": nil, "[": nil, "d/e/": {"d/e"},
	} {
		if got, err := s.match(pattern); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", pattern, got, err, want)
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := (&fileCopy{from: s, names: []string{"d", "h"}, to: "/to", into: true}).write(w); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"0 to/b": 0, "0 to/e/c": 0, "0 to/h": 0}, modes(t, out.Bytes())); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out.String(), "text of /d/b") {
		t.Errorf("the hard link has no contents")
	}
}

// A COPY of a few bytes may stand for very many names, and be compared with them
// again and again.
func TestSourcesAreBounded(t *testing.T) {
	list := make([]tar.Header, 0, 15_000)
	for n := range cap(list) {
		list = append(list, tar.Header{Typeflag: tar.TypeDir, Name: fmt.Sprintf("%s%05d", strings.Repeat("a", 200), n)})
	}
	s, err := filesIn(t, bytes.NewReader(archiveOf(t, list...)))
	if err != nil {
		t.Fatal(err)
	}
	found := func(sources ...string) (*build, int, error) {
		d := &build{ctx: context.Background()}
		names, err := d.found(&dockerfile.Instruction{Name: "COPY"}, s, sources)
		return d, len(names), err
	}
	if d, n, err := found("*", "*", "a*"); err != nil || n != len(list) || d.copies != n { // the control
		t.Fatalf("%d names, %v", n, err)
	}
	if _, _, err := found("b*" + strings.Repeat("x", 500)); err == nil || !strings.Contains(err.Error(), "there is no") {
		t.Errorf("a pattern that nothing matches: %v", err)
	}
	if _, _, err := found("b*" + strings.Repeat("x", 4000)); err == nil || !strings.Contains(err.Error(), "too long to compare") {
		t.Errorf("a long pattern: %v", err)
	}
	s.of.compared = 0
	d, _, err := found("*")
	for range maxCopies / len(list) {
		if err == nil {
			_, err = d.found(&dockerfile.Instruction{Name: "COPY"}, s, []string{"*"})
		}
	}
	if err == nil || !strings.Contains(err.Error(), "stand for more than") {
		t.Errorf("many COPYs: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&build{ctx: ctx}).found(&dockerfile.Instruction{Name: "COPY"}, s, []string{"*"}); err == nil {
		t.Error("a build that was given up goes on")
	}
}

// Whatever an archive says, what is copied of it lies below where it is copied to, and
// is a file, a directory or a link.
func FuzzFilesOfABuild(f *testing.F) {
	f.Add(archiveOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "../a", Mode: 0o4755}, tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "/a"}, tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "/"}))
	f.Add(records(f, 10))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := filesIn(t, bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		if (&fileCopy{from: s, names: []string{"."}, to: "/to", into: true}).write(w) != nil || w.Close() != nil {
			return
		}
		for name, mode := range modes(t, out.Bytes()) {
			if !strings.HasPrefix(name[1:], " to/") || strings.Contains(name, "/../") || mode&0o6000 != 0 || !strings.ContainsAny(name[:1], "025") {
				t.Errorf("%q %o", name, mode)
			}
		}
	})
}
