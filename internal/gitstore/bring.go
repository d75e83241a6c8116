package gitstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of a guest's changes.
const (
	maxPack   = 8 << 30 // bytes of one pack
	fewEnough = 100     // objects that are unpacked rather than kept as a pack
	maxHaves  = 2000    // refs that record the host's objects
)

// tolerated are harmless defects of old commits, which many repositories have.
const tolerated = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,missingEmail=ignore,missingSpaceBeforeEmail=ignore,missingNameBeforeEmail=ignore,badDate=ignore,badEmail=ignore,badName=ignore,nullSha1=ignore"

// wants are the new objects from which everything new is reached, as they can be
// published one without the other.
func (c *changes) wants() map[string][]string {
	have := map[string]bool{}
	for _, id := range c.host.tree.refs {
		have[id] = true
	}
	w := map[string][]string{}
	add := func(key string, ids ...string) {
		for _, id := range ids {
			if id != "" && !have[id] {
				w[key] = append(w[key], id)
			}
		}
	}
	for _, m := range c.out {
		add(m.name, m.new)
	}
	if branchOf(c.private.head) == "" && (c.head == headOut || c.besideOnly != "") {
		add("HEAD", c.private.head)
	}
	add(stashRef, stackIDs(c.stack.pushes)...)
	if c.index != nil {
		add("index", c.index.private.blobs(c.index.base)...)
	}
	return w
}

// objects brings new objects to the host: all at once, or if that fails one by
// one, without those at fault.
func (c *changes) objects(ctx context.Context) error {
	w := c.wants()
	if len(w) == 0 {
		return nil
	}
	if err := c.store.large(ctx, c.unit); err != nil {
		return err
	}
	all := slices.Concat(slices.Collect(maps.Values(w))...)
	err := c.bring(ctx, all)
	if err == nil || ctx.Err() != nil {
		return err
	}
	for key, ids := range w {
		if len(w) > 1 {
			err = c.bring(ctx, ids)
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return err
		}
		c.bad(key, err)
	}
	return nil
}

// bad leaves out refs with objects that the host does not accept.
func (c *changes) bad(key string, err error) {
	s, u := c.store, c.unit
	s.tell(u, &s.report.Problems, key+unpublishable+err.Error())
	switch key {
	case "HEAD":
		c.head = headStays
	case "index":
		c.index = nil
	case stashRef:
		c.stack = stack{now: u.Stash}
	default:
		c.out = slices.DeleteFunc(c.out, func(m move) bool {
			if m.name == key {
				u.told["bad "+m.name+m.new], u.Beside[m.name] = true, m.new
			}
			return m.name == key
		})
		if branchOf(c.private.head) == key {
			c.head, c.index = headStays, nil
		}
	}
}

// bring carries the objects that ids reach and the host does not have, and checks
// that nothing is missing then.
func (c *changes) bring(ctx context.Context, ids []string) error {
	s, u := c.store, c.unit
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var ask strings.Builder
	for _, id := range ids {
		ask.WriteString(id + "\n")
	}
	for _, id := range c.haves() {
		ask.WriteString("^" + id + "\n")
	}
	args := []string{"pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q"}
	if u.Partial {
		args = append(args, "--missing=allow-promisor")
	}
	r, w := io.Pipe()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		err := s.read(reading, u, strings.NewReader(ask.String()), w, args...)
		w.CloseWithError(err)
		done <- err
	}()
	err := s.unpack(ctx, u, r)
	r.CloseWithError(io.ErrClosedPipe)
	if err != nil {
		stop()
	}
	if read := <-done; err == nil && read != nil {
		err = read
	}
	if err != nil {
		return err
	}
	return c.complete(ctx, ids)
}

// complete checks that nothing is missing of what ids reach. If one of them alone
// may be a commit, why finds in ahead the new part of its commits.
func (c *changes) complete(ctx context.Context, ids []string) error {
	s, u := c.store, c.unit
	args := append([]string{"rev-list", "--objects", "--stdin", "--not"}, trusted...)
	if u.Partial {
		args = append(args, "--exclude-promisor-objects")
	}
	commits := &commitLines{to: io.Discard}
	check := func() error {
		_, err := s.git.run(ctx, u, call{args: args, in: strings.NewReader(strings.Join(ids, "\n") + "\n"), out: commits})
		return err
	}
	staged := c.wants()["index"]
	heads := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(staged, id) })
	if len(heads) != 1 {
		return check()
	}
	r, w := io.Pipe()
	commits.to = w
	checked := make(chan error, 1)
	go func() {
		err := check()
		w.CloseWithError(err)
		checked <- err
	}()
	trees, err := s.git.run(ctx, u, call{args: newTrees, in: r})
	r.CloseWithError(io.ErrClosedPipe)
	if failed := <-checked; failed != nil {
		return failed
	}
	if err == nil {
		c.ahead = lookahead{id: heads[0], some: commits.n > 0, trees: trees}
	}
	return nil
}

// A lookahead is what newTrees says of the commits that an object reaches and the host
// does not have.
type lookahead struct {
	id    string
	some  bool // there are such commits
	trees []byte
}

// commitLines passes on, of what rev-list --objects writes, the commits: all else has
// a name behind its ID.
type commitLines struct {
	to   io.Writer
	n    int
	rest []byte
}

func (l *commitLines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte{'\n'})
		if !whole {
			return len(p), nil
		}
		l.rest = rest
		if bytes.IndexByte(line, ' ') >= 0 {
			continue
		}
		l.n++
		if _, err := l.to.Write(append(slices.Clone(line), '\n')); err != nil {
			l.to = io.Discard // the check goes on
		}
	}
}

// haves are objects that both sides have. Another session removes the commit that is
// its pin when it ends, which may be now.
func (c *changes) haves() []string {
	u := c.unit
	have := map[string]bool{}
	if u.Added && !u.Tree {
		return nil // its guest's objects are not beside the host's
	}
	for _, m := range c.out {
		if id := u.Base[m.name]; id != "" && c.host.tree.refs[m.name] == id {
			have[id] = true
		}
	}
	if id := c.host.value(c.host.head); id != "" {
		have[id] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.host.tree.refs)) {
		if len(have) >= maxHaves {
			break
		}
		if !isPin(name) {
			have[c.host.tree.refs[name]] = true
		}
	}
	return slices.Sorted(maps.Keys(have))
}

// unpack puts a pack into the host's objects, as strictly as git can.
func (s *Store) unpack(ctx context.Context, u *unit, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(12)
	if err != nil {
		return fmt.Errorf("the guest's pack: %w", unexpected(err))
	}
	if !bytes.Equal(head[:4], []byte("PACK")) || binary.BigEndian.Uint32(head[4:]) != 2 {
		return errors.New("the guest's pack: it is not a pack")
	}
	limit := strconv.FormatInt(maxPack, 10)
	switch n := binary.BigEndian.Uint32(head[8:]); {
	case n == 0:
		_, err = io.Copy(io.Discard, io.LimitReader(in, 64))
	case n <= fewEnough:
		_, err = s.git.run(ctx, u, call{args: []string{"unpack-objects", "-q", tolerated, "--max-input-size=" + limit}, in: in})
	default:
		_, err = s.git.run(ctx, u, call{args: []string{"index-pack", "--stdin", tolerated, "--fix-thin", "--max-input-size=" + limit}, in: in})
	}
	return err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
