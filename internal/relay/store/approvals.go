package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
)

var _ approval.Store = (*DB)(nil)

// Put is approval.Store's.
func (d *DB) Put(ctx context.Context, e approval.Entry) error {
	question, err := json.Marshal(e.Question)
	if err != nil {
		return fmt.Errorf("write the question down: %w", err)
	}
	var outcome error
	err = d.do(ctx, func(t *tx) (err error) {
		outcome, err = insert(t, &e, question)
		return err
	})
	return errors.Join(err, outcome)
}

func insert(t *tx, e *approval.Entry, question []byte) (outcome, err error) {
	if e.Lead == e.ID {
		fresh, err := t.changed("INSERT INTO approval (lead, state) VALUES (?, 'pending') ON CONFLICT DO NOTHING", e.Lead)
		if err != nil || !fresh {
			return approval.ErrMismatch, err
		}
	}
	there, err := t.changed(`INSERT INTO asker (id, lead, root, key, digest, question)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM approval WHERE lead = ?2) ON CONFLICT DO NOTHING`,
		e.ID, e.Lead, e.Root, e.Key, e.Digest, question)
	if err != nil {
		return nil, err
	}
	if !there {
		return approval.ErrMismatch, nil
	}
	return nil, t.db.count(t, e.Root)
}

// thinEvery is after how many questions of a tree it is looked whether there are
// too many.
const thinEvery = 256

// maxCounted bounds the trees of which that is counted; others are looked at
// each time.
const maxCounted = 4096

// count has a tree thinned out now and then. The writer alone calls it.
func (d *DB) count(t *tx, root string) error {
	if d.since[root]++; d.since[root] < thinEvery && len(d.since) <= maxCounted {
		return nil
	}
	delete(d.since, root)
	return thin(t, root)
}

// Leave is approval.Store's.
func (d *DB) Leave(ctx context.Context, id string) error {
	var there bool
	err := d.do(ctx, func(t *tx) (err error) {
		there, err = t.changed("UPDATE asker SET gone = 1 WHERE id = ?", id)
		return err
	})
	return known(there, err)
}

// Settle is approval.Store's.
func (d *DB) Settle(ctx context.Context, lead string, o approval.Outcome) (bool, error) {
	var answer []byte
	if o.State == approval.Answered {
		var err error
		if answer, err = json.Marshal(o.Answer); err != nil {
			return false, fmt.Errorf("write the answer down: %w", err)
		}
	}
	var won bool
	err := d.do(ctx, func(t *tx) (err error) {
		won, err = t.changed("UPDATE approval SET state = ?, answer = ?, settled = ? WHERE lead = ? AND state = 'pending'",
			string(o.State), answer, o.At.UnixNano(), lead)
		if err == nil && won && o.Once() {
			err = split(t, lead, &o)
		}
		return err
	})
	return won && err == nil, err
}

// split makes a new approval of those who do not get a yes "once".
func split(t *tx, lead string, o *approval.Outcome) error {
	for i, id := range o.Rest {
		if i == 0 {
			if err := t.exec("INSERT INTO approval (lead, state) VALUES (?, 'pending')", id); err != nil {
				return err
			}
		}
		if err := t.exec("UPDATE asker SET lead = ? WHERE id = ? AND lead = ?", o.Rest[0], id, lead); err != nil {
			return err
		}
	}
	return t.exec("UPDATE asker SET gone = 1 WHERE lead = ? AND id <> ? AND gone = 0", lead, o.For)
}

// Recorded is approval.Store's. It does not wait for the disk.
func (d *DB) Recorded(ctx context.Context, lead string, s approval.State) error {
	o := &op{lazy: true, done: make(chan error, 1), do: func(t *tx) error {
		return t.exec("UPDATE approval SET recorded = ? WHERE lead = ?", string(s), lead)
	}}
	select {
	case d.ops <- o:
		return nil
	case <-d.ending:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func known(there bool, err error) error {
	if err == nil && !there {
		return approval.ErrUnknown
	}
	return err
}

const entries = `SELECT asker.question, asker.lead, asker.root, asker.key, asker.digest, asker.gone,
	approval.state, approval.answer, approval.settled, approval.recorded
	FROM asker JOIN approval ON approval.lead = asker.lead `

// Get is approval.Store's.
func (d *DB) Get(ctx context.Context, id string) (approval.Entry, error) {
	e, err := scan(d.read.QueryRowContext(ctx, entries+"WHERE asker.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return approval.Entry{}, approval.ErrUnknown
	}
	return e, err
}

// Open is approval.Store's.
func (d *DB) Open(ctx context.Context) ([]approval.Entry, error) {
	return d.query(ctx, entries+"WHERE approval.state = 'pending' OR approval.recorded <> approval.state ORDER BY asker.n")
}

// History is approval.Store's.
func (d *DB) History(ctx context.Context, before time.Time, limit int) ([]approval.Record, error) {
	list, err := d.query(ctx, entries+`WHERE approval.state <> 'pending' AND asker.id = asker.lead AND approval.settled < ?
		ORDER BY approval.settled DESC LIMIT ?`, before.UnixNano(), max(limit, 0))
	records := make([]approval.Record, len(list))
	for i, e := range list {
		records[i] = e.Record
	}
	return records, err
}

func (d *DB) query(ctx context.Context, query string, args ...any) ([]approval.Entry, error) {
	rows, err := d.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []approval.Entry
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, rows.Err()
}

// scan reads one row of entries.
func scan(row interface{ Scan(dest ...any) error }) (approval.Entry, error) {
	var e approval.Entry
	var question, answer []byte
	var state, recorded string
	var settled int64
	err := row.Scan(&question, &e.Lead, &e.Root, &e.Key, &e.Digest, &e.Gone, &state, &answer, &settled, &recorded)
	if err != nil {
		return e, err
	}
	e.State, e.Recorded = approval.State(state), approval.State(recorded)
	if e.State != approval.Pending {
		e.Settled = time.Unix(0, settled).UTC()
	}
	if err := json.Unmarshal(question, &e.Question); err != nil {
		return e, fmt.Errorf("a question in the database can't be read: %w", err)
	}
	if e.State != approval.Answered {
		e.Answer = bawn.Answer{}
		return e, nil
	}
	if err := json.Unmarshal(answer, &e.Answer); err != nil {
		return e, fmt.Errorf("an answer in the database can't be read: %w", err)
	}
	return e, nil
}
