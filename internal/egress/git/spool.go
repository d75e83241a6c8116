package git

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolMemory is how much of a pack stays in memory before a file is used.
const spoolMemory = 1 << 20

// errSpoolFull says that a pack had to be held in full and is too long.
var errSpoolFull = errors.New("the pack is larger than what may be held back until it is judged; push in smaller steps")

// A spool holds the bytes of a pack that have been read but not forwarded:
// in memory at first, then in a file that has no name.
type spool struct {
	dir  string
	max  int64
	size int64
	mem  []byte
	file *os.File
	free func() // also released with it
}

// Write appends p, or fails with errSpoolFull.
func (s *spool) Write(p []byte) (int, error) {
	if s.size+int64(len(p)) > s.max {
		return 0, errSpoolFull
	}
	if s.file == nil && len(s.mem)+len(p) > spoolMemory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	s.size += int64(len(p))
	if s.file == nil {
		s.mem = append(s.mem, p...)
		return len(p), nil
	}
	return s.file.Write(p)
}

func (s *spool) spill() error {
	f, err := os.CreateTemp(s.dir, "bawn-pack-*")
	if err != nil {
		return fmt.Errorf("hold the pack back: %w", err)
	}
	s.file = f
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("hold the pack back: %w", err)
	}
	_, err = f.Write(s.mem)
	s.mem = nil
	return err
}

// from reads the held bytes from offset on.
func (s *spool) from(offset int64) io.Reader {
	return io.NewSectionReader(s, offset, s.size-offset)
}

// ReadAt reads written bytes.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	if off >= int64(len(s.mem)) {
		return 0, io.EOF
	}
	n := copy(p, s.mem[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Close gives memory and file back.
func (s *spool) Close() error {
	if s.free != nil {
		defer s.free()
	}
	s.mem = nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
