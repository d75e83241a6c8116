package gitstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// Bounds of what git-lfs keeps.
const (
	maxLarge   = 16 << 30 // one object
	maxLargest = 100_000  // objects that a session makes
)

// lfsObjects is where git-lfs keeps objects, below a git directory, by the SHA-256
// of their contents.
const lfsObjects = "lfs/objects"

// large brings the objects of git-lfs to the host that the guest has made: commits
// that are published name them. Each is checked against its name.
func (s *Store) large(ctx context.Context, u *unit) error {
	if !exists(u.private, lfsObjects) {
		return nil
	}
	if u.large == nil {
		u.large = map[string]bool{}
	}
	return s.largeBelow(ctx, u, lfsObjects, 0)
}

func (s *Store) largeBelow(ctx context.Context, u *unit, dir string, depth int) error {
	list, err := readDir(u.private, dir)
	if err != nil {
		return nil //nolint:nilerr // removed, or made unreadable: then it is not published
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case depth < 2 && e.IsDir() && len(e.Name()) == 2:
			if err := s.largeBelow(ctx, u, name, depth+1); err != nil {
				return err
			}
		case depth < 2 || !e.Type().IsRegular() || !isID(e.Name(), 64) || u.large[name] || len(u.large) >= maxLargest:
		case name != path.Join(lfsObjects, e.Name()[:2], e.Name()[2:4], e.Name()):
		default:
			u.large[name] = true
			if exists(u.host, name) {
				continue
			}
			if err := copyLarge(u, name, e.Name()); err != nil {
				s.tell(u, &s.report.Problems, fmt.Sprintf("a large file of the guest's can't be published: %v", err))
			}
		}
	}
	return nil
}

// copyLarge copies one object, and keeps it if it is what its name says.
func copyLarge(u *unit, name, id string) error {
	in, fi, err := open(u.private, name)
	if err != nil {
		return err
	}
	defer in.Close()
	if fi.Size() > maxLarge {
		return fmt.Errorf("%q: %w", name, errTooMuch)
	}
	if err := u.host.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	draft := path.Join(path.Dir(name), "bawn-"+rand.Text())
	out, err := u.host.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, maxLarge))
	err = errors.Join(err, out.Close())
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != id {
		err = fmt.Errorf("%q is not what its name says", name)
	}
	if err == nil {
		err = u.host.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, u.host.Remove(draft))
	}
	return nil
}
