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
	"os"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a guest makes.
const (
	maxPack   = 8 << 30 // bytes of one pack
	fewEnough = 100     // objects that are unpacked rather than kept as a pack
	maxHaves  = 2000    // refs that say what the host has
)

// lenient are defects of old commits that hurt nobody, and that repositories of
// everybody's have.
const lenient = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,missingEmail=ignore,missingSpaceBeforeEmail=ignore,missingNameBeforeEmail=ignore,badDate=ignore,badEmail=ignore,badName=ignore,nullSha1=ignore"

// carry does what collect has found.
func (c *changes) carry(ctx context.Context) error {
	if err := c.objects(ctx); err != nil {
		return err
	}
	s, u := c.store, c.unit
	if c.besideOnly != "" {
		return errors.Join(c.publish(ctx), c.rest(ctx))
	}
	if c.index.toHost() { // before the lock: no git of the human's waits for it
		if err := s.buildIndex(ctx, u, c.index); err != nil {
			return fmt.Errorf("write the index: %w", err)
		}
		defer s.dropIndex(u)
	}
	if err := c.pull(ctx); err != nil {
		return err
	}
	if err := s.stashIn(u, c.stack, u.Size); err != nil {
		return err
	}
	if err := c.locked(ctx); err != nil {
		return err
	}
	if err := c.remove(ctx); err != nil {
		return err
	}
	if err := s.stashOut(ctx, u, c.stack); err != nil {
		return err
	}
	return s.agreed(ctx, u, c.index)
}

// locked moves the refs, HEAD and the index of the host, as one where they belong
// together.
func (c *changes) locked(ctx context.Context) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.publish(ctx); err != nil {
		return err
	}
	return c.headAndIndex(ctx)
}

// rest keeps beside what is neither a branch nor a tag, where nothing can be
// published.
func (c *changes) rest(ctx context.Context) error {
	s, u := c.store, c.unit
	if branchOf(c.private.head) == "" && c.private.head != u.Head {
		if err := s.beside(ctx, u, "HEAD", c.private.head, "HEAD", c.besideOnly); err != nil {
			return err
		}
	}
	st := c.stack
	st.beside, st.asks = true, nil
	if slices.Equal(stackIDs(st.now), stackIDs(u.Stash)) {
		return nil
	}
	return s.stashOut(ctx, u, st)
}

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
	if c.index != nil && c.index.merged != nil {
		add("index", c.index.private.blobs(c.index.base)...)
	}
	return w
}

