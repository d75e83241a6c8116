package dockerapi

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http"
)

// Bounds of one archive.
const (
	maxNames = 200_000
	maxHead  = 4 << 20  // bytes of one file's header, with the records before it
	headOf   = 16 << 10 // bytes of the header of each file, on average
)

// An archiveReader reads the files of a tar stream and removes everything that
// could be more than a file: set-id bits, extended attributes (such as file
// capabilities) and unknown records. It refuses devices.
type archiveReader struct {
	tar   *tar.Reader
	from  *headReader
	names int
	heads int64 // bytes of all headers
	last  int64 // bytes that the last one took
}

// A headReader counts what is read, and ends where a header is too long: the tar
// package reads records for as long as they come.
type headReader struct {
	from    io.Reader
	n, most int64 // 0: any number
	zeros   int   // so many bytes of zero were the last
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.most > 0 && h.n >= h.most {
		return 0, errors.New("a header is too long")
	}
	n, err := h.from.Read(p)
	h.n += int64(n)
	if tail := n - len(bytes.TrimRight(p[:n], "\x00")); tail < n {
		h.zeros = tail
	} else {
		h.zeros += n
	}
	return n, err
}

// readArchive reads a tar stream, compressed by gzip or not.
func readArchive(from io.Reader) (*archiveReader, error) {
	b := bufio.NewReader(from)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return newArchive(b), nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, notTar(err)
	}
	return newArchive(z), nil
}

func newArchive(from io.Reader) *archiveReader {
	h := &headReader{from: from}
	return &archiveReader{tar: tar.NewReader(h), from: h}
}

func notTar(err error) error {
	return refuse(RuleBody, "send a tar stream, compressed by gzip or not", "the body is no tar stream: %v", err).status(http.StatusBadRequest)
}

// ended reports whether the archive has the two blocks that end one, if every file before
// was read. Without them the rest of it is missing.
func (a *archiveReader) ended() bool { return min(int64(a.from.zeros), a.last) >= 2*512 }

// next returns the next file. The error is io.EOF after the last one.
func (a *archiveReader) next() (*tar.Header, error) {
	for {
		h, err := a.head()
		if err != nil {
			return nil, err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo:
			return plain(h), nil
		case tar.TypeChar, tar.TypeBlock:
			return nil, refuse(RuleHost, "leave it out", "%.200q in the archive is a device: devices are the host's", h.Name)
		}
		return nil, refuse(RuleBody, "leave it out", "%.200q in the archive is neither a file nor a directory nor a link", h.Name)
	}
}

// head reads one header. The error is io.EOF after the last one.
func (a *archiveReader) head() (*tar.Header, error) {
	before := a.from.n
	a.from.most = before + maxHead
	h, err := a.tar.Next()
	a.from.most, a.last = 0, a.from.n-before
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, notTar(err)
	}
	a.names++
	a.heads += a.from.n - before
	switch {
	case a.names > maxNames:
		return nil, refuse(RuleLimit, "send less at a time", "the archive holds more than %d files", maxNames)
	case a.heads > maxHead+int64(a.names)*headOf:
		return nil, refuse(RuleLimit, "", "the headers of the archive have more than %d KiB for each file", headOf>>10)
	case len(h.Name) > maxPath || len(h.Linkname) > maxPath:
		return nil, refuse(RuleBody, "", "%.200q in the archive has a name or a target of more than %d bytes", h.Name, maxPath)
	}
	return h, nil
}

// plain is what of a header says what the file is, where, and whose.
func plain(h *tar.Header) *tar.Header {
	const kept = int64(fs.ModePerm) | 0o1000 // the sticky bit only narrows
	return &tar.Header{
		Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode & kept,
		Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime, Format: tar.FormatPAX,
	}
}

// rewrite writes the archive anew.
func (a *archiveReader) rewrite(to io.Writer) error {
	w := tar.NewWriter(to)
	for {
		h, err := a.next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err != nil {
			return err
		}
		if err = w.WriteHeader(h); err == nil {
			_, err = io.Copy(w, a.tar)
		}
		if errors.Is(err, io.ErrClosedPipe) {
			return err
		}
		if err != nil {
			return notTar(err)
		}
	}
}

// An upload is an archive that the guest sends to the engine.
type upload struct {
	*io.PipeReader
	why chan error
}

// startUpload begins to read the archive. It ends where it can't be read or is
// refused: the engine then answers, and is not left alone in the middle.
func startUpload(from io.Reader) *upload {
	r, w := io.Pipe()
	u := &upload{r, make(chan error, 1)}
	go func() {
		a, err := readArchive(cutOff{from})
		if err == nil {
			err = a.rewrite(w)
		}
		u.why <- err // before the engine can see the end
		w.Close()
	}()
	return u
}

// refused ends the upload once the engine has answered, and returns why it was
// refused, if it was.
func (u *upload) refused() error {
	u.Close()
	var r *Refusal
	select {
	case err := <-u.why:
		if errors.As(err, &r) {
			return r
		}
	default: // the engine wants no more of it
	}
	return nil
}
