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

// maxNames bounds the files of one archive.
const maxNames = 200_000

// An archiveReader reads the files of a tar stream, of which everything that
// could be more than a file is left out: set-id bits, extended attributes (file
// capabilities are such) and records that are not known. It refuses devices.
type archiveReader struct {
	tar   *tar.Reader
	names int
}

// readArchive reads a tar stream, compressed by gzip or not.
func readArchive(from io.Reader) (*archiveReader, error) {
	b := bufio.NewReader(from)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return &archiveReader{tar: tar.NewReader(b)}, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, notTar(err)
	}
	return &archiveReader{tar: tar.NewReader(z)}, nil
}

func notTar(err error) error {
	return refuse(RuleBody, "send a tar stream, compressed by gzip or not", "the body is no tar stream: %v", err).status(http.StatusBadRequest)
}

// next returns the next file. The error is io.EOF after the last one.
func (a *archiveReader) next() (*tar.Header, error) {
	for {
		h, err := a.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, notTar(err)
		}
		if a.names++; a.names > maxNames {
			return nil, refuse(RuleLimit, "send less at a time", "the archive holds more than %d files", maxNames)
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

// An upload is an archive of the guest's on its way to the engine.
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
