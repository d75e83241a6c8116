package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Layer is the upper directory of an overlay (the kernel's
// Documentation/filesystems/overlayfs.rst, "userxattr"): what a session on a copy has
// changed of its workspace.
type Layer struct {
	Base *Checkpoint // the workspace when the session began
	Top  *os.File    // the upper directory
	// Unlock says that nobody has the overlay mounted: directories and files that
	// their owner can't read get wider modes while they are read.
	Unlock bool
	// Look is told of the names in each directory that the layer touches, those of the
	// base too, before Hold is asked about any. It may be nil.
	Look func(rel string, isDir bool)
	// Hold says why a change stays in the layer; "" where it may leave it.
	Hold func(c *LayerChange) string
	// Left is what stays in the layer. Merge appends to it.
	Left []Leaving

	s   *Store
	top *node
}

// A LayerChange is one name that a layer has differently from its base.
type LayerChange struct {
	Path     string // relative to the workspace
	Old, New *Entry // nil for nothing
	Link     string // where New leads, if it is a symbolic link
}

// A Leaving is a name that stays in a layer, and why.
type Leaving struct {
	Path string `json:"path"` // relative to the workspace
	Why  string `json:"why"`
	Held bool   `json:"held,omitempty"` // Hold said so: else nothing can take it over
}

// whiteout is the kind of a name that the layer has removed: a device 0:0.
const whiteout Kind = 'w'

// layerLink marks the Link of files of a layer, whose inodes are not the base's.
const layerLink = 1 << 63

// Merge returns the base with the changes of the layer, as a checkpoint without a
// record: it lasts until the store is closed. It reads the layer, and nothing of the
// workspace.
func (s *Store) Merge(l *Layer) (*Checkpoint, error) {
	l.s = s
	s.taking.RLock()
	t := &Taking{s: s, o: Options{Why: AtCopy, Running: !l.Unlock}, when: time.Now(), release: sync.OnceFunc(s.taking.RUnlock)}
	if l.Unlock {
		t.o.Why = BeforeUndo // which opens what can't be read
	}
	defer t.Close()
	r, err := t.layer(l)
	if err != nil {
		return nil, fmt.Errorf("read what the session has changed: %w", err)
	}
	if err := t.store(); err != nil {
		return nil, err
	}
	tree, err := l.tree(r.now)
	if err != nil {
		return nil, fmt.Errorf("put together what the session has changed: %w", err)
	}
	root := l.Base.Roots[0]
	return &Checkpoint{When: t.when, Why: AtCopy, Workspace: l.Base.Workspace, Roots: []Root{{Path: root.Path, Mode: root.Mode, Tree: tree}}}, nil
}

// layer looks at every name of a layer.
func (t *Taking) layer(l *Layer) (*rooted, error) {
	top, err := unix.Openat(int(l.Top.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	r := &rooted{path: l.Base.Roots[0].Path, top: top, layer: l}
	t.roots = []*rooted{r}
	sc := &scanner{top: top, force: l.Unlock, layer: l}
	r.now, err = sc.scan(nil)
	r.racer, r.unlocked = sc.racer, sc.unlocked
	if err == nil {
		limit(r.now, nil, MaxTotal)
	}
	l.top = r.now
	return r, err
}

// tree stores the tree of the base with the layer's changes.
func (l *Layer) tree(top *node) (Digest, error) {
	base, err := l.s.tree(l.Base.Roots[0].Tree)
	if err != nil {
		return Digest{}, err
	}
	if err := l.look("", &level{base}, top); err != nil {
		return Digest{}, err
	}
	w := l.s.packer(l.s.has)
	m := &merger{Layer: l}
	if m.b, err = w.block(); err != nil {
		return Digest{}, err
	}
	list, err := m.dir("", &level{base}, top)
	if err != nil {
		return Digest{}, err
	}
	d := m.b.putTree(encodeTree(list))
	m.b.flush()
	p, err := w.close()
	l.s.add(p)
	return d, err
}

// look tells of names.
func (l *Layer) look(rel string, base *level, n *node) error {
	if l.Look == nil {
		return nil
	}
	for i := range base.list {
		l.Look(path.Join(rel, base.list[i].Name), base.list[i].Kind == Directory)
	}
	for i := range n.list() {
		x := &n.items[i]
		if x.Kind == whiteout {
			continue
		}
		at := path.Join(rel, x.Name)
		l.Look(at, x.Kind == Directory)
		if x.sub == nil {
			continue
		}
		below, err := l.s.entries(base.at(x.Name))
		if err != nil {
			return err
		}
		if err := l.look(at, below, x.sub); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the names of a directory; none for all else.
func (s *Store) entries(e *Entry) (*level, error) {
	if e == nil || e.Kind != Directory {
		return &level{}, nil
	}
	list, err := s.tree(e.Object)
	return &level{list}, err
}

// baseDir returns what a directory of the base holds; nothing where it is not there.
func (l *Layer) baseDir(rel string) *level {
	at, err := l.s.entries(&Entry{Kind: Directory, Object: l.Base.Roots[0].Tree})
	for name := range strings.SplitSeq(rel, "/") {
		if rel != "." && err == nil {
			at, err = l.s.entries(at.at(name))
		}
	}
	if err != nil {
		return &level{}
	}
	return at
}

// Links reports whether a path is a symbolic link in the base or in the layer.
func (l *Layer) Links(rel string) bool {
	if e := l.baseDir(path.Dir(rel)).at(path.Base(rel)); e != nil && e.Kind == Symlink {
		return true
	}
	n := l.top
	for name := range strings.SplitSeq(rel, "/") {
		x := n.at(0, name)
		if x == nil {
			return false
		}
		if x.Kind == Symlink {
			return true
		}
		n = x.sub
	}
	return false
}

// remade reports whether programs make a new directory of the layer again. What has to
// be beside it may be in the base. What the base covers is covered.
func (l *Layer) remade(n *node, name, rel string, fd int) bool {
	if remadeNames[name] == nil {
		return false
	}
	base := l.baseDir(path.Dir(rel))
	if e := base.at(name); e != nil && e.Kind.covered() {
		return false
	}
	return remadeBy(name, fd, func(mark string) bool { return n.at(0, mark) != nil || base.at(mark) != nil })
}

// A merger puts a tree together.
type merger struct {
	*Layer
	b *block
}

// leave notes that a change stays in the layer.
func (m *merger) leave(rel, why string, held bool) {
	m.Left = append(m.Left, Leaving{Path: rel, Why: why, Held: held})
}

// holds reports whether a change is held back, and notes why.
func (m *merger) holds(c *LayerChange) bool {
	why := m.Hold(c)
	if why != "" {
		m.leave(c.Path, why, true)
	}
	return why != ""
}

// dir returns what a directory of both holds.
func (m *merger) dir(rel string, base *level, n *node) (list []Entry, err error) {
	var names []string
	for i := range base.list {
		names = append(names, base.list[i].Name)
	}
	for i := range n.list() {
		names = append(names, n.items[i].Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		e, err := m.name(path.Join(rel, name), base.at(name), n.at(0, name), n.opaque)
		if err != nil {
			return nil, err
		}
		if e != nil {
			list = append(list, *e)
		}
	}
	return list, nil
}

// name returns the entry of one name: e as it was, x as the layer has it.
func (m *merger) name(rel string, e *Entry, x *item, opaque bool) (*Entry, error) {
	switch {
	case x == nil && !opaque:
		return e, nil
	case x == nil || x.Kind == whiteout:
		return m.removed(rel, e)
	case e != nil && !e.Kind.covered():
		m.leave(rel, uncoveredWhy(e), false)
		return e, nil
	case !x.Kind.covered():
		m.leave(rel, x.staysWhy(), false)
		return e, nil
	case x.Kind == Directory:
		x.sub.opaque = x.sub.opaque || opaque // the kernel marks the upper one only
		return m.directory(rel, e, x)
	}
	return m.put(rel, e, x)
}

// staysWhy says why something of a layer can't leave it.
func (x *item) staysWhy() string {
	if x.Kind == Uncovered {
		return x.why.String()
	}
	return uncoveredWhy(&x.Entry)
}

func uncoveredWhy(e *Entry) string {
	switch e.Kind {
	case Skipped:
		return "git directories are not taken over"
	case Remade:
		return "programs make it again"
	case Special:
		return "a device or a socket"
	}
	return "no checkpoint holds it"
}

// removed returns what stays of an entry that the layer has removed.
func (m *merger) removed(rel string, e *Entry) (*Entry, error) {
	switch {
	case e == nil:
		return nil, nil
	case !e.Kind.covered():
		m.leave(rel, uncoveredWhy(e), false)
		return e, nil
	case e.Kind != Directory:
		if m.holds(&LayerChange{Path: rel, Old: e}) {
			return e, nil
		}
		return nil, nil
	}
	base, err := m.s.entries(e)
	if err != nil {
		return nil, err
	}
	var rest []Entry
	for i := range base.list {
		kept, err := m.removed(path.Join(rel, base.list[i].Name), &base.list[i])
		if err != nil {
			return nil, err
		}
		if kept != nil {
			rest = append(rest, *kept)
		}
	}
	if len(rest) == 0 && !m.holds(&LayerChange{Path: rel, Old: e}) {
		return nil, nil
	}
	return m.holding(*e, rest), nil
}

// holding returns a directory with other contents.
func (m *merger) holding(e Entry, list []Entry) *Entry {
	e.Object = m.b.putTree(encodeTree(list))
	return &e
}

// directory returns a directory of the layer with what it holds.
func (m *merger) directory(rel string, e *Entry, x *item) (*Entry, error) {
	if x.sub.odd {
		m.leave(rel, overlayMark.String(), false)
		return e, nil
	}
	isNew := e == nil || e.Kind != Directory
	if e != nil && isNew && m.holds(&LayerChange{Path: rel, Old: e, New: &x.Entry}) {
		return e, nil
	}
	base, err := m.s.entries(e)
	if err != nil {
		return nil, err
	}
	left := len(m.Left)
	list, err := m.dir(rel, base, x.sub)
	if err != nil {
		return nil, err
	}
	change := &LayerChange{Path: rel, Old: e, New: &x.Entry}
	switch {
	case e == nil && len(list) == 0 && len(m.Left) > left: // all of it is held: its names were listed
		return nil, nil
	case e == nil && m.holds(change):
		return nil, nil
	case !isNew && !equal(e, &x.Entry) && m.holds(change):
		return m.holding(*e, list), nil
	}
	return m.holding(x.Entry, list), nil
}

// put returns a file, link or pipe of the layer.
func (m *merger) put(rel string, e *Entry, x *item) (*Entry, error) {
	n := x.Entry
	if n.Link != 0 {
		n.Link |= layerLink
	}
	if equal(e, &n) { // it was opened for writing, and no more
		return e, nil
	}
	c := &LayerChange{Path: rel, Old: e, New: &n}
	if n.Kind == Symlink {
		to, err := m.s.get(n.Object)
		if err != nil {
			return nil, err
		}
		c.Link = string(to)
	}
	if m.holds(c) {
		return e, nil
	}
	if e == nil || e.Kind != Directory {
		return &n, nil
	}
	rest, err := m.removed(rel, e)
	if err == nil && rest != nil {
		m.leave(rel, "a directory is in its place that can't go", false)
		return rest, nil
	}
	return &n, err
}

// overlayPrefix begins the attributes by which the kernel marks what is in a layer.
const overlayPrefix = "user.overlay."

// plainAttrs takes the kernel's marks out of a list of attributes. A mark that the
// kernel does not make in a layer of Bawn's is odd: it would have the overlay look
// elsewhere, and only somebody else can have made it.
func plainAttrs(b []byte) (rest []byte, opaque, odd bool) {
	list, err := decodeAttrs(b)
	if err != nil {
		return nil, false, true
	}
	for _, a := range list {
		name, mark := strings.CutPrefix(a.name, overlayPrefix)
		switch {
		case !mark:
			rest = appendAttr(rest, a.name, a.value)
		case name == "opaque":
			opaque = string(a.value) == "y"
			odd = odd || !opaque
		case name == "redirect", name == "metacopy", name == "whiteout", name == "verity":
			odd = true
		}
	}
	return rest, opaque, odd
}

// fileAttrs returns the attributes of an open file.
func (r *rooted) fileAttrs(fd int) ([]byte, error) {
	b := listAttrs(fd)
	if r.layer == nil || b == nil {
		return b, nil
	}
	rest, opaque, odd := plainAttrs(b)
	if opaque || odd {
		return nil, errOdd
	}
	return rest, nil
}

var errOdd = errors.New("a file of a layer with a mark that the kernel does not make")
