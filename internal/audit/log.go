// Package audit records decisions and actions, and reads them back. The records
// are chained by hash, so that a change to any of them shows. The format is
// described in docs/audit-format.md.
//
// The log is the truth: there is no database. Many processes append to one log.
// Each append takes an exclusive lock, one write, and one small write to the
// head file beside it, which reveals the loss of whole records.
//
// A writer holds an exclusive flock(2) on log.jsonl. It reads the last record unless the
// log is as long as it left it, writes lines with one write(2), and the head with one
// pwrite(2). Readers take a shared lock while they note size and head. Another program
// that appends must do the same.
//
// A failed write is undone and reported. The end of a connection or a request is written
// with the next decision, before it, or after 100 ms: a proxy that is killed may lose the
// ends of its last 100 ms, never a decision. While an end can't be written, nothing is
// allowed.
//
// The next append repairs what a crash left. Half a record is copied to log.jsonl.torn-N,
// cut off, and noted as "audit/seal" with size and SHA-256. A head that lags behind a
// continuing chain moves on, noted as "audit/repair".
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// The names of the files in the log's directory.
const (
	logName  = "log.jsonl"
	headName = "head"
)

// ErrClosed is returned by Record after Close.
var ErrClosed = errors.New("audit log is closed")

// Options change how a Log writes. The zero Options are the usual ones.
type Options struct {
	// Sync waits for the disk on each Record (fsync(2)). Without it, records
	// survive a killed process but the last seconds may be lost with the
	// machine's power.
	Sync bool
}

// A Log appends events. It may be used by many goroutines, and many processes
// may have the same log open.
type Log struct {
	dir     string
	opts    Options
	cleaner cleaner

	mu    sync.Mutex
	files files
	tail  position // the end of the log as we left it, if known
	known bool
	line  []byte // buffer of the last records

	later     [][]byte // events that are written with the next one
	laterSize int      // in bytes
	flush     *time.Timer
	lost      error // why an event that was to be written later is not there

	group group
}

var _ bawn.Recorder = (*Log)(nil)

// Open opens the log in the directory dir, and creates both where they are
// missing (modes 0700 and 0600). It refuses a directory or file that belongs to
// somebody else, that others may enter, read or write, that is a symbolic link
// or that has a second name. It does not read the log: a broken one is found by
// Record.
func Open(dir string, opts Options) (*Log, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f, err := openFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &Log{dir: dir, opts: opts, files: f}, nil
}

// Close writes what waits (Later) and closes the log. Records that were made
// stay.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files.log == nil {
		return nil
	}
	var err error
	if len(l.later) > 0 {
		err = l.write(context.Background())
	}
	l.written() // there is no further attempt
	f := l.files
	l.files = files{}
	return errors.Join(err, f.close())
}

// Record appends one event, with credentials taken out and with ID and Time
// filled in where they are zero. An event larger than 64 KiB is cut and says
// so. It waits for other writers until ctx ends, at most ten seconds. Events of
// several goroutines are written, and waited for on the disk, together. On an
// error the event is not in the log; the caller must not let the action happen.
//
// A log that is damaged takes no more records: the error is then a *Fault.
func (l *Log) Record(ctx context.Context, e bawn.Event) error {
	event, err := encode(e, &l.cleaner)
	if err != nil {
		return fmt.Errorf("audit event %q can't be written: %w", e.Operation, err)
	}
	return l.together(ctx, event)
}

// commit appends all events, or none.
func (l *Log) commit(ctx context.Context, events ...[]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files.log == nil {
		return ErrClosed
	}
	if err := l.lost; err != nil {
		l.lost = nil
		return fmt.Errorf("an event before is lost: %w", err)
	}
	return l.write(ctx, events...)
}

// write appends what waits and then events. Either all of it is in the log
// afterwards or nothing.
func (l *Log) write(ctx context.Context, events ...[]byte) error {
	if err := l.record(ctx, append(l.later, events...)); err != nil {
		l.known = false
		return fmt.Errorf("audit log %q: %w", l.dir, err)
	}
	l.written()
	return nil
}

func (l *Log) record(ctx context.Context, events [][]byte) error {
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer unlock(l.files.log)
	notes, err := l.settle()
	if err != nil {
		return err
	}
	for _, n := range notes {
		note, err := encode(n, nil)
		if err != nil {
			return err
		}
		if err := l.append(note); err != nil {
			return err
		}
	}
	return l.append(events...)
}

// acquire locks the log. Somebody may have moved it away while we had it open
// or waited: then the file at its place now is opened instead.
func (l *Log) acquire(ctx context.Context) error {
	for range 3 {
		if err := lock(ctx, l.files.log, exclusive); err != nil {
			return err
		}
		if l.files.inPlace(l.dir) {
			return nil
		}
		unlock(l.files.log)
		f, err := openFiles(l.dir)
		if err != nil {
			return err
		}
		_ = l.files.close() // nothing of ours is unwritten
		l.files, l.known = f, false
	}
	return errors.New("log is replaced again and again; end the program that does it")
}

// append writes records, by one write, and the head. It undoes them if only a
// part was written, or if the head doesn't count them.
func (l *Log) append(events ...[]byte) error {
	next := l.tail
	l.line = l.line[:0]
	for _, event := range events {
		next.seq++
		l.line, next.hash = appendRecord(l.line, next.seq, next.hash, event)
	}
	next.size += int64(len(l.line))
	_, err := l.files.log.Write(l.line)
	if err == nil && l.opts.Sync {
		err = l.files.log.Sync()
	}
	if err == nil {
		err = writeHead(l.files.head, next)
	}
	if err != nil {
		return errors.Join(err, l.files.log.Truncate(l.tail.size))
	}
	l.tail, l.known = next, true
	return nil
}

func writeHead(w io.WriterAt, p position) error {
	_, err := w.WriteAt(p.head(), 0)
	return err
}

func readHead(f *os.File) ([]byte, error) {
	buf := make([]byte, headSize+1)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return buf[:n], nil
}