// objects brings what is new to the host: all at once, or where that fails one by
// one, without what is at fault.
func (c *changes) objects(ctx context.Context) error {
	w := c.wants()
	if len(w) == 0 {
		return nil
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

// bad leaves out what has objects that the host does not take.
func (c *changes) bad(key string, err error) {
	s, u := c.store, c.unit
	s.tell(u, &s.report.Problems, fmt.Sprintf("%s of the guest's can't be published: %v", key, err))
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
	check := []string{"rev-list", "--objects", "--stdin", "--not", "--all", "--quiet"}
	if u.Partial {
		args, check = append(args, "--missing=allow-promisor"), append(check, "--exclude-promisor-objects")
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
	_, err = s.git.run(ctx, u, call{args: check, in: strings.NewReader(strings.Join(ids, "\n") + "\n"), out: io.Discard})
	return err
}

// haves are objects that both sides have.
func (c *changes) haves() []string {
	u := c.unit
	have := map[string]bool{}
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
		have[c.host.tree.refs[name]] = true
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
		return errors.New("the guest's pack: it is none")
	}
	limit := strconv.FormatInt(maxPack, 10)
	switch n := binary.BigEndian.Uint32(head[8:]); {
	case n == 0:
		_, err = io.Copy(io.Discard, io.LimitReader(in, 64))
	case n <= fewEnough:
		_, err = s.git.run(ctx, u, call{args: []string{"unpack-objects", "-q", lenient, "--max-input-size=" + limit}, in: in})
	default:
		_, err = s.git.run(ctx, u, call{args: []string{"index-pack", "--stdin", lenient, "--fix-thin", "--max-input-size=" + limit}, in: in})
	}
	return err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lock holds the host's index while HEAD, its branch or the index change, so that
// no git of the human's sees one without the others.
func (c *changes) lock() (unlock func(), err error) {
	s, u := c.store, c.unit
	branch := branchOf(c.host.head)
	needs := c.head == headOut || c.index.toHost() ||
		slices.ContainsFunc(c.out, func(m move) bool { return m.why == "" && m.name == branch })
	if !needs {
		return func() {}, nil
	}
	l, err := s.lockIndex(u)
	if err != nil {
		return nil, err
	}
	head, err := readHead(u.host, u.Rel, u.Size)
	if err != nil || head != c.host.head || c.index != nil && stampOf(u.host, u.at("index")) != c.index.stamps[0] {
		l.unlock()
		return nil, errBusy
	}
	return l.unlock, nil
}

// publish moves the host's refs, each from the value that it was seen at.
func (c *changes) publish(ctx context.Context) error {
	s, u := c.store, c.unit
	for _, m := range c.out {
		why := m.why
		if why == "" && m.ahead && !c.contains(ctx, m) {
			why = "it was changed on the host too"
			u.told["parted "+m.name+m.old+m.new] = true
		}
		if why == "" {
			old := m.old
			if old == "" {
				old = strings.Repeat("0", u.Size)
			}
			_, err := s.git.run(ctx, u, call{args: []string{"update-ref", "-m", "bawn " + short(s.Session) + ": " + c.said(m), m.name, m.new, old}})
			if err == nil {
				u.Base[m.name] = m.new
				delete(u.Beside, m.name)
				c.host.tree.refs[m.name] = m.new
				s.report.Published++
				s.settled(m.name)
				continue
			}
			if ctx.Err() != nil {
				return err
			}
			why = "it was changed on the host too"
		}
		if err := s.beside(ctx, u, strings.TrimPrefix(m.name, "refs/"), m.new, m.name, why); err != nil {
			return err
		}
		u.Beside[m.name] = m.new
	}
	return nil
}

// said is what the guest's reflog says of a move.
func (c *changes) said(m move) string {
	for _, name := range []string{"logs/" + m.name, c.unit.at("logs/HEAD")} {
		text, err := readFile(c.unit.private, name, maxLog)
		if err != nil {
			continue
		}
		if list := parseLog(text, c.unit.Size); len(list) > 0 {
			if id, said, _ := strings.Cut(list[len(list)-1], " "); id == m.new && said != "" {
				return said[:min(len(said), 200)]
			}
		}
	}
	return "publish"
}

// contains reports whether the guest's value contains the host's.
func (c *changes) contains(ctx context.Context, m move) bool {
	if m.old == "" || !strings.HasPrefix(m.name, "refs/heads/") {
		return false
	}
	_, err := c.store.git.run(ctx, c.unit, call{args: []string{"merge-base", "--is-ancestor", m.old, m.new}})
	return err == nil
}

// beside keeps a value of the guest's under a name of the session's.
func (s *Store) beside(ctx context.Context, u *unit, at, id, ref, why string) error {
	name := s.own(at)
	if !formatOK(name) {
		name = s.own("refused/" + id[:12])
	}
	if _, err := s.git.run(ctx, u, call{args: []string{"update-ref", name, id}}); err != nil {
		s.tell(u, &s.report.Problems, fmt.Sprintf("%q of the guest's could not be kept: %v", ref, err))
		return nil
	}
	s.report.Kept = slices.DeleteFunc(s.report.Kept, func(k Kept) bool { return k.Beside == name })
	s.report.Kept = append(s.report.Kept, Kept{Ref: ref, Beside: name, Why: why})
	return nil
}

// settled forgets what was kept beside of a ref that is published now. The ref
// beside stays: it costs nothing, and may be what the human looks for.
func (s *Store) settled(ref string) {
	s.report.Kept = slices.DeleteFunc(s.report.Kept, func(k Kept) bool { return k.Ref == ref && ref != stashRef })
}

// remove deletes what the session has made and the guest has deleted.
func (c *changes) remove(ctx context.Context) error {
	for _, m := range c.gone {
		if _, err := c.store.git.run(ctx, c.unit, call{args: []string{"update-ref", "-d", m.name, m.old}}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.store.lost(c.unit, m.name)
			continue
		}
		delete(c.unit.Base, m.name)
		delete(c.host.tree.refs, m.name)
	}
	return nil
}

// pull gives the guest what the human has changed. Its objects are pinned first.
func (c *changes) pull(ctx context.Context) error {
	if len(c.in) == 0 {
		return nil
	}
	s, u := c.store, c.unit
	for _, m := range c.in {
		u.set(m.name, m.new)
	}
	if err := s.pinUnit(ctx, u, s.basePath(u)); err != nil {
		return err
	}
	for _, m := range c.in {
		var err error
		if m.new == "" {
			err = dropRef(u.private, m.name)
		} else {
			err = setRef(u.private, m.name, m.new, func() bool { return valueOf(u.private, m.name, c.private.tree, u.Size) == m.old })
		}
		if err != nil {
			u.set(m.name, m.old)
			if errors.Is(err, errBusy) {
				return err
			}
			s.tell(u, &s.report.Problems, fmt.Sprintf("the guest does not get %q: %v", m.name, err))
			continue
		}
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

// without is a packed-refs less one ref, and what it was peeled to.
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

// headAndIndex lets HEAD and the index follow, on the side that has not changed
// them, once both sides agree on where HEAD leads.
func (c *changes) headAndIndex(ctx context.Context) error {
	s, u := c.store, c.unit
	head := c.host.head
	switch c.head {
	case headParted:
		c.index = nil
		return nil
	case headOut:
		head = c.private.head
		if ref := branchOf(head); ref != "" && (nameOK(ref) != nil || !strings.HasPrefix(ref, "refs/heads/") || c.taken()[ref]) {
			s.tell(u, &s.report.Problems, fmt.Sprintf("the guest's HEAD is at %q, where yours can't be", ref))
			c.index = nil
			return nil
		}
	}
	if c.host.value(head) != c.private.value(head) {
		c.index = nil
		return nil // what HEAD names has lost a race, and is kept beside
	}
	if err := c.moveHead(ctx, head); err != nil {
		return err
	}
	if !c.index.toHost() {
		return nil
	}
	s.report.Published++
	return s.installIndex(u, c.index)
}

// moveHead makes HEAD what it is on the other side.
func (c *changes) moveHead(ctx context.Context, head string) error {
	s, u := c.store, c.unit
	switch c.head {
	case headOut:
		args := []string{"update-ref", "--no-deref", "-m", "bawn " + short(s.Session), "HEAD", head}
		if ref := branchOf(head); ref != "" {
			args = []string{"symbolic-ref", "-m", "bawn " + short(s.Session) + ": " + c.said(move{name: ref, new: c.private.value(head)}), "HEAD", ref}
		}
		if _, err := s.git.run(ctx, u, call{args: args}); err != nil {
			return err
		}
		s.report.Published++
	case headIn:
		done, err := replace(u.private, u.at("HEAD"), []byte(head+"\n"), func() bool {
			now, err := readHead(u.private, u.Rel, u.Size)
			return err == nil && now == c.private.head
		})
		if err != nil || !done {
			return errBusy
		}
	}
	u.Head = head
	return nil
}
