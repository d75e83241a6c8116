package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// pull gives the guest the human's changes. Its objects are pinned first.
func (c *changes) pull(ctx context.Context) error {
	if len(c.in) == 0 {
		return nil
	}
	s, u := c.store, c.unit
	for _, m := range c.in {
		u.set(m.name, m.new)
	}
	err := s.pinUnit(ctx, u, s.basePath(u))
	for _, m := range c.in {
		u.set(m.name, m.old) // until the guest has it: else it would seem to have deleted the ref
	}
	if err != nil {
		return err
	}
	for _, m := range c.in {
		if m.new == "" {
			err = dropRef(u.private, m.name)
		} else {
			err = setRef(u.private, m.name, m.new, func() bool { return valueOf(u.private, m.name, c.private.tree, u.Size) == m.old })
		}
		if errors.Is(err, errBusy) {
			return err
		}
		if err != nil {
			s.tell(u, &s.report.Problems, fmt.Sprintf("the guest does not get %q: %v", m.name, err))
			continue
		}
		u.set(m.name, m.new)
		delete(u.Made, m.name) // it is the human's now
		c.private.tree.refs[m.name] = m.new
	}
	return nil
}

// setRef writes a loose ref into the private directory.
func setRef(root *os.Root, name, id string, unchanged func() bool) error {
	if fi, err := root.Lstat(name); err == nil && fi.IsDir() {
		if err := root.Remove(name); err != nil { // git leaves empty ones
			return err
		}
	}
	done, err := replace(root, name, []byte(id+"\n"), unchanged)
	if errors.Is(err, os.ErrExist) || err == nil && !done {
		return errBusy
	}
	return err
}

// valueOf reads one ref again.
func valueOf(root *os.Root, name string, t *refTree, size int) string {
	text, err := readFile(root, name, 4096)
	if err != nil {
		return t.refs[name]
	}
	id := strings.TrimSpace(string(text))
	if !isID(id, size) {
		return ""
	}
	return id
}

// dropRef removes a ref from the private directory: from packed-refs first, as git
// does.
func dropRef(root *os.Root, name string) error {
	text, err := readFile(root, "packed-refs", maxPacked)
	if err != nil && !missing(err) {
		return err
	}
	if rest := without(text, name); len(rest) != len(text) {
		if _, err := replace(root, "packed-refs", rest, nil); err != nil {
			if errors.Is(err, os.ErrExist) {
				return errBusy
			}
			return err
		}
	}
	if err := root.Remove(name); err != nil && !missing(err) {
		return err
	}
	return nil
}

// without is a packed-refs without one ref and its peeled value.
func without(text []byte, name string) []byte {
	var out []byte
	dropped := false
	for line := range bytes.Lines(text) {
		if len(line) > 0 && line[0] == '^' && dropped {
			continue
		}
		_, n, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
		if dropped = string(n) == name && line[0] != '#'; !dropped {
			out = append(out, line...)
		}
	}
	return out
}
