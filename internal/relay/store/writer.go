package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// maxBatch is how many writes are committed together at most.
const maxBatch = 512

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the database is closed")

// An op is one write that waits for its commit.
type op struct {
	do   func(*tx) error
	done chan error // has room for one
	lazy bool       // may wait for another that is written
}

// lazyTime is how long what may wait waits at most.
const lazyTime = 100 * time.Millisecond

// do runs f in a transaction that others may share, and returns when that is on
// disk. An error of f undoes all; f may run more than once.
func (d *DB) do(ctx context.Context, f func(*tx) error) error {
	o := &op{do: f, done: make(chan error, 1)}
	select {
	case d.ops <- o:
	case <-d.ending:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.done:
		return err
	case <-d.ended: // nobody may have taken it
		select {
		case err := <-o.done:
			return err
		default:
			return ErrClosed
		}
	}
}

// A writer has the one connection that writes.
type writer struct {
	db    *DB
	conn  *sql.Conn
	ready map[string]*sql.Stmt
	lazy  []*op // wait for another
}

func (d *DB) writer(ctx context.Context) (*writer, error) {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", d.path, err)
	}
	return &writer{db: d, conn: conn, ready: map[string]*sql.Stmt{}}, nil
}

// A tx is what an op writes in.
type tx struct {
	*writer
	ctx context.Context
}

// exec runs a statement, which stays prepared.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.changed(query, args...)
	return err
}

// changed is exec that reports whether a row was changed.
func (t *tx) changed(query string, args ...any) (bool, error) {
	stmt := t.ready[query]
	if stmt == nil {
		var err error
		if stmt, err = t.conn.PrepareContext(t.ctx, query); err != nil {
			return false, err
		}
		t.ready[query] = stmt
	}
	r, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// run commits what waits, until the database is closed.
func (w *writer) run() {
	defer close(w.db.ended)
	var late <-chan time.Time
	for {
		select {
		case first := <-w.db.ops:
			if first.lazy && len(w.lazy) < maxBatch {
				if w.lazy = append(w.lazy, first); late == nil {
					late = time.After(lazyTime)
				}
				continue
			}
			w.commit(w.batch(first))
			late = nil
		case <-late:
			w.commit(w.batch())
			late = nil
		case <-w.db.ending:
			w.drain()
			return
		}
	}
}

// batch takes what waits besides the first.
func (w *writer) batch(first ...*op) []*op {
	ops := append(w.lazy, first...)
	w.lazy = nil
	for len(ops) < maxBatch {
		select {
		case o := <-w.db.ops:
			ops = append(ops, o)
		default:
			return ops
		}
	}
	return ops
}

func (w *writer) drain() {
	for {
		select {
		case o := <-w.db.ops:
			w.commit([]*op{o})
		default:
			w.commit(w.batch())
			for _, stmt := range w.ready {
				stmt.Close()
			}
			w.conn.Close()
			return
		}
	}
}

// commit writes ops in one transaction. If one fails each gets its own error,
// so that none fails because of another.
func (w *writer) commit(ops []*op) {
	err := w.together(ops)
	if err == nil || len(ops) == 1 {
		for _, o := range ops {
			o.done <- err
		}
		return
	}
	for _, o := range ops {
		o.done <- w.together([]*op{o})
	}
}

func (w *writer) together(ops []*op) error {
	if len(ops) == 0 {
		return nil
	}
	t := &tx{w, context.Background()}
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range ops {
		if err := o.do(t); err != nil {
			return errors.Join(err, w.rollback(t))
		}
	}
	if err := t.exec("COMMIT"); err != nil {
		return errors.Join(err, w.rollback(t))
	}
	return nil
}

// rollback undoes the transaction, unless SQLite has done so: a full disk, for
// example, ends it (sqlite.org/lang_transaction.html).
func (w *writer) rollback(t *tx) error {
	err := t.exec("ROLLBACK")
	if err == nil {
		return nil
	}
	if begun := t.exec("BEGIN IMMEDIATE"); begun != nil { // still in one, or nothing works
		return errors.Join(err, begun)
	}
	return t.exec("ROLLBACK")
}
