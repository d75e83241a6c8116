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

// The format of an index: indexMagic, the packs that hold what it names (number,
// then name and size of each), the root's path, the root node, CRC-32C of all that.
const (
	indexMagic = "BAWNIDX1"
	maxIndex   = 512 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errIndex = errors.New("the index of a checkpoint is damaged")

func (s *Store) indexPath(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(s.dir, fmt.Sprintf("%s%x", indexName, sum[:12]))
}

// readIndex returns what the last checkpoint has left of a root; nil where there is
// nothing that could be used.
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
		return nil // a pack is gone, and with it what the index believes to be stored
	}
	return n
}

// writeIndex keeps what a scan has found, for the next one.
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
	b = appendNode(append(b, root...), n)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendNode(b []byte, n *node) []byte {
	for _, v := range []uint64{n.dev, n.ino, uint64(n.ctime), bit(n.racy, 1), uint64(len(n.items))} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, n.object[:]...)
	for i := range n.items {
		x := &n.items[i]
		b = binary.AppendUvarint(b, uint64(len(x.Name)))
		b = append(b, x.Name...)
		flags := bit(x.racy || x.fresh, 1) | bit(x.Sparse, 2) | bit(!x.Attrs.zero(), 4) | bit(x.sub != nil, 8) | bit(!x.Object.zero(), 16)
		b = append(b, byte(x.Kind), byte(flags), byte(x.why))
		for _, v := range [...]uint64{uint64(x.Mode), uint64(x.UID), uint64(x.GID), uint64(x.Size), uint64(x.MTime), x.Link, x.ino, uint64(x.ctime)} {
			b = binary.AppendUvarint(b, v)
		}
		if !x.Object.zero() {
			b = append(b, x.Object[:]...)
		}
		if !x.Attrs.zero() {
			b = append(b, x.Attrs[:]...)
		}
		if x.sub != nil {
			b = appendNode(b, x.sub)
		}
	}
	return b
}

func bit(set bool, value uint64) uint64 {
	if set {
		return value
	}
	return 0
}

// decodeIndex reads an index of root, and says which packs it needs.
func decodeIndex(b []byte, root string) (*node, []packID, error) {
	end := len(b) - 4
	if end < len(indexMagic) || string(b[:len(indexMagic)]) != indexMagic || crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, nil, errIndex
	}
	r := indexReader{reader: reader{b: b[len(indexMagic):end]}, left: maxNames}
	var packs []packID
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		packs = append(packs, packID{string(r.take(r.uvarint())), int64(r.uvarint())})
	}
	if string(r.take(r.uvarint())) != root || r.bad {
		return nil, nil, errIndex
	}
	n := r.node(0)
	if r.bad || len(r.b) > 0 {
		return nil, nil, errIndex
	}
	return n, packs, nil
}

// An indexReader reads nodes, in all no more than left names.
type indexReader struct {
	reader
	left int
}

func (r *indexReader) node(depth int) *node {
	n := &node{dev: r.uvarint(), ino: r.uvarint(), ctime: int64(r.uvarint()), racy: r.uvarint()&1 != 0}
	count := r.uvarint()
	copy(n.object[:], r.take(uint64(len(n.object))))
	if r.bad || depth > maxDepth || count > uint64(len(r.b)) || int(count) > r.left {
		r.bad = true
		return n
	}
	r.left -= int(count)
	n.items = make([]item, count)
	for i := range n.items {
		r.item(&n.items[i], depth)
		if r.bad || i > 0 && n.items[i].Name <= n.items[i-1].Name {
			r.bad = true
			return n
		}
	}
	return n
}

func (r *indexReader) item(x *item, depth int) {
	x.Name = string(r.take(r.uvarint()))
	head := r.take(3)
	if r.bad || !nameOK(x.Name) || !Kind(head[0]).valid() {
		r.bad = true
		return
	}
	flags := head[1]
	x.Kind, x.why = Kind(head[0]), reason(head[2])
	x.racy, x.Sparse = flags&1 != 0, flags&2 != 0
	x.Mode, x.UID, x.GID = r.uint32(), r.uint32(), r.uint32()
	x.Size, x.MTime = int64(r.uvarint()), int64(r.uvarint())
	x.Link, x.ino, x.ctime = r.uvarint(), r.uvarint(), int64(r.uvarint())
	if flags&16 != 0 {
		copy(x.Object[:], r.take(uint64(len(x.Object))))
	}
	if flags&4 != 0 {
		copy(x.Attrs[:], r.take(uint64(len(x.Attrs))))
	}
	if r.bad = r.bad || x.Size < 0 || (flags&8 != 0) != (x.Kind == Directory); !r.bad && x.Kind == Directory {
		x.sub = r.node(depth + 1)
	}
}
