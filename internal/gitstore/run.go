package gitstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// How long changes are waited for before they are carried over.
const (
	runAfter  = 50 * time.Millisecond  // the session's start is waited for
	pinAfter  = 200 * time.Millisecond // short sessions need no pin
	quiet     = 20 * time.Millisecond  // after the last change
	patience  = 250 * time.Millisecond // after the first
	againTime = 2 * time.Second        // after what could not be done
	closeTime = 2 * time.Minute        // for the last sync
)

// Run carries changes over until ctx ends. It is cheap while neither side
// changes.
func (s *Store) Run(ctx context.Context) {
	if len(s.Units) == 0 {
		return
	}
	if sleep(ctx, runAfter); ctx.Err() != nil {
		return
	}
	if s.Copy { // nothing is carried over before its end
		if sleep(ctx, pinAfter); ctx.Err() == nil {
			_ = s.Pin(ctx) // the end tries again
		}
		return
	}
	w, err := newWatcher()
	if err != nil {
		s.mu.Lock()
		s.report.Problems = append(s.report.Problems, "commits are published at the session's end only: "+err.Error())
		s.mu.Unlock()
		return
	}
	defer w.close()
	s.watch(w)
	again := s.attempt(ctx, w, s.syncOnce) // what has changed so far
	pin := time.NewTimer(pinAfter)
	defer pin.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pin.C:
			again = s.attempt(ctx, w, s.Pin)
		case <-again:
			again = s.attempt(ctx, w, s.syncOnce)
		case <-w.events:
			w.settle(ctx)
			again = s.attempt(ctx, w, s.syncOnce)
		}
	}
}

func (s *Store) syncOnce(ctx context.Context) error {
	_, err := s.Sync(ctx)
	return err
}

// attempt does something, and says when to do it again.
func (s *Store) attempt(ctx context.Context, w *watcher, what func(context.Context) error) <-chan time.Time {
	if err := what(ctx); err != nil && ctx.Err() == nil {
		return time.After(againTime)
	}
	if s.watch(w) { // earlier repositories there are not reported
		w.changed()
	}
	return nil
}

// watch looks at every directory in which a change is one of refs, HEAD or index,
// and reports whether there is a new one.
func (s *Store) watch(w *watcher) (fresh bool) {
	for _, u := range s.Units {
		for i, root := range []*os.Root{u.host, u.private} {
			dir := u.Host
			if i == 1 {
				dir = s.guest.at(privateName, u.Private)
			}
			list := []string{".", u.Rel}
			if t, err := readRefs(root, u.Size); err == nil {
				list = append(list, t.dirs...)
			}
			for _, d := range slices.Compact(list) {
				if !strings.HasPrefix(d+"/", ownRefs) {
					fresh = w.add(filepath.Join(dir, d)) || fresh
				}
			}
		}
	}
	return fresh
}

// Close publishes the guest's last changes. The guest must have ended, and Run
// returned. Changes that could not be published are kept, and the report says
// where.
func (s *Store) Close(ctx context.Context) (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	failed := append(s.addModules(ctx), s.addTrees()...)
	err := errors.Join(s.sync(ctx, true), s.looseHeads(ctx))
	if s.confined != nil {
		_ = s.confined.Close() // its contents are not needed any more
		s.confined = nil
	}
	for _, u := range s.Units {
		if !u.removed() && !u.dropped() && u.leftSparse() {
			s.tell(u, &s.report.Questions, saysSparse)
		}
	}
	rest := append(failed, s.unpublished()...)
	links := s.endLinks(ctx)
	made := s.made()
	err = errors.Join(err, links, s.unpin(ctx))
	if err != nil {
		rest = append(rest, "the last changes: "+err.Error())
	}
	if len(rest) > 0 || len(made) > 0 {
		s.report.Problems = append(s.report.Problems, rest...)
		s.report.Private = s.dir
		for _, m := range made {
			s.report.Made = append(s.report.Made, m.Path)
		}
		err = errors.Join(err, s.save(), s.closed())
		if len(rest) == 0 { // all else is published
			err = errors.Join(err, removeAll(s.guest.at(privateName)))
		}
		s.shut()
		return s.report, err
	}
	err = removePlace(s.dir, s.guest)
	s.shut()
	if err != nil {
		return s.report, fmt.Errorf("remove the private git directory: %w", err)
	}
	return s.report, nil
}

