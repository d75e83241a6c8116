package dockerapi

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// A load is what copies take of the host's disk.
type load struct {
	entries int // files, directories and links: each takes an inode, an empty one too
	bytes   int64
}

// Bounds of the copies of what is mounted, of one container and of all.
var (
	containerLoad = load{20_000, 256 << 20}
	sessionLoad   = load{100_000, 1 << 30}
)

func (l load) plus(m load) load { return load{l.entries + m.entries, l.bytes + m.bytes} }

func (l load) minus(m load) load { return load{l.entries - m.entries, l.bytes - m.bytes} }

func (l load) within(most load) bool { return l.entries <= most.entries && l.bytes <= most.bytes }

// A store counts the copies of all containers of a session.
type store struct {
	each, most load // of one container, and of all
	copying    chan struct{}

	mu   sync.Mutex
	used load
}

// maxCopying bounds copying at a time, which holds two descriptors for each
// directory that it is in.
const maxCopying = 4

func newStore() *store {
	return &store{each: containerLoad, most: sessionLoad, copying: make(chan struct{}, maxCopying)}
}

// enter waits until it may copy, and returns what to call when it has.
func (s *store) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.copying <- struct{}{}:
		return func() { <-s.copying }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take reserves more for a container that has had. It is asked before anything
// is written.
func (s *store) take(had *load, more load) error { return s.takeOf(s.each, had, more) }

// takeOf is take with another bound for one container.
func (s *store) takeOf(each load, had *load, more load) error {
	if !had.plus(more).within(each) {
		return refuse(RuleLimit, "mount less, or use a volume and docker cp", "the mounts of a container, or the files of a build, hold more than %d files and links, or %d MiB", each.entries, each.bytes>>20)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.used.plus(more).within(s.most) {
		return refuse(RuleLimit, "remove containers, mount less, or use a volume and docker cp",
			"the mounts of all containers of this session, and the files of its builds, would hold more than %d files and links, or %d MiB", s.most.entries, s.most.bytes>>20)
	}
	*had, s.used = had.plus(more), s.used.plus(more)
	return nil
}

func (s *store) give(l load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = s.used.minus(l)
}

// release gives back all of what is had.
func (s *store) release(had *load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, *had = s.used.minus(*had), load{}
}

// drop removes the copies that a container was given. Copies that can't be removed still
// count; they are removed with the session's directory.
func (b *Broker) drop(c *child) {
	for _, m := range c.mirrors {
		b.store.release(&m.taken)
	}
	if c.place == "" {
		return
	}
	if err := os.RemoveAll(c.place); err != nil {
		b.log("remove the copies of a container's mounts: %v", nameless(err))
		return
	}
	b.store.give(c.copied)
	c.place, c.copied = "", load{}
}

// nameless is err without a path, which the guest has chosen.
func nameless(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// A metered file asks before it grows: the guest's may grow while it is read.
type metered struct {
	to   io.Writer
	take func(more load) error
}

// Write writes what there is room for.
func (m *metered) Write(p []byte) (int, error) {
	if err := m.take(load{bytes: int64(len(p))}); err != nil {
		return 0, err
	}
	return m.to.Write(p)
}
