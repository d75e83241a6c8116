package dockerapi

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// bring brings a mirror of a container together that is at rest, and reports whether
// something was done.
func (b *Broker) bring(ctx context.Context, c *child, m *mirror) (some bool, err error) {
	if m.told = 0; len(m.held) > maxHeld {
		clear(m.held) // to be told of again
	}
	defer b.heldMore(c, m)
	leave, err := b.store.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	dir, err := b.o.View.openDir(m.source)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	b.store.release(&m.taken)
	defer func() {
		if !b.has(c) { // it was removed meanwhile
			b.store.release(&m.taken)
		}
	}()
	found, err := m.look(dir, func(more load) error { return b.store.takeOf(mirrorLoad, &m.taken, more) })
	if err != nil {
		return false, err
	}
	if m.seen = found; !m.leadsToMounts() {
		return false, refuse(RuleMount, "make directories of them, or mount it elsewhere", "something is mounted below what is no directory in %.200q", m.source)
	}
	there, err := b.inner(ctx, c, m)
	if err != nil {
		return false, err
	}
	if err := b.untold(ctx, c, m, there.tree); err != nil {
		return false, err
	}
	todo := m.merge(statesOf(m.seen), there.tree)
	for _, name := range todo.conflicts {
		m.held[name] = there.tree[name]
		b.heldBack(c, m, name, "the session has changed it, too", "")
	}
	if err := b.pull(ctx, c, m, there, todo); err != nil {
		return false, err
	}
	return !todo.nothing(), b.push(ctx, c, m, dir, there, todo.push)
}

// leadsToMounts reports whether the guest has directories, or nothing, on the way to what
// is mounted within the mirror.
func (m *mirror) leadsToMounts() bool {
	for _, e := range m.except {
		for p := path.Dir(e); p != "."; p = path.Dir(p) {
			if s, ok := m.seen[p]; ok && s.state.kind != kindDir {
				return false
			}
		}
	}
	return true
}

func statesOf(found map[string]seen) tree {
	t := tree{}
	for name, s := range found {
		t[name] = s.state
	}
	return t
}

// An innerSide is what a container has in the place of a mirror.
type innerSide struct {
	tree tree
	more map[string]ownerAndSize
}

type ownerAndSize struct {
	uid, gid int
	size     int64
}

// inner asks the engine for all that is in a mirror's place.
func (b *Broker) inner(ctx context.Context, c *child, m *mirror) (*innerSide, error) {
	got := &innerSide{tree{}, map[string]ownerAndSize{}}
	var linked load
	err := b.each(ctx, c, m, func(name string, h *tar.Header, from io.Reader) error {
		s := fileState{kind: kindOther}
		switch h.Typeflag {
		case tar.TypeDir:
			s = fileState{kind: kindDir, mode: uint32(h.Mode)}
		case tar.TypeSymlink:
			s = fileState{kind: kindLink, link: h.Linkname}
		case tar.TypeLink: // a second name: what it leads to came before
			h.Linkname = insideOf(h.Linkname)
			if s = got.tree[h.Linkname]; s.kind != kindFile {
				s = fileState{kind: kindOther}
			} else {
				h.Size = got.more[h.Linkname].size
				if linked.bytes += h.Size; !linked.within(innerLoad) { // each becomes a file of its own
					return tooMuch()
				}
			}
		case tar.TypeReg:
			sum := sha256.New()
			if _, err := io.Copy(sum, from); err != nil {
				return notTar(err)
			}
			s = fileState{kind: kindFile, mode: uint32(h.Mode)}
			sum.Sum(s.sum[:0])
		}
		got.tree[name], got.more[name] = s, ownerAndSize{h.Uid, h.Gid, h.Size}
		return nil
	})
	return got, err
}

// insideOf is a name of an archive without its first part, which is the directory's own.
func insideOf(name string) string {
	_, below, _ := strings.Cut(path.Clean(name), "/")
	if below == "" {
		return "."
	}
	return below
}

