package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A FaultKind is a kind of damage to a log.
type FaultKind string

const (
	Tampered     FaultKind = "tampered"      // a record's content, form or chaining was changed
	Truncated    FaultKind = "truncated"     // records that the head counts are gone from the end
	Removed      FaultKind = "removed"       // records are gone from elsewhere
	Reordered    FaultKind = "reordered"     // the record that belongs here stands further on
	Inserted     FaultKind = "inserted"      // a record that does not belong here, or a second time
	Torn         FaultKind = "torn"          // half a record at the end; the next append moves it aside
	HeadMismatch FaultKind = "head mismatch" // the head file speaks of another log, or is missing
)

// A Fault is the first thing that is wrong with a log.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Line   int       `json:"line"`   // from 1; 0 where it was not counted
	Offset int64     `json:"offset"` // bytes from the beginning
	Want   string    `json:"want"`
	Got    string    `json:"got"`
}

// Error says where and what.
func (f *Fault) Error() string {
	where := fmt.Sprintf("line %d", f.Line)
	if f.Line == 0 {
		where = fmt.Sprintf("offset %d", f.Offset)
	}
	return fmt.Sprintf("%s: %s: got %s; want %s; see \"bawn audit verify\"", where, f.Kind, f.Got, f.Want)
}

// A Report is what Verify found.
type Report struct {
	Records uint64 `json:"records"` // that are in order, from the first on
	Size    int64  `json:"size"`    // of these, in bytes
	Hash    string `json:"hash"`    // of the last of them
	// Lag is the number of records that the head does not count yet. It is not
	// 0 after a crash between two writes, which the next append repairs.
	Lag   uint64 `json:"lag"`
	Fault *Fault `json:"fault,omitempty"` // nil for a log in order
}

// Verify checks the whole log in dir: every record's hash and place in the
// chain, and the head. A log that does not exist is empty and in order. Records
// appended meanwhile are not checked. The error says that the log couldn't be
// read; faults of the log are in the report.
func Verify(dir string) (Report, error) {
	s, err := takeSnapshot(dir)
	if err != nil {
		return Report{}, err
	}
	defer s.close()
	return check(s.log, s.size, s.head)
}

// check verifies the first size bytes of r against a head file's content.
func check(r io.ReaderAt, size int64, rawHead []byte) (Report, error) {
	head, ok := parseHead(rawHead)
	if !ok && (size > 0 || len(rawHead) > 0) {
		return Report{Fault: badHead(rawHead)}, nil
	}
	var c chain
	var met position // where the chain is as long as the head says
	for ln, err := range forward(r, 0, size) {
		if err != nil {
			return Report{}, err
		}
		if f := c.next(ln); f != nil {
			f, err := c.explain(f, r, ln, size, head)
			return c.report(0, f), err
		}
		if c.at.size == head.size {
			met = c.at
		}
	}
	switch {
	case head.size > c.at.size:
		f := truncated(head, c.at.size)
		f.Line = int(c.at.seq) + 1
		return c.report(0, f), nil
	case met != head:
		return c.report(0, headFault(cmp.Or(met, c.at), head)), nil
	}
	return c.report(c.at.seq-head.seq, nil), nil
}

// A chain walks from record to record.
type chain struct{ at position }

func (c *chain) report(lag uint64, f *Fault) Report {
	r := Report{Records: c.at.seq, Size: c.at.size, Lag: lag, Fault: f}
	if c.at.seq > 0 {
		r.Hash = fmt.Sprintf("%x", c.at.hash)
	}
	return r
}

// next moves on over one line, or says why it can't.
func (c *chain) next(ln line) *Fault {
	f := &Fault{Line: ln.number, Offset: ln.offset, Want: fmt.Sprintf("record %d after hash %x", c.at.seq+1, c.at.hash)}
	if !ln.whole {
		f.Kind, f.Got = Torn, fmt.Sprintf("%d bytes without a newline", len(ln.data))
		return f
	}
	rec, err := parseRecord(ln.data)
	if err != nil {
		f.Kind, f.Got = Tampered, err.Error()
		return f
	}
	if rec.seq == c.at.seq+1 && rec.prev == c.at.hash {
		c.at = position{rec.seq, rec.hash, ln.end()}
		return nil
	}
	f.Kind, f.Got = Tampered, fmt.Sprintf("record %d after hash %x", rec.seq, rec.prev)
	switch {
	case rec.seq <= c.at.seq:
		f.Kind = Inserted
	case rec.seq > c.at.seq+1:
		f.Kind = Removed
	}
	return f
}

// explain looks at the rest of the log to distinguish faults: the expected
// record may come later, and half a record at the end may be one that the head
// counts.
func (c *chain) explain(f *Fault, r io.ReaderAt, ln line, size int64, head position) (*Fault, error) {
	switch f.Kind {
	case Torn:
		if len(ln.data) >= maxLine {
			f.Kind, f.Got = Tampered, fmt.Sprintf("a line longer than %d bytes", maxLine)
		} else if head.size > ln.offset {
			f.Kind = Truncated
		}
		return f, nil
	case Inserted:
		return f, nil
	}
	for later, err := range forward(r, ln.offset, size) {
		if err != nil {
			return f, err
		}
		rec, err := parseRecord(later.data)
		if err != nil || !later.whole || rec.seq != c.at.seq+1 || rec.prev != c.at.hash {
			continue
		}
		if f.Kind == Removed {
			f.Kind = Reordered
		} else {
			f.Kind = Inserted
		}
		break
	}
	return f, nil
}

func truncated(head position, end int64) *Fault {
	return &Fault{Kind: Truncated, Offset: end, Want: head.String(), Got: fmt.Sprintf("the end after %d bytes", end)}
}

func headFault(log, head position) *Fault {
	return &Fault{Kind: HeadMismatch, Line: int(log.seq), Offset: log.size, Want: head.String(), Got: log.String()}
}

func badHead(raw []byte) *Fault {
	return &Fault{Kind: HeadMismatch, Want: "a head file", Got: fmt.Sprintf("%q", raw)}
}

// A snapshot is a log that is open for reading, with its size and head as they
// were at one moment.
type snapshot struct {
	log  *os.File // nil if it does not exist
	size int64
	head []byte
}

func (s snapshot) close() {
	if s.log != nil {
		_ = s.log.Close() // was only read
	}
}

// takeSnapshot opens the log in dir. It accepts a log of any owner, so that a log
// from another machine can be verified, but only regular files.
func takeSnapshot(dir string) (snapshot, error) {
	log, err := openRegular(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) {
		head, err := headAt(dir)
		return snapshot{head: head}, err
	}
	if err != nil {
		return snapshot{}, err
	}
	if err := lock(context.Background(), log, shared); err != nil {
		return snapshot{}, errors.Join(err, log.Close())
	}
	defer unlock(log)
	fi, err := log.Stat()
	if err == nil {
		s := snapshot{log: log, size: fi.Size()}
		if s.head, err = headAt(dir); err == nil {
			return s, nil
		}
	}
	return snapshot{}, errors.Join(err, log.Close())
}

// headAt returns the head file's content, or nil if the file does not exist.
func headAt(dir string) ([]byte, error) {
	f, err := openRegular(filepath.Join(dir, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readHead(f)
}

// openRegular opens a regular file for reading; O_NONBLOCK keeps a FIFO in its
// place from holding us up.
func openRegular(path string) (*os.File, error) {
	f, err := openAt(unix.AT_FDCWD, path, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is a %v; want a regular file", path, fi.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
