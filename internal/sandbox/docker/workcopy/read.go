package workcopy

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// blockSize is that of tar, and trailer how many bytes of zeros end a stream
// (pax(1), "ustar Interchange Format").
const (
	blockSize = 512
	trailer   = 2 * blockSize
)

// maxPath and maxName are what Linux takes (limits.h(0p)).
const (
	maxPath = 4096
	maxName = 255
)

// A Returned is what an entry of a stream is, and where in the stream a file's
// bytes are.
type Returned struct {
	Entry
	Offset int64
	Time   time.Time
	odd    string // its kind, which is never brought back, or ""
}

// Contents are a stream's, in its order.
type Contents struct {
	At    map[string]Returned
	Order []string
}

// A StreamError refuses a stream that no engine makes of a workspace. Nothing of
// it is used.
type StreamError struct{ Why string }

// Error says it.
func (e *StreamError) Error() string {
	return "what came back is no copy of the workspace: " + e.Why + "; nothing of it was written"
}

func refuse(format string, args ...any) error { return &StreamError{fmt.Sprintf(format, args...)} }

// Read reads a whole stream of size bytes, in which every name begins with prefix.
// It errs with a *StreamError if a name leads elsewhere, occurs twice, or lies
// below something that is no directory; if a limit is exceeded; and if the
// stream's end is missing, so that truncated entries do not count as removed.
func Read(r io.ReaderAt, size int64, prefix string, l Limits) (*Contents, error) {
	var end [trailer]byte
	if size < trailer || size%blockSize != 0 {
		return nil, refuse("%d bytes are no whole number of blocks", size)
	}
	if _, err := r.ReadAt(end[:], size-trailer); err != nil {
		return nil, err
	}
	if !bytes.Equal(end[:], make([]byte, trailer)) {
		return nil, refuse("its end is missing")
	}
	in := &counted{r: io.NewSectionReader(r, 0, size)}
	c := &reader{Contents: &Contents{At: map[string]Returned{}}, prefix: prefix, limits: l, in: in, tar: tar.NewReader(in)}
	if err := c.all(); err != nil {
		return nil, err
	}
	return c.Contents, nil
}

// counted knows how far it was read. It can't seek, so that the tar reader reads
// everything through it.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

type reader struct {
	*Contents
	prefix string
	limits Limits
	in     *counted
	tar    *tar.Reader
	bytes  int64
	top    bool // the workspace itself was seen
}

func (c *reader) all() error {
	for {
		h, err := c.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return refuse("%v", err)
		}
		if err := c.one(h); err != nil {
			return err
		}
	}
	if !c.top {
		return refuse("the workspace is not in it")
	}
	return nil
}

// one takes one entry.
func (c *reader) one(h *tar.Header) error {
	name := strings.TrimSuffix(h.Name, "/")
	if name == c.prefix {
		if c.top || h.Typeflag != tar.TypeDir {
			return refuse("%q is no directory, or there twice", name)
		}
		c.top = true
		return nil
	}
	rel, ok := strings.CutPrefix(name, c.prefix+"/")
	if !ok || !c.top {
		return refuse("%q does not lie in it", h.Name)
	}
	if err := c.place(rel); err != nil {
		return err
	}
	if len(c.At) >= c.limits.Entries {
		return refuse("more than %d files", c.limits.Entries)
	}
	e, err := c.entry(h)
	if err != nil {
		return err
	}
	c.At[rel] = e
	c.Order = append(c.Order, rel)
	return nil
}

// place refuses a name that is not one of its own, right below a directory of
// the stream.
func (c *reader) place(rel string) error {
	if rel == "" || rel == "." || path.Clean(rel) != rel || !filepath.IsLocal(rel) || strings.ContainsRune(rel, 0) || len(rel) >= maxPath || len(path.Base(rel)) > maxName {
		return refuse("%q is no name in it", rel)
	}
	if _, twice := c.At[rel]; twice {
		return refuse("%q is there twice", rel)
	}
	if dir := path.Dir(rel); dir != "." && c.At[dir].Kind != Dir {
		return refuse("%q lies below what is no directory", rel)
	}
	return nil
}

// entry reads what one is. Nothing but permissions is taken of a mode.
func (c *reader) entry(h *tar.Header) (Returned, error) {
	r := Returned{Entry: Entry{Mode: fs.FileMode(h.Mode & 0o777)}, Time: h.ModTime}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return r, refuse("%q has holes", h.Name)
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return c.file(h, r)
	case tar.TypeDir:
		r.Kind = Dir
	case tar.TypeSymlink:
		if r.Kind, r.To = Link, h.Linkname; r.To == "" || len(r.To) >= maxPath || strings.ContainsRune(r.To, 0) {
			return r, refuse("%q is a link to nothing", h.Name)
		}
	case tar.TypeLink:
		rel, ok := strings.CutPrefix(h.Linkname, c.prefix+"/")
		other := c.At[rel]
		if !ok || other.Kind != File {
			return r, refuse("%q is another name of %q, which is no file before it", h.Name, h.Linkname)
		}
		return other, c.count(other.Size) // it becomes a file of its own
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		r.odd = "it is a device or a pipe"
	default:
		return r, refuse("%q is of the type %q", h.Name, h.Typeflag)
	}
	if h.Size != 0 {
		return r, refuse("%q has bytes and is no file", h.Name)
	}
	return r, nil
}

// count refuses more bytes, as they will be written, than the limits allow.
func (c *reader) count(size int64) error {
	if size < 0 || size > c.limits.Bytes-c.bytes {
		return refuse("more than %d MiB", c.limits.Bytes>>20)
	}
	c.bytes += size
	return nil
}

// file reads a file's bytes.
func (c *reader) file(h *tar.Header, r Returned) (Returned, error) {
	r.Kind, r.Size, r.Offset = File, h.Size, c.in.n
	if err := c.count(h.Size); err != nil {
		return r, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, c.tar)
	if err != nil || n != h.Size || c.in.n != r.Offset+n {
		return r, refuse("%q has %d bytes of %d, %v", h.Name, n, h.Size, err)
	}
	copy(r.Sum[:], sum.Sum(nil))
	return r, nil
}
