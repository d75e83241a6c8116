package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func opened(t testing.TB, path string) *DB {
	t.Helper()
	d, err := Open(t.Context(), path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func entry(resource string) approval.Entry {
	id := approval.NewID()
	return approval.Entry{Lead: id, Digest: "d", Key: "k", Root: "r", Record: approval.Record{State: approval.Pending, Question: approval.Question{
		ID: id, Session: "s", Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: resource, Session: "s"},
		Always: []bawn.Rule{{ID: "r", Kind: bawn.Command, Operations: []bawn.Operation{bawn.Exec}, Pattern: "ls", Verdict: bawn.Allow, Source: bawn.User}},
		Asked:  time.Unix(1, 2).UTC(), Expires: time.Unix(3, 4).UTC(),
	}}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestConformance holds both stores to the same words.
func TestConformance(t *testing.T) {
	for name, s := range map[string]approval.Store{"memory": &approval.Memory{}, "sqlite": opened(t, filepath.Join(t.TempDir(), "x", "relay.db"))} {
		t.Run(name, func(t *testing.T) { conforms(t, s) })
	}
}

func conforms(t *testing.T, s approval.Store) {
	ctx := t.Context()
	a, b := entry("first \x1b\u202e \u2028 <>&"), entry("second")
	must(t, s.Put(ctx, a))
	if err := s.Put(ctx, a); !errors.Is(err, approval.ErrMismatch) {
		t.Errorf("put twice: %v; want ErrMismatch", err)
	}
	b.Lead = a.Lead
	must(t, s.Put(ctx, b))
	got, err := s.Get(ctx, a.ID)
	must(t, err)
	if d := cmp.Diff(a, got); d != "" {
		t.Errorf("what comes back differs: %s", d)
	}
	must(t, s.Leave(ctx, b.ID))
	open, err := s.Open(ctx)
	must(t, err)
	if len(open) != 2 || open[0].ID != a.ID || open[0].Gone || !open[1].Gone {
		t.Errorf("open: %v", open)
	}
	o := approval.Outcome{State: approval.Answered, At: time.Unix(5, 6).UTC(), Answer: bawn.Answer{Verdict: bawn.Allow, By: "me", Why: "so", At: time.Unix(5, 6).UTC()}}
	if won, err := s.Settle(ctx, a.Lead, o); !won || err != nil {
		t.Errorf("first answer: %v, %v", won, err)
	}
	if won, err := s.Settle(ctx, a.Lead, approval.Outcome{State: approval.Expired}); won || err != nil {
		t.Errorf("second answer: %v, %v; want false", won, err)
	}
	got, err = s.Get(ctx, b.ID)
	must(t, err)
	if got.State != approval.Answered || got.Answer != o.Answer || !got.Settled.Equal(o.At) {
		t.Errorf("after the answer the second asker has %+v", got)
	}
	if open, _ := s.Open(ctx); len(open) != 2 {
		t.Errorf("%d open that are not recorded; want 2", len(open))
	}
	must(t, s.Recorded(ctx, a.Lead, approval.Answered))
	testenv.Until(t, "what was recorded to be closed", func() bool { open, err := s.Open(ctx); return err == nil && len(open) == 0 })
	past, err := s.History(ctx, time.Unix(6, 0), 10)
	if err != nil || len(past) != 1 || past[0].ID != a.ID {
		t.Errorf("history: %v, %v", past, err)
	}
	if past, _ := s.History(ctx, time.Unix(5, 0), 10); len(past) != 0 {
		t.Errorf("history before it: %v", past)
	}
	for name, err := range map[string]error{"leave": s.Leave(ctx, "x"), "get": second(s.Get(ctx, "x"))} {
		if !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("%s of nothing: %v; want ErrUnknown", name, err)
		}
	}
	late := entry("late")
	late.Lead = "nobody"
	if s.Put(ctx, late) == nil {
		t.Error("joined an approval that is not there")
	}
}

// TestShared: who gets a yes "once" and who asks on is written in one step.
func TestShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	for name, s := range map[string]approval.Store{"memory": &approval.Memory{}, "sqlite": d} {
		all := make([]approval.Entry, 5)
		for i := range all {
			all[i] = entry("same")
			all[i].Lead = all[0].ID
			must(t, s.Put(t.Context(), all[i]))
		}
		o := approval.Outcome{
			State: approval.Answered, At: time.Unix(5, 0), Answer: bawn.Answer{Verdict: bawn.Allow, By: "me"}, For: all[1].ID, Rest: []string{all[2].ID, all[4].ID},
		}
		if won, err := s.Settle(t.Context(), all[0].ID, o); !won || err != nil {
			t.Errorf("%s: %v, %v", name, won, err)
		}
		again := o
		again.For, again.Rest = all[3].ID, []string{all[1].ID}
		if won, err := s.Settle(t.Context(), all[0].ID, again); won || err != nil {
			t.Errorf("%s: shared twice: %v, %v", name, won, err)
		}
		for i, want := range []struct {
			lead  int
			gone  bool
			state approval.State
		}{{0, true, approval.Answered}, {0, false, approval.Answered}, {2, false, approval.Pending}, {0, true, approval.Answered}, {2, false, approval.Pending}} {
			e, err := s.Get(t.Context(), all[i].ID)
			if err != nil || e.Lead != all[want.lead].ID || e.Gone != want.gone || e.State != want.state || e.Recorded != "" {
				t.Errorf("%s: %d is %+v, %v; want %+v", name, i, e, err, want)
			}
		}
		if won, err := s.Settle(t.Context(), all[2].ID, approval.Outcome{State: approval.Expired, At: time.Unix(6, 0)}); !won || err != nil {
			t.Errorf("%s: the others: %v, %v", name, won, err)
		}
		if past, err := s.History(t.Context(), time.Unix(9, 0), 9); err != nil || len(past) != 2 {
			t.Errorf("%s: history %+v, %v", name, past, err)
		}
	}
	// If the new approval can't be stored, the answer isn't stored either.
	a, b := entry("a"), entry("a")
	b.Lead = a.ID
	must(t, errors.Join(d.Put(t.Context(), a), d.Put(t.Context(), b)))
	o := approval.Outcome{State: approval.Answered, At: time.Unix(7, 0), Answer: bawn.Answer{Verdict: bawn.Allow, By: "me"}, For: b.ID, Rest: []string{a.ID}}
	if won, err := d.Settle(t.Context(), a.ID, o); won || err == nil {
		t.Errorf("shared with a lead that is taken: %v, %v", won, err)
	}
	if e, err := d.Get(t.Context(), b.ID); err != nil || e.State != approval.Pending || e.Gone {
		t.Errorf("half of it was written: %+v, %v", e, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	a := entry("x")
	must(t, d.Put(t.Context(), a))
	must(t, d.Close())
	if err := d.Put(t.Context(), entry("y")); !errors.Is(err, ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
	d = opened(t, path)
	if got, err := d.Get(t.Context(), a.ID); err != nil || got.ID != a.ID {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPruned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	old, pending := entry("old"), entry("pending")
	must(t, errors.Join(d.Put(t.Context(), old), d.Put(t.Context(), pending)))
	then := time.Now().Add(-keep - time.Hour)
	_, err := d.Settle(t.Context(), old.Lead, approval.Outcome{State: approval.Expired, At: then})
	must(t, errors.Join(err, d.Recorded(t.Context(), old.Lead, approval.Expired), d.Close()))
	d = opened(t, path)
	if err := second(d.Get(t.Context(), old.ID)); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("the old one: %v", err)
	}
	must(t, second(d.Get(t.Context(), pending.ID)))
}

// TestOneFailureFailsAlone puts a write that fails among others.
func TestOneFailureFailsAlone(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "relay.db"))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if i%10 == 0 {
				if err := d.do(t.Context(), func(t *tx) error { return t.exec("INSERT INTO nowhere VALUES (1)") }); err == nil {
					t.Error("wrote nowhere")
				}
				return
			}
			if err := d.KeepItem(t.Context(), "k", fmt.Sprint(i), []byte("v")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := d.Items(t.Context(), "k"); len(all) != 45 || err != nil {
		t.Errorf("%d documents, %v; want 45", len(all), err)
	}
}

func TestItems(t *testing.T) {
	d, ctx := opened(t, filepath.Join(t.TempDir(), "relay.db")), t.Context()
	must(t, d.KeepItem(ctx, "device", "a", []byte("1")))
	must(t, d.KeepItem(ctx, "device", "a", []byte("3")))
	must(t, d.KeepItem(ctx, "device", "b", nil))
	must(t, d.KeepItem(ctx, "push", "a", []byte("4")))
	must(t, d.DropItem(ctx, "device", "b"))
	must(t, d.DropItem(ctx, "device", "b")) // it is gone already
	all, err := d.Items(ctx, "device")
	must(t, err)
	if diff := cmp.Diff(map[string][]byte{"a": []byte("3")}, all); diff != "" {
		t.Error(diff)
	}
}

// TestDamaged breaks a database at many places: it must be refused or read
// right, and never be changed by the refusal.
func TestDamaged(t *testing.T) {
	good := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, good)
	for range 60 {
		must(t, d.Put(t.Context(), entry(strings.Repeat("x", 900))))
	}
	must(t, d.Close())
	whole, err := os.ReadFile(good)
	must(t, err)
	refused := 0
	for name, broken := range map[string][]byte{
		"garbage": []byte(strings.Repeat("no database ", 999)), "half a header": whole[:50],
		"cut": whole[:len(whole)/2/4096*4096], "zeros": make([]byte, 8192),
		"page":  append(append(append([]byte{}, whole[:2*4096]...), make([]byte, 4096)...), whole[3*4096:]...),
		"other": append(append(append([]byte{}, whole[:idAt]...), 1, 2, 3, 4), whole[idEnd:]...),
	} {
		path := filepath.Join(t.TempDir(), "relay.db")
		must(t, os.WriteFile(path, broken, 0o600))
		d, err := Open(t.Context(), path, time.Now())
		var damaged *DamagedError
		if err == nil {
			d.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "move it") {
			t.Errorf("%s: %v; want a DamagedError with a remedy", name, err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(broken) {
			t.Errorf("%s: the file was changed", name)
		}
		refused++
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestNewerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.db")
	d := opened(t, path)
	must(t, d.Close())
	raw, err := open(path, "", 1)
	must(t, err)
	_, err = raw.Exec("PRAGMA user_version = 99")
	must(t, errors.Join(err, raw.Close()))
	if _, err := Open(t.Context(), path, time.Now()); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("err = %v", err)
	}
}

func TestOthersFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "wide"), nil, 0o644))
	must(t, os.Symlink("wide", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	for _, name := range []string{"wide", "link", "dir"} {
		if _, err := Open(t.Context(), filepath.Join(dir, name), time.Now()); err == nil {
			t.Errorf("opened %s", name)
		}
	}
}

// BenchmarkDurable is asks and answers that are on disk, by many at once.
func BenchmarkDurable(b *testing.B) {
	d := opened(b, filepath.Join(b.TempDir(), "relay.db"))
	ctx := context.Background()
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e := entry("ls")
			if err := d.Put(ctx, e); err != nil {
				b.Error(err)
			}
			if _, err := d.Settle(ctx, e.Lead, approval.Outcome{State: approval.Answered, At: time.Now()}); err != nil {
				b.Error(err)
			}
		}
	})
}
