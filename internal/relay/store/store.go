// Package store keeps what the relay must not lose, in one SQLite file:
// questions and answers, and small documents such as devices and grants.
//
// The audit log is the truth about what has happened; this is what is needed to
// go on after a crash.
package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// keep is how long settled questions stay in the database, and keepOfTree how
// many of a session and those below it do, the latest. A guest that asks and
// takes back without end would fill the disk, and should not push out what other
// sessions have asked.
const (
	keep       = 90 * 24 * time.Hour
	keepOfTree = 1024
)

// applicationID marks our files (PRAGMA application_id): "bawn".
const applicationID = 0x6261776e

//go:embed schema/*.sql
var schema embed.FS

// newest is the version of the schema that this program writes.
const newest = 2

// A DB is the open database. Reads go on side by side; writes are made by one
// goroutine, which commits all that wait together.
type DB struct {
	path   string
	since  map[string]int // the writer's: what was put since a tree was thinned out, by root, see maxCounted
	write  *sql.DB        // one connection
	read   *sql.DB
	ops    chan *op
	ending chan struct{} // closed when nothing more is taken
	ended  chan struct{} // closed when all that was taken is written
	close  sync.Once
}

// A DamagedError says that the file is no database of ours that could be
// trusted. It is not changed.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%q can't be trusted (%v); nothing in it was changed; move it and the files %q and %q away, if they exist, and start anew: "+
		"what was pending then counts as denied, and the audit log still has all that was answered", e.Path, e.Err, e.Path+"-wal", e.Path+"-shm")
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Open opens the database at path and makes it where it is missing (mode 0600,
// in a directory of mode 0700). Only one process may have it open; the caller
// sees to that. A damaged file is a *DamagedError. What was settled long before
// now is forgotten.
func Open(ctx context.Context, path string, now time.Time) (*DB, error) {
	if err := prepare(path); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if err := looksOurs(path); err != nil {
		return nil, err
	}
	d := &DB{path: path, since: map[string]int{}, ops: make(chan *op, maxBatch), ending: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if d.write, err = open(path, "_txlock=immediate", 1); err != nil {
		return nil, err
	}
	if d.read, err = open(path, "_pragma=query_only(1)", 4); err != nil {
		return nil, errors.Join(err, d.write.Close())
	}
	if err := d.check(ctx); err != nil {
		return nil, errors.Join(err, d.read.Close(), d.write.Close())
	}
	w, err := d.writer(ctx)
	if err != nil {
		return nil, errors.Join(err, d.read.Close(), d.write.Close())
	}
	go w.run()
	if err := errors.Join(d.prune(ctx, now.Add(-keep)), d.thinAll(ctx)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// prepare makes the file, or refuses one that is not ours alone.
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is no regular file; move it away", path)
	case !ok || sys.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%q (%v) can be read or written by others; want a file of your own: chmod 600 it, or move it away", path, info.Mode())
	}
	return nil
}

// The header of a database (sqlite.org/fileformat.html, section 1.3).
const (
	magic       = "SQLite format 3\x00"
	headerSize  = 100
	idAt, idEnd = 68, 72
)

// looksOurs reads the file's header: to open the file of another program would
// already change it. What we were about to make when we died has no ID yet.
func looksOurs(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	defer f.Close()
	header := make([]byte, headerSize)
	n, err := io.ReadFull(f, header)
	switch {
	case errors.Is(err, io.EOF) && n == 0:
		return nil
	case err != nil:
		return &DamagedError{path, fmt.Errorf("read its header: %w", err)}
	case !bytes.HasPrefix(header, []byte(magic)):
		return &DamagedError{path, errors.New("it is no SQLite database")}
	}
	if id := binary.BigEndian.Uint32(header[idAt:idEnd]); id != 0 && id != applicationID {
		return &DamagedError{path, errors.New("it is a database of another program")}
	}
	return nil
}

// open returns connections to the file. With synchronous=FULL a commit is on
// disk when it returns (sqlite.org/pragma.html#pragma_synchronous).
func open(path, more string, connections int) (*sql.DB, error) {
	dsn := (&url.URL{Scheme: "file", Path: path}).String() +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=trusted_schema(0)&" + more
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// check makes sure of the content, and brings the schema up to date.
func (d *DB) check(ctx context.Context) error {
	var said string
	var id, version, tables int
	one := func(query string, dest any) error { return d.write.QueryRowContext(ctx, query).Scan(dest) }
	if err := errors.Join(one("PRAGMA quick_check(1)", &said), one("PRAGMA application_id", &id),
		one("PRAGMA user_version", &version), one("SELECT count(*) FROM sqlite_master", &tables)); err != nil {
		return &DamagedError{d.path, err}
	}
	if id == 0 && tables == 0 {
		if _, err := d.write.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return fmt.Errorf("make the database %q: %w", d.path, err)
		}
		id = applicationID
	}
	switch {
	case said != "ok":
		return &DamagedError{d.path, errors.New(said)}
	case id != applicationID:
		return &DamagedError{d.path, errors.New("it is a database of another program")}
	case version > newest:
		return fmt.Errorf("database %q is of a newer bawn (version %d, this one knows %d); install that one again", d.path, version, newest)
	}
	return d.migrate(ctx, version)
}

// migrate applies what the schema lacks, each version as a whole or not.
func (d *DB) migrate(ctx context.Context, version int) error {
	for v := version + 1; v <= newest; v++ {
		text, err := fs.ReadFile(schema, "schema/"+strconv.Itoa(v)+".sql")
		if err != nil {
			return err
		}
		tx, err := d.write.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("bring database %q to version %d: %w", d.path, v, err)
		}
		_, err = tx.ExecContext(ctx, string(text)+fmt.Sprintf(";PRAGMA user_version = %d", v))
		if err != nil {
			return fmt.Errorf("bring database %q to version %d: %w", d.path, v, errors.Join(err, tx.Rollback()))
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("bring database %q to version %d: %w", d.path, v, err)
		}
	}
	return nil
}

// prune forgets what was settled before that time.
func (d *DB) prune(ctx context.Context, before time.Time) error {
	return d.do(ctx, func(t *tx) error {
		const old = "state <> 'pending' AND recorded = state AND settled < ?"
		if err := t.exec("DELETE FROM asker WHERE lead IN (SELECT lead FROM approval WHERE "+old+")", before.UnixNano()); err != nil {
			return err
		}
		return t.exec("DELETE FROM approval WHERE "+old, before.UnixNano())
	})
}

// thinAll thins out every tree that has too much: a relay before may not have
// come to it.
func (d *DB) thinAll(ctx context.Context) error {
	rows, err := d.read.QueryContext(ctx, "SELECT root FROM asker GROUP BY root HAVING count(*) > ?", keepOfTree)
	if err != nil {
		return err
	}
	defer rows.Close()
	var roots []string
	for rows.Next() {
		var root string
		if err := rows.Scan(&root); err != nil {
			return err
		}
		roots = append(roots, root)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return d.do(ctx, func(t *tx) error {
		for _, root := range roots {
			if err := thin(t, root); err != nil {
				return err
			}
		}
		return nil
	})
}

// thin forgets what is settled of a tree, but for its latest. What is asked
// again after that is a new question: no old answer comes back.
func thin(t *tx, root string) error {
	err := t.exec(`DELETE FROM approval WHERE state <> 'pending' AND recorded = state AND lead IN (SELECT id FROM asker WHERE root = ?1 AND id = lead
		AND n <= (SELECT n FROM asker WHERE root = ?1 ORDER BY n DESC LIMIT 1 OFFSET ?2))`, root, keepOfTree)
	if err != nil {
		return err
	}
	return t.exec("DELETE FROM asker WHERE root = ? AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.lead = asker.lead)", root)
}

// Close writes what waits and closes the file.
func (d *DB) Close() (err error) {
	d.close.Do(func() {
		close(d.ending)
		<-d.ended
		err = errors.Join(d.read.Close(), d.write.Close())
	})
	return err
}