// unpublished says what of the private directory is nowhere on the host.
func (s *Store) unpublished() []string {
	var list []string
	for _, u := range s.Units {
		if u.removed() || u.dropped() {
			continue
		}
		private, err := u.lookPrivate()
		host, err2 := look(u.host, u.Rel, u.Size)
		if err != nil || err2 != nil {
			list = append(list, fmt.Sprintf("the guest's git directory can't be read: %v", errors.Join(err, err2)))
			continue
		}
		if private.open != "" {
			list = append(list, private.open+" is open in the guest's git directory")
		}
		known := map[string]bool{}
		for _, id := range host.tree.refs {
			known[id] = true
		}
		for name, id := range private.tree.refs {
			if !u.Tree && published(name) && !known[id] && u.Start[name] != id {
				list = append(list, fmt.Sprintf("%q of the guest's is not published", name))
			}
		}
		if len(list) > 20 {
			return append(list[:20], "and more")
		}
	}
	slices.Sort(list)
	return list
}

// Left are the places of sessions that no bawn has any more.
func Left(state string) ([]string, error) {
	list, err := os.ReadDir(Places(state))
	if missing(err) {
		return nil, nil
	}
	var out []string
	for _, e := range list {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, err
}

// Recover publishes what sessions of a repository have left behind whose bawn was
// killed. Sessions that are alive are left alone, and so are those whose end has
// been reported.
func Recover(ctx context.Context, r *Repository, o Options) ([]Report, error) {
	ids, err := Left(o.State)
	if err != nil {
		return nil, err
	}
	var reports []Report
	var errs []error
	for _, id := range ids {
		s, err := reopen(o, id, r)
		if err != nil || s == nil {
			continue
		}
		s.breakLocks()
		report, err := s.Close(ctx)
		report.Session = id
		reports, errs = append(reports, report), append(errs, err)
	}
	return reports, errors.Join(errs...)
}

// closedName marks a place whose session has ended in order, and is kept.
const closedName = "closed"

// closed notes the end and its message.
func (s *Store) closed() error {
	text, err := json.Marshal(s.report)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.dir, closedName), text, 0o600)
}

// past reads the report that closed has written. It is empty if there is no such
// report.
func (s *Store) past() Report {
	var r Report
	if text, err := atomicfile.Read(filepath.Join(s.dir, closedName), maxRecord); err == nil {
		_ = json.Unmarshal(text, &r) // it is ours
	}
	return r
}

// present reports whether there is anything at a path.
func present(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// reopen opens the directory of a session whose end was not reported. It returns
// nil for every other session, and for one that is alive.
func reopen(o Options, id string, r *Repository) (*Store, error) {
	dir := Place(o.State, id)
	if !plainName(id) {
		return nil, fmt.Errorf("%q is no session", id)
	}
	lock, err := take(dir)
	if errors.Is(err, errAlive) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := load(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	if s.Repo != *r || present(filepath.Join(dir, closedName)) {
		s.shut()
		return nil, nil
	}
	if s.guest, err = openGuestDir(guestPath(dir)); err == nil && len(s.Units) > 0 {
		if !present(s.guest.at(privateName)) { // killed while it removed published changes
			err = removePlace(dir, s.guest)
			s.shut()
			return nil, err
		}
		if s.git, err = findGit(o.Path, s.Repo.Workspace); err == nil {
			s.Git = s.git.program
			err = s.open()
		}
	}
	if err != nil {
		s.shut()
		return nil, err
	}
	s.untrusted = func() (Untrusted, error) { return o.Untrusted(s.View()) }
	return s, nil
}

// breakLocks removes a lock on an index that this session's bawn had when it was
// killed, and no other.
func (s *Store) breakLocks() {
	for _, u := range s.Units {
		own, lock := filepath.Join(u.gitDir(), "bawn-"+s.Session+".lock"), filepath.Join(u.gitDir(), "index.lock")
		a, err1 := os.Lstat(own)
		b, err2 := os.Lstat(lock)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			_ = os.Remove(lock)
		}
		if err1 == nil {
			_ = os.Remove(own)
		}
		s.dropIndex(u)
	}
}
