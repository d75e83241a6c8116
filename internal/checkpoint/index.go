package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// The format of an index: indexMagic, the packs of its objects (number, then name
// and size of each), the root's path, the root node, CRC-32C of all that.
const (
	indexMagic = "BAWNIDX2"
	maxIndex   = 512 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errIndex = errors.New("the index of a checkpoint is damaged")

func (s *Store) indexPath(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(s.dir, fmt.Sprintf("%s%x", indexName, sum[:12]))
}

// readIndex returns the last checkpoint's index of a root, or nil if
// no index can be used.
func (s *Store) readIndex(root string) *node {
	b, err := atomicfile.Read(s.indexPath(root), maxIndex)
	if err != nil {
		return nil
	}
	packs, err := s.packNames()
	if err != nil {
		return nil
	}
	n, needs, err := decodeIndex(b, root)
	if err != nil || slices.ContainsFunc(needs, func(p packID) bool { return !slices.Contains(packs, p) }) {
		return nil // a pack is gone, and with it objects that the index believes to be stored
	}
	return n
}

// writeIndex keeps the result of a scan for the next one.
func (s *Store) writeIndex(root string, n *node) error {
	packs, err := s.packNames()
	if err != nil {
		return err
	}
	return replace(s.indexPath(root), encodeIndex(root, packs, n))
}

func encodeIndex(root string, packs []packID, n *node) []byte {
	b := binary.AppendUvarint([]byte(indexMagic), uint64(len(packs)))
	for _, p := range packs {
		b = binary.AppendUvarint(b, uint64(len(p.name)))
		b = binary.AppendUvarint(append(b, p.name...), uint64(p.size))
	}
	b = binary.AppendUvarint(b, uint64(len(root)))
	b, _ = appendNode(append(b, root...), n)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// A sum is what all files below a directory come to.
type sum struct {
	files, bytes, uncovered int64
}

func (s *sum) add(o sum) {
	s.files, s.bytes, s.uncovered = s.files+o.files, s.bytes+o.bytes, s.uncovered+o.uncovered
}

// nodeHead is how many bytes come before the items of a node, all numbers fixed.
const nodeHead = 3*8 + 1 + sha256.Size + 3*8 + 2*4

// appendNode appends a node with all below it, whose sum it returns.
func appendNode(b []byte, n *node) ([]byte, sum) {
	at := len(b)
	b = append(b, make([]byte, nodeHead)...)
	all, count := n.sum, n.count
	if n.raw != nil {
		b = append(b, n.raw...)
	} else {
		all, count = sum{}, len(n.items)
		for i := range n.items {
			var below sum
			b, below = appendItem(b, &n.items[i])
			all.add(below)
		}
	}
	h := b[at:at]
	for _, v := range [...]uint64{n.dev, n.ino, uint64(n.ctime)} {
		h = binary.LittleEndian.AppendUint64(h, v)
	}
	h = append(append(h, byte(bit(n.racy, 1))), n.object[:]...)
	for _, v := range [...]int64{all.files, all.bytes, all.uncovered} {
		h = binary.LittleEndian.AppendUint64(h, uint64(v))
	}
	h = binary.LittleEndian.AppendUint32(h, uint32(count))
	_ = binary.LittleEndian.AppendUint32(h, uint32(len(b)-at-nodeHead))
	return b, all
}

// itemHead is how many bytes come before the name of an item: its length, kind, flags
// and reason, then numbers.
const itemHead = 4 + 3*4 + 5*8

func appendItem(b []byte, x *item) ([]byte, sum) {
	flags := bit(x.racy || x.fresh, 1) | bit(x.Sparse, 2) | bit(!x.Attrs.zero(), 4) | bit(x.sub != nil, 8) | bit(!x.Object.zero(), 16)
	b = append(b, byte(len(x.Name)), byte(x.Kind), byte(flags), byte(x.why))
	for _, v := range [...]uint32{x.Mode, x.UID, x.GID} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range [...]uint64{uint64(x.Size), uint64(x.MTime), x.Link, x.ino, uint64(x.ctime)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, x.Name...)
	if !x.Object.zero() {
		b = append(b, x.Object[:]...)
	}
	if !x.Attrs.zero() {
		b = append(b, x.Attrs[:]...)
	}
	if x.sub != nil {
		return appendNode(b, x.sub)
	}
	return b, x.sum()
}

func bit(set bool, value uint64) uint64 {
	if set {
		return value
	}
	return 0
}

// decodeIndex reads an index of root, and says which packs it needs. The entries below
// the root are read on demand (unpack); b is not changed any more.
func decodeIndex(b []byte, root string) (*node, []packID, error) {
	end := len(b) - 4
	if end < len(indexMagic) || string(b[:len(indexMagic)]) != indexMagic || crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, nil, errIndex
	}
	r := indexReader{reader{b: b[len(indexMagic):end]}}
	var packs []packID
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		packs = append(packs, packID{string(r.take(r.uvarint())), int64(r.uvarint())})
	}
	if string(r.take(r.uvarint())) != root || r.bad {
		return nil, nil, errIndex
	}
	n := r.node()
	if r.bad || len(r.b) > 0 {
		return nil, nil, errIndex
	}
	return n, packs, nil
}

