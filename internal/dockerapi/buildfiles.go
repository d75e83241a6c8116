package dockerapi

import (
	"archive/tar"
	"cmp"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
)

// Bounds of the files of one build, beside those of a load.
const (
	maxNameBytes = 16 << 20 // of all names: they are kept in memory
	maxCompared  = 1 << 32  // bytes of names and patterns that are compared
	maxCopies    = 100_000  // names that all COPYs of a build stand for
)

// A contents is what all files of one build hold, in one file without a name:
// nothing of them is ever unpacked on the host.
type contents struct {
	file     *os.File
	size     int64
	names    int64            // bytes of all names
	compared int64            // bytes
	take     func(load) error // is asked before anything is kept
}

func newContents(dir string, take func(load) error) (*contents, error) {
	f, err := os.CreateTemp(dir, "build-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &contents{file: f, take: take}, nil
}

func (c *contents) close() { _ = c.file.Close() } // it has no name any more

// name counts a name that is kept.
func (c *contents) name(text string) error {
	if c.names += int64(len(text)); c.names > maxNameBytes {
		return refuse(RuleLimit, "send less", "the names of the build's files have more than %d bytes", maxNameBytes)
	}
	return nil
}

// A fileSet is a tree of files that a build copies from: its context, or files of
// another image.
type fileSet struct {
	of     *contents
	files  map[string]*setFile // by clean names, "." for the root
	sorted []string            // their names, once they are looked for
}

type setFile struct {
	header *tar.Header
	at     int64 // of its contents
}

// read reads a tar stream.
func (c *contents) read(from io.Reader) (*fileSet, error) {
	a, err := readArchive(from)
	if err != nil {
		return nil, err
	}
	s := &fileSet{of: c, files: map[string]*setFile{}}
	for {
		h, err := a.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err == nil {
			err = s.add(h, a.tar)
		}
		if err != nil {
			return nil, err
		}
	}
}

// add keeps one file.
func (s *fileSet) add(h *tar.Header, text io.Reader) error {
	c := s.of
	if err := c.take(load{entries: 1}); err != nil {
		return err
	}
	if err := c.name(h.Name + h.Linkname); err != nil {
		return err
	}
	f := &setFile{header: h, at: c.size}
	switch h.Typeflag {
	case tar.TypeReg:
		n, err := io.Copy(&metered{c.file, c.take}, text)
		if c.size += n; err != nil {
			return notKept(err)
		}
	case tar.TypeLink:
		to := s.files[relative(h.Linkname)]
		if to == nil || to.header.Typeflag != tar.TypeReg {
			return refuse(RuleBody, "", "%.200q in the archive is a link to what does not come before it", h.Name)
		}
		f = to
	case tar.TypeFifo:
		return nil
	}
	s.files[relative(h.Name)] = f
	return nil
}

// notKept is an error of a file's contents: of the archive, or a refusal.
func notKept(err error) error {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r
	}
	return notTar(err)
}

// relative is a clean name below the root of an archive, wherever it points.
func relative(name string) string {
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+name), "/"), ".")
}

// open reads the contents of a file.
func (s *fileSet) open(f *setFile) io.Reader {
	return io.NewSectionReader(s.of.file, f.at, f.header.Size)
}

// text is a whole file of bounded size.
func (s *fileSet) text(name string, most int64) (string, error) {
	f := s.files[relative(name)]
	if f == nil || f.header.Typeflag != tar.TypeReg || f.header.Size > most {
		return "", refuse(RuleBody, "", "the context has no file %.200q of at most %d bytes", name, most).status(http.StatusBadRequest)
	}
	data, err := io.ReadAll(s.open(f))
	return string(data), err
}

// below lists the names below a directory, sorted.
func (s *fileSet) below(dir string) []string {
	if s.sorted == nil {
		s.sorted = slices.Sorted(maps.Keys(s.files))
	}
	if dir == "." {
		return s.sorted
	}
	from, _ := slices.BinarySearch(s.sorted, dir+"/")
	to, _ := slices.BinarySearch(s.sorted, dir+string('/'+1))
	return s.sorted[from:to]
}

// match lists the names that a source of COPY stands for.
func (s *fileSet) match(pattern string) ([]string, error) {
	pattern = relative(pattern)
	if s.files[pattern] != nil || len(s.below(pattern)) > 0 {
		return []string{pattern}, nil
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return nil, nil
	}
	var list []string
	for _, n := range s.below(".") {
		if s.of.compared += int64(len(pattern) * len(n)); s.of.compared > maxCompared {
			return nil, refuse(RuleLimit, "name directories", "the patterns of this build's COPYs take too long to compare with all names")
		}
		if ok, err := path.Match(pattern, n); err == nil && ok {
			list = append(list, n)
		}
	}
	return list, nil
}

// directory reports whether name is one, also where the archive only has files
// below it.
func (s *fileSet) directory(name string) bool {
	f := s.files[name]
	return f == nil || f.header.Typeflag == tar.TypeDir
}

// A fileCopy is what one COPY brings into an image.
type fileCopy struct {
	from     *fileSet
	names    []string
	to       string // absolute
	into     bool   // to is a directory
	uid, gid int
	// unlessThere keeps a directory as it is if it exists already.
	unlessThere bool
}

// write writes the files as an archive of absolute places.
func (c *fileCopy) write(w *tar.Writer) error {
	for _, name := range c.names {
		to := strings.TrimPrefix(c.to, "/")
		if !c.from.directory(name) {
			if c.into {
				to = path.Join(to, path.Base(name))
			}
			if err := c.file(w, c.from.files[name], to); err != nil {
				return err
			}
			continue
		}
		if f := c.from.files[name]; f != nil && !c.into { // the directory itself; an existing one keeps its mode
			if err := c.file(w, f, to); err != nil {
				return err
			}
		}
		for _, n := range c.from.below(name) {
			if n == "." {
				continue
			}
			below := strings.TrimPrefix(n, name+"/")
			if err := c.file(w, c.from.files[n], path.Join(to, below)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *fileCopy) file(w *tar.Writer, f *setFile, to string) error {
	h := *f.header
	h.Name, h.Uid, h.Gid = to, c.uid, c.gid
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if err := w.WriteHeader(&h); err != nil {
		return notTar(err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w, c.from.open(f))
	return err
}
