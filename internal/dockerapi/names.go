package dockerapi

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// hosts is the file that tells containers each other's names: they share one
// network, in which all of them are at 127.0.0.1.
type hosts struct{ file *os.File }

// newHosts makes the file in dir, or returns nil for no directory.
func newHosts(dir string) (*hosts, error) {
	if dir == "" {
		return nil, nil
	}
	f, err := os.OpenFile(filepath.Join(dir, "hosts"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make the file of containers' names: %w", err)
	}
	h := &hosts{file: f}
	return h, h.write(nil)
}

// source is the path at which the engine finds the file, or "" if h is nil.
func (h *hosts) source() string {
	if h == nil {
		return ""
	}
	return h.file.Name()
}

// write replaces the contents, in place: a mount shows this very file.
func (h *hosts) write(names []string) error {
	if h == nil {
		return nil
	}
	var text bytes.Buffer
	text.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, n := range names {
		fmt.Fprintf(&text, "127.0.0.1\t%s\n", n)
	}
	if _, err := h.file.WriteAt(text.Bytes(), 0); err != nil {
		return err
	}
	return h.file.Truncate(int64(text.Len()))
}

func (h *hosts) close() error {
	if h == nil {
		return nil
	}
	_ = os.Remove(h.file.Name()) // with its directory, at the latest
	return h.file.Close()
}

// writeNames writes the names of all containers.
func (b *Broker) writeNames() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeNamesLocked()
}

func (b *Broker) writeNamesLocked() {
	all := map[string]bool{}
	for id, c := range b.children {
		if c.wanted.isolated {
			continue
		}
		all[c.wanted.name], all[id[:12]] = true, true
		if c.wanted.hostname != "" {
			all[c.wanted.hostname] = true
		}
		for _, aliases := range c.networks {
			for _, a := range aliases {
				all[a] = true
			}
		}
	}
	delete(all, "localhost")
	if err := b.names.write(slices.Sorted(maps.Keys(all))); err != nil {
		b.log("write the names of containers: %v", err)
	}
}
