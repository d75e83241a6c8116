package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/approval"
)

// put puts a question of a tree, which is withdrawn unless it is to stay.
func put(t *testing.T, d *DB, root, resource string, stays bool) approval.Entry {
	t.Helper()
	e := entry(resource)
	e.Root = root
	must(t, d.Put(t.Context(), e))
	if !stays {
		_, err := d.Settle(t.Context(), e.Lead, approval.Outcome{State: approval.Withdrawn, At: time.Now()})
		must(t, errors.Join(err, d.Recorded(t.Context(), e.Lead, approval.Withdrawn)))
	}
	return e
}

func (d *DB) rows(t *testing.T, root string) (n int) {
	t.Helper()
	must(t, d.read.QueryRowContext(t.Context(), "SELECT count(*) FROM asker WHERE root = ?", root).Scan(&n))
	return n
}

// TestThinned has a tree of sessions that asks and takes back without end: of it
// the latest stay, and what is pending; all of other trees'.
func TestThinned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	quiet, pending := put(t, d, "quiet", "ls", false), put(t, d, "loud", "waits", true)
	unrecorded := entry("not in the log yet")
	unrecorded.Root = "loud"
	must(t, d.Put(t.Context(), unrecorded))
	must(t, second(d.Settle(t.Context(), unrecorded.Lead, approval.Outcome{State: approval.Expired, At: time.Now()})))
	joined := entry("waits too") // of the same approval as pending
	joined.Root, joined.Lead = "loud", pending.Lead
	must(t, d.Put(t.Context(), joined))
	first := put(t, d, "loud", "first", false)
	var last approval.Entry
	for n := range keepOfTree + 3*thinEvery + 100 {
		last = put(t, d, "loud", fmt.Sprint(n), false)
		if n%thinEvery == 0 {
			if rows := d.rows(t, "loud"); rows > keepOfTree+thinEvery+10 {
				t.Fatalf("%d questions of a tree are kept", rows)
			}
		}
	}
	kept := func(d *DB) {
		t.Helper()
		for _, e := range []approval.Entry{quiet, pending, joined, unrecorded, last} {
			if got, err := d.Get(t.Context(), e.ID); err != nil || got.Action.Resource != e.Action.Resource {
				t.Errorf("%q: %+v, %v", e.Action.Resource, got, err)
			}
		}
		if err := second(d.Get(t.Context(), first.ID)); !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("the first: %v", err)
		}
		if past, err := d.History(t.Context(), time.Now(), 1<<20); err != nil || len(past) < keepOfTree {
			t.Errorf("%d of the latest are there, %v", len(past), err)
		}
	}
	kept(d)
	if rows := d.rows(t, "loud"); rows <= keepOfTree+10 {
		t.Errorf("control: %d questions are kept already", rows)
	}
	must(t, d.Close())
	d = opened(t, path) // what the one before has not come to
	kept(d)
	if rows := d.rows(t, "loud"); rows > keepOfTree+10 {
		t.Errorf("%d questions of a tree are kept when it is opened anew", rows)
	}
	must(t, d.Put(t.Context(), first)) // nothing is in its way
}

// TestManyTrees has more trees than are counted: nothing grows with them, and
// what is of one that is not counted is thinned out all the same.
func TestManyTrees(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "relay.db"))
	for n := range keepOfTree {
		put(t, d, "loud", fmt.Sprint(n), false)
	}
	first := put(t, d, "loud", "first", false)
	must(t, d.do(t.Context(), func(*tx) error { // as so many questions would, which takes a while
		clear(d.since)
		for n := range maxCounted {
			d.since[fmt.Sprint("tree", n)] = 1
		}
		return nil
	}))
	for n := range 10 {
		put(t, d, "loud", fmt.Sprint(n), false)
		put(t, d, fmt.Sprint("new", n), "ls", false)
	}
	if rows := d.rows(t, "loud"); rows > keepOfTree+2 {
		t.Errorf("%d questions of a tree are kept", rows)
	}
	must(t, second(d.Get(t.Context(), first.ID)))
	must(t, d.do(t.Context(), func(*tx) error {
		if len(d.since) > maxCounted {
			t.Errorf("%d trees are counted", len(d.since))
		}
		return nil
	}))
}

// TestUpgraded opens a database as version 1 has left it.
func TestUpgraded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	e := put(t, d, "r", "ls", true)
	for _, query := range []string{"DROP INDEX asker_root", "PRAGMA user_version = 1"} {
		must(t, d.do(t.Context(), func(t *tx) error { return t.exec(query) }))
	}
	must(t, d.Close())
	d = opened(t, path)
	must(t, second(d.Get(t.Context(), e.ID)))
	var indexes int
	must(t, d.read.QueryRowContext(context.Background(), "SELECT count(*) FROM sqlite_master WHERE name = 'asker_root'").Scan(&indexes))
	if indexes != 1 {
		t.Errorf("%d indexes by root", indexes)
	}
}
