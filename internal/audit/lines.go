package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A line is one line of the log without its newline. Its data is good until
// the next line is read.
type line struct {
	data   []byte
	number int   // from 1; 0 where it is not known
	offset int64 // of its first byte
	whole  bool  // it ended with a newline and was not too long
}

// end is the offset behind a whole line's newline.
func (l line) end() int64 { return l.offset + int64(len(l.data)) + 1 }

// forward yields the lines of r from the offset lo, where a line begins, to hi.
// A line longer than maxLine, and a last one without newline, are yielded in
// part and not whole.
func forward(r io.ReaderAt, lo, hi int64) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		b := bufio.NewReaderSize(io.NewSectionReader(r, lo, hi-lo), int(min(maxLine, hi-lo+1)))
		at := lo
		for n := 1; at < hi; n++ {
			data, err := b.ReadSlice('\n')
			ln := line{data: bytes.TrimSuffix(data, []byte("\n")), number: n, offset: at, whole: err == nil}
			at += int64(len(data))
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
				yield(ln, err)
				return
			}
			if !yield(ln, nil) || errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				continue
			}
			skipped, err := skipLine(b)
			if at += skipped; err != nil {
				yield(ln, err)
				return
			}
		}
	}
}

// skipLine reads to the end of a line, or of everything.
func skipLine(b *bufio.Reader) (n int64, err error) {
	for {
		data, err := b.ReadSlice('\n')
		n += int64(len(data))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return n, nil
		}
		return n, err
	}
}

// backward yields the lines of r before hi from the last to the first. It
// reads windows of a few lines' size from the end.
func backward(r io.ReaderAt, hi int64) iter.Seq2[line, error] {
	const window = 4 * maxLine
	return func(yield func(line, error) bool) {
		buf := make([]byte, window)
		for hi > 0 {
			lo := max(0, hi-window)
			part := buf[:hi-lo]
			if _, err := r.ReadAt(part, lo); err != nil {
				yield(line{offset: lo}, err)
				return
			}
			next, ok := backwardIn(part, lo, yield)
			if !ok {
				return
			}
			if next == hi { // no line begins in the window: too long for one
				var err error
				if next, err = lineStart(r, lo); err != nil {
					yield(line{offset: lo}, err)
					return
				}
				if !yield(line{data: part, offset: next}, nil) {
					return
				}
			}
			hi = next
		}
	}
}

// backwardIn yields the lines that begin in part, which stands at the offset
// lo, last first. It returns the offset of the first of them.
func backwardIn(part []byte, lo int64, yield func(line, error) bool) (int64, bool) {
	for len(part) > 0 {
		body := bytes.TrimSuffix(part, []byte("\n"))
		i := bytes.LastIndexByte(body, '\n')
		if i < 0 && lo > 0 {
			break
		}
		data := body[i+1:]
		ln := line{data: data, offset: lo + int64(i) + 1, whole: len(body) < len(part) && len(data) < maxLine}
		if !yield(ln, nil) {
			return 0, false
		}
		part = part[:i+1]
	}
	return lo + int64(len(part)), true
}

// lineStart returns where the line that reaches over the offset hi begins.
func lineStart(r io.ReaderAt, hi int64) (int64, error) {
	buf := make([]byte, maxLine)
	for hi > 0 {
		lo := max(0, hi-maxLine)
		part := buf[:hi-lo]
		if _, err := r.ReadAt(part, lo); err != nil {
			return 0, fmt.Errorf("looking for a line's beginning: %w", err)
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return lo + int64(i) + 1, nil
		}
		hi = lo
	}
	return 0, nil
}