// each calls see for each name in a mirror's place, the directory among them.
func (b *Broker) each(ctx context.Context, c *child, m *mirror, see func(name string, h *tar.Header, from io.Reader) error) error {
	resp, err := b.engine.stream(ctx, message{method: http.MethodGet, path: "/containers/" + c.id + "/archive", query: url.Values{"path": {m.target}}})
	if err != nil && !notMade(err) {
		return lost{err}
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var all load
	text := 0
	for a := newArchive(resp.Body); ; {
		h, err := a.head()
		if errors.Is(err, io.EOF) && a.ended() {
			return nil
		}
		if err != nil { // names that are missing would count as removed
			return fmt.Errorf("read what a container has: %w", err)
		}
		text += len(h.Name) + len(h.Linkname)
		if all = all.plus(load{1, min(h.Size, innerLoad.bytes+1)}); !all.within(innerLoad) || text > mirrorText {
			return tooMuch()
		}
		name := insideOf(h.Name)
		if h.Typeflag == tar.TypeXGlobalHeader || m.skips(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.ContainsRune(name, 0) {
			continue
		}
		if oneOf(string(h.Typeflag), string(tar.TypeReg), string(tar.TypeDir)) {
			h.Mode &= 0o777
		}
		if err := see(name, h, a.tar); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, a.tar); err != nil { // what was not read is no part of the next header
			return notTar(err)
		}
	}
}

// Bounds of the guest's side of a mirror, and of the container's; and of the bytes in all
// names and targets of links of one side, which are kept in memory.
var (
	mirrorLoad = load{50_000, 512 << 20}
	innerLoad  = load{100_000, 2 << 30}
	mirrorText = 32 << 20
)

func tooMuch() error {
	return refuse(RuleLimit, "write to a volume, and copy out what is needed (docker cp)",
		"a container has more than %d files, %d MiB in files or %d MiB in their names, in a mount: none of it comes back", innerLoad.entries, innerLoad.bytes>>20, mirrorText>>20)
}

// push writes what the guest has changed to the container.
func (b *Broker) push(ctx context.Context, c *child, m *mirror, dir *os.File, there *innerSide, names []string) error {
	if len(names) == 0 {
		return nil
	}
	r, w := io.Pipe()
	sent := tree{}
	written := make(chan struct{})
	go func() {
		defer close(written)
		out := tar.NewWriter(w)
		err := error(nil)
		for _, name := range names {
			if err = m.send(out, dir, name, there, sent); err != nil {
				break
			}
		}
		w.CloseWithError(errors.Join(err, out.Close())) // nil: an ordinary end
	}()
	msg := message{method: http.MethodPut, path: "/containers/" + c.id + "/archive", query: url.Values{"path": {m.target}}, raw: r, kind: "application/x-tar", limit: mirrorTime}
	err := b.engine.do(ctx, msg, nil)
	r.Close()
	<-written
	if err != nil && !notMade(err) {
		return lost{err}
	}
	if err != nil {
		return err
	}
	for name, s := range sent {
		m.base[name] = s
	}
	return nil
}

// send writes one name of the guest's to a stream. One that is no more what it was is left
// for the next time. Whose a file is stays what it is in the container.
func (m *mirror) send(out *tar.Writer, dir *os.File, name string, there *innerSide, sent tree) error {
	e := m.seen[name]
	h := &tar.Header{Name: "./" + name, Mode: int64(e.state.mode), Uid: int(e.uid), Gid: int(e.gid), ModTime: e.modified, Format: tar.FormatPAX}
	if had, ok := there.more[name]; ok {
		h.Uid, h.Gid = had.uid, had.gid
	}
	switch e.state.kind {
	case kindDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case kindLink:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.state.link, 0o777
	case kindFile:
		return m.sendFile(out, dir, name, h, sent)
	default:
		return nil
	}
	sent[name] = e.state
	return out.WriteHeader(h)
}

func (m *mirror) sendFile(out *tar.Writer, dir *os.File, name string, h *tar.Header, sent tree) error {
	f, err := openBelow(dir, name)
	if err != nil {
		return nil // it is gone
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, min(info.Size(), m.seen[name].size) // what has come since does not count yet
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(f, h.Size))
	if err == nil && n < h.Size { // it has become shorter: the rest is zeros, and it differs the next time
		_, err = io.CopyN(io.MultiWriter(out, sum), zeros{}, h.Size-n)
	}
	s := fileState{kind: kindFile, mode: uint32(h.Mode)}
	sum.Sum(s.sum[:0])
	sent[name] = s
	return err
}

// zeros is an endless file of them.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// pull has the guest's side write what the container has changed.
func (b *Broker) pull(ctx context.Context, c *child, m *mirror, there *innerSide, todo merged) error {
	put := map[string]bool{}
	for _, name := range todo.put {
		s, why := there.tree[name], ""
		switch s.kind {
		case kindOther:
			why = "it is neither a file nor a directory nor a link, or the engine can't read it"
		case kindLink:
			if _, inside := fspath.LinkInside(name, s.link); !inside {
				why = "it is a link out of the mounted directory"
			}
		}
		if why != "" {
			m.held[name] = s
			b.heldBack(c, m, name, why, "")
			continue
		}
		put[name] = true
	}
	if len(put)+len(todo.remove) == 0 {
		return nil
	}
	if len(todo.remove) > 0 {
		if err := b.stillThere(ctx, c); err != nil {
			return err
		}
	}
	got := tree{}
	failed, err := b.write(ctx, m.source, slices.Concat(todo.remove, todo.put), func(out *tar.Writer) error {
		first, last := inTheWay(todo.remove, put)
		if err := m.drop(out, first, got); err != nil {
			return err
		}
		err := b.each(ctx, c, m, func(name string, h *tar.Header, from io.Reader) error {
			if !put[name] {
				return nil
			}
			return m.receive(out, name, h, from, there, got)
		})
		if err != nil {
			return err
		}
		return m.drop(out, last, got)
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(todo.remove, todo.put) {
		s, asked := got[name]
		if why := failed[name]; asked && why != "" {
			m.held[name] = there.tree[name]
			b.heldBack(c, m, name, why, "have your human permit it (--unprotect NAME), or ")
		} else if asked {
			m.base.set(name, s)
		}
	}
	return nil
}

// was is the stamp of a name of the guest's.
func (m *mirror) was(name string) string {
	if e, ok := m.seen[name]; ok {
		return e.was
	}
	return writeback.Nothing
}

// receive writes one name of a container's to the writer in the guest.
func (m *mirror) receive(out *tar.Writer, name string, h *tar.Header, from io.Reader, there *innerSide, got tree) error {
	s := there.tree[name]
	to := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, ModTime: h.ModTime, Format: tar.FormatPAX, PAXRecords: map[string]string{writeback.Was: m.was(name)},
	}
	switch {
	case h.Typeflag == tar.TypeLink && s.kind == kindFile:
		to.Linkname, to.Size, to.Mode = insideOf(h.Linkname), 0, int64(s.mode)
	case h.Typeflag == tar.TypeReg && s.kind == kindFile:
		if err := out.WriteHeader(to); err != nil {
			return err
		}
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(out, sum), from); err != nil {
			return err
		}
		s = fileState{kind: kindFile, mode: uint32(h.Mode)}
		sum.Sum(s.sum[:0])
		got[name] = s
		return nil
	case h.Typeflag == tar.TypeDir && s.kind == kindDir, h.Typeflag == tar.TypeSymlink && s.kind == kindLink && s.link == h.Linkname:
	default:
		return nil // it has become another kind: the next time
	}
	got[name] = s
	return out.WriteHeader(to)
}
