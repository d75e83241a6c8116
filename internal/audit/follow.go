package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// pollEvery is how often Tail looks for new records.
const pollEvery = 200 * time.Millisecond

// Tail yields the records that f chooses as they are appended, until ctx ends,
// f.Limit is reached or the caller stops. It begins at the log's end, or with
// f.Since at its beginning. It may be started before there is a log, and follows
// the new log when the old one is moved away. Broken lines are yielded as
// *Fault.
func Tail(ctx context.Context, dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t := follower{path: filepath.Join(dir, logName), filter: f, left: f.Limit, yield: yield}
		defer t.close()
		t.skip = f.Since.IsZero()
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for t.poll() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// A follower reads lines appended to the file at path.
type follower struct {
	path   string
	filter Filter
	left   int // records to yield, where the filter has a limit
	yield  func(Entry, error) bool

	file *os.File // nil until the log exists
	at   int64    // what is before was read
	skip bool     // the first file's contents are not wanted
}

func (t *follower) close() {
	if t.file != nil {
		_ = t.file.Close() // was only read
		t.file = nil
	}
}

// poll yields new events and reports whether to go on.
func (t *follower) poll() bool {
	if t.file != nil {
		if !t.read() {
			return false
		}
		if sameFile(t.file, t.path) {
			return true
		}
		t.close() // it was read to its end
	}
	if err := t.open(); err != nil {
		t.yield(Entry{}, err)
		return false
	}
	return t.file == nil || t.read()
}

// open opens the file if there is one.
func (t *follower) open() (err error) {
	defer func() { t.skip = false }() // later files are wanted whole
	t.file, err = openRegular(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.file = nil
		return nil
	}
	if err != nil {
		return err
	}
	if t.at = 0; !t.skip {
		return nil
	}
	fi, err := t.file.Stat()
	if err != nil {
		return err
	}
	t.at, err = lastNewline(t.file, fi.Size())
	return err
}

// read yields the whole lines behind t.at and reports whether to go on.
func (t *follower) read() bool {
	fi, err := t.file.Stat()
	if err != nil {
		return t.yield(Entry{}, err)
	}
	if fi.Size() < t.at {
		f := &Fault{Kind: Truncated, Offset: fi.Size(), Want: fmt.Sprintf("at least %d bytes", t.at), Got: fmt.Sprintf("%d", fi.Size())}
		t.at = fi.Size()
		return t.yield(Entry{}, f)
	}
	end, err := lastNewline(t.file, fi.Size())
	if err != nil {
		t.yield(Entry{}, err)
		return false
	}
	if end <= t.at {
		return true
	}
	return t.yieldLines(end)
}

func (t *follower) yieldLines(end int64) bool {
	more := true
	f := t.filter
	f.Limit = 0
	choose(forward(t.file, t.at, end), f, func(e Entry, err error) bool {
		e.Line = 0
		more = t.yield(e, err)
		if err == nil && t.filter.Limit > 0 {
			t.left--
			more = more && t.left > 0
		}
		return more
	})
	t.at = end
	return more
}