// An indexReader reads numbers of fixed length.
type indexReader struct{ reader }

func (r *indexReader) node() *node {
	h := r.take(nodeHead)
	if r.bad {
		return nil
	}
	number := func() uint64 {
		v := binary.LittleEndian.Uint64(h)
		h = h[8:]
		return v
	}
	n := &node{dev: number(), ino: number(), ctime: int64(number()), racy: h[0]&1 != 0}
	h = h[1+copy(n.object[:], h[1:]):]
	n.sum = sum{int64(number()), int64(number()), int64(number())}
	n.count = int(binary.LittleEndian.Uint32(h))
	n.raw = r.take(uint64(binary.LittleEndian.Uint32(h[4:])))
	if r.bad = r.bad || n.count > len(n.raw)/itemHead; r.bad {
		return nil
	}
	return n
}

// list returns the items of a node; of a damaged index none.
func (n *node) list() []item {
	if n == nil {
		return nil
	}
	if n.raw != nil {
		n.items, _ = n.unpack(nil)
		n.raw = nil
	}
	return n.items
}

// unpack appends the items of a node that is as the index has it, or says that the
// index is damaged.
func (n *node) unpack(list []item) ([]item, bool) {
	r := indexReader{reader{b: n.raw}}
	list = slices.Grow(list, n.count)
	for i := range n.count {
		list = append(list, item{})
		r.item(&list[len(list)-1])
		if r.bad || i > 0 && list[len(list)-1].Name <= list[len(list)-2].Name {
			return nil, false
		}
	}
	return list, len(r.b) == 0
}

func (r *indexReader) item(x *item) {
	h := r.take(itemHead)
	if r.bad || !Kind(h[1]).valid() {
		r.bad = true
		return
	}
	flags := h[2]
	x.Kind, x.why, x.racy, x.Sparse = Kind(h[1]), reason(h[3]), flags&1 != 0, flags&2 != 0
	name := r.take(uint64(h[0]))
	if x.Name = text(name); !nameOK(x.Name) {
		r.bad = true
		return
	}
	x.Mode, x.UID, x.GID = binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:]), binary.LittleEndian.Uint32(h[12:])
	x.Size, x.MTime = int64(binary.LittleEndian.Uint64(h[16:])), int64(binary.LittleEndian.Uint64(h[24:]))
	x.Link, x.ino, x.ctime = binary.LittleEndian.Uint64(h[32:]), binary.LittleEndian.Uint64(h[40:]), int64(binary.LittleEndian.Uint64(h[48:]))
	if flags&16 != 0 {
		copy(x.Object[:], r.take(uint64(len(x.Object))))
	}
	if flags&4 != 0 {
		copy(x.Attrs[:], r.take(uint64(len(x.Attrs))))
	}
	if r.bad = r.bad || x.Size < 0 || (flags&8 != 0) != (x.Kind == Directory); !r.bad && x.Kind == Directory {
		x.sub = r.node()
	}
}
