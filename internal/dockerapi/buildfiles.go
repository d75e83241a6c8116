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

// A fileSet is a tree of files that a build copies from: its context, or files of
// another image. Contents are in one file without a name, so nothing of it is ever
// unpacked on the host.
type fileSet struct {
	data  *os.File
	size  int64
	files map[string]*setFile // by clean names, "." for the root
}

type setFile struct {
	header *tar.Header
	data   *os.File
	at     int64 // of the contents in data
}

// readFileSet reads a tar stream. take is asked before anything is kept.
func readFileSet(from io.Reader, dir string, take func(load) error) (*fileSet, error) {
	a, err := readArchive(from)
	if err != nil {
		return nil, err
	}
	data, err := os.CreateTemp(dir, "build-")
	if err != nil {
		return nil, err
	}
	s := &fileSet{data: data, files: map[string]*setFile{}}
	if err = os.Remove(data.Name()); err == nil {
		err = s.read(a, take)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *fileSet) close() { _ = s.data.Close() } // it has no name any more

func (s *fileSet) read(a *archiveReader, take func(load) error) error {
	for {
		h, err := a.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(load{entries: 1}); err != nil {
			return err
		}
		name := relative(h.Name)
		f := &setFile{header: h, data: s.data, at: s.size}
		switch h.Typeflag {
		case tar.TypeReg:
			n, err := io.Copy(&metered{s.data, take}, a.tar)
			if err != nil {
				return notTar(err)
			}
			s.size += n
		case tar.TypeLink:
			to := s.files[relative(h.Linkname)]
			if to == nil || to.header.Typeflag != tar.TypeReg {
				return refuse(RuleBody, "", "%.200q in the archive is a link to what does not come before it", h.Name)
			}
			same := *to.header
			f = &setFile{header: &same, data: to.data, at: to.at}
		case tar.TypeFifo:
			continue
		}
		s.files[name] = f
	}
}

// relative is a clean name below the root of an archive, wherever it points.
func relative(name string) string {
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+name), "/"), ".")
}

// open reads the contents of a file.
func (f *setFile) open() io.Reader { return io.NewSectionReader(f.data, f.at, f.header.Size) }

// text is a whole file of bounded size.
func (s *fileSet) text(name string, most int64) (string, error) {
	f := s.files[relative(name)]
	if f == nil || f.header.Typeflag != tar.TypeReg || f.header.Size > most {
		return "", refuse(RuleBody, "", "the context has no file %.200q of at most %d bytes", name, most).status(http.StatusBadRequest)
	}
	data, err := io.ReadAll(f.open())
	return string(data), err
}

// match lists the names that a source of COPY stands for.
func (s *fileSet) match(pattern string) []string {
	pattern = relative(pattern)
	if s.files[pattern] != nil || slices.ContainsFunc(slices.Collect(maps.Keys(s.files)), func(n string) bool { return pattern == "." || strings.HasPrefix(n, pattern+"/") }) {
		return []string{pattern}
	}
	var list []string
	for _, n := range slices.Sorted(maps.Keys(s.files)) {
		if ok, err := path.Match(pattern, n); err == nil && ok {
			list = append(list, n)
		}
	}
	return list
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
		if f := c.from.files[name]; f != nil && !c.into { // the directory itself; one that is there keeps its mode
			if err := c.file(w, f, to); err != nil {
				return err
			}
		}
		for _, n := range slices.Sorted(maps.Keys(c.from.files)) {
			below, ok := strings.CutPrefix(n, name+"/")
			if name == "." && n != "." {
				below, ok = n, true
			}
			if ok {
				if err := c.file(w, c.from.files[n], path.Join(to, below)); err != nil {
					return err
				}
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
	_, err := io.Copy(w, f.open())
	return err
}
