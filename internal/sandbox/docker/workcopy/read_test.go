package workcopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var plenty = Limits{Bytes: 1 << 20, Entries: 100}

// stream is a tar stream of entries below "w/". One named "/x" is named so as it is.
func stream(t testing.TB, list ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range append([]tar.Header{{Typeflag: tar.TypeDir, Name: "w/", Mode: 0o755}}, list...) {
		text := []byte(nil)
		if h.Typeflag == tar.TypeReg {
			text = []byte("text of " + h.Name)
			h.Size = int64(len(text))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatalf("%+v: %v", h, err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
func dir(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}
func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func hard(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

func read(b []byte) (*Contents, error) {
	return Read(bytes.NewReader(b), int64(len(b)), "w", plenty)
}

// TestHostileStreams are refused as a whole. The control is what an engine makes.
func TestHostileStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		list []tar.Header
		want string // "" for one that is read
	}{
		"control":                    {[]tar.Header{dir("w/d/"), file("w/d/f"), link("w/l", "/etc"), hard("w/h", "w/d/f"), {Typeflag: tar.TypeFifo, Name: "w/p"}}, ""},
		"an absolute name":           {[]tar.Header{file("/etc/passwd")}, "does not lie in it"},
		"up and out":                 {[]tar.Header{file("w/../x")}, "is no name in it"},
		"up in the middle":           {[]tar.Header{dir("w/d/"), file("w/d/../../x")}, "is no name in it"},
		"another top":                {[]tar.Header{file("x/f")}, "does not lie in it"},
		"a name like the top's":      {[]tar.Header{file("wx")}, "does not lie in it"},
		"a dot":                      {[]tar.Header{file("w/./f")}, "is no name in it"},
		"two slashes":                {[]tar.Header{file("w//f")}, "is no name in it"},
		"a name twice":               {[]tar.Header{file("w/f"), file("w/f")}, "is there twice"},
		"a link, then a file":        {[]tar.Header{link("w/f", "/etc/passwd"), file("w/f")}, "is there twice"},
		"the top twice":              {[]tar.Header{dir("w/")}, "there twice"},
		"the top as a link":          {[]tar.Header{link("w", "/etc")}, "no directory, or there twice"},
		"a file below a link":        {[]tar.Header{link("w/l", "/etc"), file("w/l/passwd")}, "below what is no directory"},
		"a file below a file":        {[]tar.Header{file("w/l"), file("w/l/x")}, "below what is no directory"},
		"a file below nothing":       {[]tar.Header{file("w/d/x")}, "below what is no directory"},
		"another name of the host's": {[]tar.Header{hard("w/h", "/etc/passwd")}, "no file before it"},
		"another name of a link":     {[]tar.Header{link("w/l", "/etc/passwd"), hard("w/h", "w/l")}, "no file before it"},
		"another name of later":      {[]tar.Header{hard("w/h", "w/f"), file("w/f")}, "no file before it"},
		"another name upwards":       {[]tar.Header{hard("w/h", "w/../f")}, "no file before it"},
		"a link to nothing":          {[]tar.Header{link("w/l", "")}, ""},
		"a long name":                {[]tar.Header{file("w/" + strings.Repeat("n", 256))}, "is no name in it"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := read(stream(t, tt.list...))
			var se *StreamError
			switch {
			case name == "a link to nothing":
				if err == nil {
					t.Error("it is read")
				}
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.As(err, &se) || !strings.Contains(se.Why, tt.want) || c != nil):
				t.Errorf("%v, %v; want %q", c, err, tt.want)
			}
		})
	}
}

// TestCutStreams: a part of a stream is refused, wherever it ends; what was cut off
// would count as removed.
func TestCutStreams(t *testing.T) {
	whole := stream(t, file("w/a"), file("w/b"))
	if _, err := read(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if c, err := read(whole[:n]); err == nil && len(c.At) < 2 {
			t.Fatalf("%d of %d bytes are read as %v", n, len(whole), c.Order)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":          make([]byte, 4096),
		"two, one by one":  append(slices.Clone(stream(t, file("w/a"))), stream(t, file("w/b"))...),
		"rubbish":          bytes.Repeat([]byte("rubbish."), 512),
		"rubbish, and end": append(bytes.Repeat([]byte("rubbish."), 512), make([]byte, 1024)...),
	} {
		if c, err := read(b); err == nil && len(c.At) != 1 {
			t.Errorf("%s: %v", name, c.Order)
		}
	}
}

// TestLimitsOfStreams: more than the limits allow is refused.
func TestLimitsOfStreams(t *testing.T) {
	b := stream(t, file("w/a"), file("w/b"))
	for _, l := range []Limits{{Bytes: 20, Entries: 9}, {Bytes: 1000, Entries: 1}, {}} {
		if c, err := Read(bytes.NewReader(b), int64(len(b)), "w", l); err == nil {
			t.Errorf("%+v: %v", l, c)
		}
	}
	if _, err := Read(bytes.NewReader(b), int64(len(b)), "w", Limits{Bytes: 26, Entries: 2}); err != nil {
		t.Error(err)
	}
}

// TestLimitsOfOtherNames: each other name of a file becomes a file, so its bytes
// count again.
func TestLimitsOfOtherNames(t *testing.T) {
	b := stream(t, file("w/a"), hard("w/b", "w/a"), hard("w/c", "w/a"))
	for bytes, ok := range map[int64]bool{33: true, 32: false, 11: false} {
		if c, err := Read(strings.NewReader(string(b)), int64(len(b)), "w", Limits{Bytes: bytes, Entries: 9}); (err == nil) != ok {
			t.Errorf("%d bytes: %v, %v; want it to be read: %v", bytes, c, err, ok)
		}
	}
}

// TestModes: nothing but permissions is taken of a mode.
func TestModes(t *testing.T) {
	h := file("w/f")
	h.Mode = 0o6755
	c, err := read(stream(t, h))
	if err != nil || c.At["f"].Mode != 0o755 {
		t.Errorf("%v, %v", c, err)
	}
}

// FuzzRead: whatever is read has names of its own, each right below a directory,
// and bytes that lie in the stream.
func FuzzRead(f *testing.F) {
	f.Add(stream(f, dir("w/d/"), file("w/d/f"), link("w/l", "../x"), hard("w/h", "w/d/f")))
	f.Add(stream(f, file("w/../x")))
	f.Add(stream(f, file("/etc/passwd")))
	pax := file("w/f")
	pax.PAXRecords = map[string]string{"path": "w/" + strings.Repeat("long/", 60) + "f"}
	f.Add(stream(f, pax))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := read(b)
		if err != nil {
			return
		}
		if len(c.At) != len(c.Order) || len(c.At) > plenty.Entries {
			t.Fatalf("%d names, %d in order", len(c.At), len(c.Order))
		}
		for rel, e := range c.At {
			if !filepath.IsLocal(rel) || filepath.Clean(rel) != rel || rel == "." {
				t.Errorf("%q is a name", rel)
			}
			if d := filepath.Dir(rel); d != "." && c.At[d].Kind != Dir {
				t.Errorf("%q lies below what is no directory", rel)
			}
			if e.Mode&^0o777 != 0 || e.Kind == File && (e.Offset < 0 || e.Size < 0 || e.Offset+e.Size > int64(len(b))) {
				t.Errorf("%q: %+v", rel, e)
			}
		}
		steps, _ := Compare(Manifest{"a": {Kind: File}, "d": {Kind: Dir}}, c, Rules{Refuses: func(Change, string, bool) string { return "" }})
		for _, s := range steps {
			if s.Change == PutLink && (filepath.IsAbs(s.To.To) || !filepath.IsLocal(filepath.Join(filepath.Dir(s.Path), s.To.To))) {
				t.Errorf("%q leads to %q", s.Path, s.To.To)
			}
		}
	})
}
