package gitstore

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxWatched bounds the directories that are looked at.
const maxWatched = 4096

// A watcher says when something in a directory has changed.
type watcher struct {
	f      *os.File
	fd     int
	known  map[int]bool
	events chan struct{} // holds one
}

func newWatcher() (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the git directories: %w", err)
	}
	w := &watcher{f: os.NewFile(uintptr(fd), "inotify"), fd: fd, known: map[int]bool{}, events: make(chan struct{}, 1)}
	go w.read()
	return w, nil
}

// add looks at a directory, too. A file that can't be watched is looked at when
// something else changes. It reports whether the directory was not looked at
// before.
func (w *watcher) add(dir string) (fresh bool) {
	if len(w.known) >= maxWatched {
		return false
	}
	const mask = unix.IN_MOVED_TO | unix.IN_CREATE | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	if wd, err := unix.InotifyAddWatch(w.fd, dir, mask); err == nil {
		fresh = !w.known[wd]
		w.known[wd] = true
	}
	return fresh
}

// changed is an event without a sender.
func (w *watcher) changed() {
	select {
	case w.events <- struct{}{}:
	default:
	}
}

// read turns events into one that waits.
func (w *watcher) read() {
	buf := make([]byte, 64<<10)
	for {
		if _, err := w.f.Read(buf); err != nil {
			return // closed
		}
		w.changed()
	}
}

// settle waits until nothing changes for a moment.
func (w *watcher) settle(ctx context.Context) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		t := time.NewTimer(quiet)
		select {
		case <-w.events:
			t.Stop()
		case <-t.C:
			return
		case <-late.C:
			t.Stop()
			return
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

func (w *watcher) close() { w.f.Close() }
