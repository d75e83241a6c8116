package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bawn-dev/bawn"
	"golang.org/x/sys/unix"
)

// settle brings l.tail to the log's end and repairs the effects of a crash:
// half a record at the end is moved aside, a head that lags is moved on. It
// returns the events that say so. Damage that a crash can't cause is a *Fault.
// The caller holds the lock.
func (l *Log) settle() ([]bawn.Event, error) {
	fi, err := l.files.log.Stat()
	if err != nil {
		return nil, err
	}
	if l.known && fi.Size() == l.tail.size {
		return nil, nil // nobody has written since we did
	}
	head, err := l.readHead(fi.Size())
	if err != nil {
		return nil, err
	}
	end, err := lastNewline(l.files.log, fi.Size())
	if err != nil {
		return nil, err
	}
	if head.size > end {
		return nil, truncated(head, end)
	}
	var notes []bawn.Event
	if l.tail, err = l.catchUp(head, end); err != nil {
		return nil, err
	}
	if l.tail.size > head.size {
		notes = append(notes, lagNote(head, l.tail))
	}
	if end < fi.Size() {
		note, err := l.seal(end, fi.Size())
		if err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, nil
}

// readHead returns the head of a log of the given size. An empty log without
// one is new and gets its first.
func (l *Log) readHead(size int64) (position, error) {
	raw, err := readHead(l.files.head)
	if err != nil {
		return position{}, err
	}
	if len(raw) == 0 && size == 0 {
		return position{}, writeHead(l.files.head, position{})
	}
	head, ok := parseHead(raw)
	if !ok {
		return position{}, badHead(raw)
	}
	return head, nil
}

// catchUp returns the position at end, a record's end at or behind the head.
// It reads the last record only where the head is right, and all that follow
// the head where it lags.
func (l *Log) catchUp(head position, end int64) (position, error) {
	if head.size < end {
		return l.replay(head, end)
	}
	if end == 0 {
		if head != (position{}) {
			return head, headFault(position{}, head)
		}
		return head, nil
	}
	last, err := lastRecord(l.files.log, end)
	if err != nil {
		return head, err
	}
	if got := (position{last.seq, last.hash, end}); got != head {
		return head, headFault(got, head)
	}
	return head, nil
}

// replay follows the chain from the head to end.
func (l *Log) replay(head position, end int64) (position, error) {
	c := chain{at: head}
	for ln, err := range forward(l.files.log, head.size, end) {
		if err != nil {
			return head, err
		}
		if f := c.next(ln); f != nil {
			f.Line = 0 // counted from the head, not from the beginning
			return head, f
		}
	}
	return c.at, nil
}

// seal copies the torn bytes between end and size to a file of their own and
// takes them off the log.
func (l *Log) seal(end, size int64) (bawn.Event, error) {
	torn := make([]byte, size-end) // lastNewline bounds it
	if _, err := l.files.log.ReadAt(torn, end); err != nil {
		return bawn.Event{}, err
	}
	name, err := keepTorn(l.dir, l.tail.seq+1, torn)
	if err != nil {
		return bawn.Event{}, fmt.Errorf("torn record can't be kept: %w", err)
	}
	if err := l.files.log.Truncate(end); err != nil {
		return bawn.Event{}, err
	}
	return note("seal", name, "the last record was cut short, as by a crash in mid-write; it was moved to this file", map[string]string{
		"bytes": strconv.Itoa(len(torn)), "sha256": fmt.Sprintf("%x", sha256.Sum256(torn))}), nil
}

// keepTorn writes torn to log.jsonl.torn-SEQ, or -SEQ.1, -SEQ.2 … where that
// exists, and returns the name.
func keepTorn(dir string, seq uint64, torn []byte) (string, error) {
	for try := 0; ; try++ {
		name := logName + ".torn-" + strconv.FormatUint(seq, 10)
		if try > 0 {
			name += "." + strconv.Itoa(try)
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrExist) && try < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(torn)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(err, os.Remove(path))
		}
		return name, nil
	}
}

func lagNote(head, log position) bawn.Event {
	return note("repair", headName, "the head lagged behind the log, as by a crash between two writes; it was moved on", map[string]string{
		"head": strconv.FormatUint(head.seq, 10), "log": strconv.FormatUint(log.seq, 10)})
}

// note is an event of the log about itself.
func note(operation, resource, reason string, details map[string]string) bawn.Event {
	return bawn.Event{Kind: "audit", Operation: operation, Resource: resource, Reason: reason,
		Requested: bawn.Allow, Resolved: bawn.Allow, Source: "auto", Details: details}
}

// lastNewline returns the offset behind the last newline before size, or 0. It
// reads no further back than a line can be long.
func lastNewline(r io.ReaderAt, size int64) (int64, error) {
	for _, window := range []int64{1, maxLine} {
		lo := max(0, size-window)
		buf := make([]byte, size-lo)
		if _, err := r.ReadAt(buf, lo); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return lo + int64(i) + 1, nil
		}
		if lo == 0 {
			return 0, nil
		}
	}
	return 0, &Fault{Kind: Tampered, Offset: size, Want: "a newline", Got: fmt.Sprintf("none in the last %d bytes", maxLine)}
}

// lastRecord returns the record that ends at end, which is greater than 0.
func lastRecord(r io.ReaderAt, end int64) (record, error) {
	buf := make([]byte, min(end, 4<<10))
	for {
		lo := end - int64(len(buf))
		if _, err := r.ReadAt(buf, lo); err != nil {
			return record{}, err
		}
		i := bytes.LastIndexByte(buf[:len(buf)-1], '\n')
		if i < 0 && lo > 0 && len(buf) < maxLine {
			buf = make([]byte, min(end, maxLine))
			continue
		}
		rec, err := parseRecord(buf[i+1 : len(buf)-1])
		if err != nil {
			return record{}, &Fault{Kind: Tampered, Offset: lo + int64(i) + 1, Want: "a whole record", Got: err.Error()}
		}
		return rec, nil
	}
}
