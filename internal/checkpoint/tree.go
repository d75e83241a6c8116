package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Digest is the SHA-256 of an object: the content of a file, a tree.
type Digest [sha256.Size]byte

// String returns 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("%q is no digest: want %d hexadecimal digits", text, 2*len(d))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

func (d Digest) zero() bool { return d == Digest{} }

// A Kind says what a name of a tree is.
type Kind byte

// The kinds of entries. For the last four a checkpoint has the name only, and an
// undo leaves them unchanged.
const (
	File      Kind = 'f' // its content is one object
	Large     Kind = 'F' // its content is in pieces; the object lists them
	Directory Kind = 'd'
	Symlink   Kind = 'l' // the object is where it leads
	Pipe      Kind = 'p'
	Special   Kind = 's' // a socket or a device
	Skipped   Kind = '-' // a guest doesn't write it: a git directory
	Remade    Kind = 'r' // programs can make it again
	Uncovered Kind = 'u' // too large, or not readable
)

// covered reports whether an undo can put it back.
func (k Kind) covered() bool {
	return k == File || k == Large || k == Directory || k == Symlink || k == Pipe
}

func (k Kind) valid() bool { return k.covered() || strings.IndexByte("s-ru", byte(k)) >= 0 }

// An Entry is one name in a tree.
type Entry struct {
	Name   string
	Kind   Kind
	Sparse bool   // the file has holes
	Mode   uint32 // permissions, with set-user-ID, set-group-ID and sticky bits
	Size   int64  // bytes, of files
	MTime  int64  // nanoseconds since 1970
	Link   uint64 // the same for all names of a file that has several; 0 for one
	UID    uint32 // owner and group
	GID    uint32
	Object Digest
	Attrs  Digest // the object that lists extended attributes; zero without any
}

// same reports whether two entries have the same content, attributes, owner and mode.
// Times do not count.
func (e *Entry) same(o *Entry) bool {
	return e.Kind == o.Kind && e.Mode == o.Mode && e.Object == o.Object && e.sameOwner(o) && (e.Kind != Uncovered || e.Size == o.Size)
}

// sameOwner compares owner, group and extended attributes.
func (e *Entry) sameOwner(o *Entry) bool {
	return e.UID == o.UID && e.GID == o.GID && e.Attrs == o.Attrs
}

// The first byte of a tree's object says whether its entries follow, or the digests
// of objects that hold them: a large directory takes several.
const (
	wholeTree   = 't'
	piecedTree  = 'T'
	maxTreeSize = 1 << 30
)

// putTree stores a tree, in pieces where it is large.
func (b *block) putTree(object []byte) Digest {
	if len(object) <= pieceSize {
		return b.put(object)
	}
	list := []byte{piecedTree}
	for p := range slices.Chunk(object[1:], pieceSize) {
		d := b.put(p)
		list = append(list, d[:]...)
	}
	return b.put(list)
}

// treePieces returns the objects that hold the entries of a tree; nil where the
// object itself does.
func treePieces(object []byte) ([]Digest, error) {
	if len(object) == 0 || object[0] != piecedTree {
		return nil, nil
	}
	list, err := digests(object[1:])
	if len(list) > maxTreeSize/pieceSize {
		return nil, errTree
	}
	return list, err
}

// tree returns the entries of a tree.
func (s *Store) tree(d Digest) ([]Entry, error) {
	b, err := s.get(d)
	if err != nil {
		return nil, err
	}
	pieces, err := treePieces(b)
	if err != nil {
		return nil, err
	}
	if pieces == nil {
		return decodeTree(b)
	}
	b = []byte{wholeTree}
	for _, d := range pieces {
		p, err := s.get(d)
		if err != nil {
			return nil, err
		}
		b = append(b, p...)
	}
	return decodeTree(b)
}

// encodeTree returns a tree's object. Entries are sorted by name.
func encodeTree(list []Entry) []byte {
	b := append(make([]byte, 0, 1+72*len(list)), wholeTree)
	for i := range list {
		e := &list[i]
		flags := byte(0)
		if e.Sparse {
			flags |= 1
		}
		if e.Link != 0 {
			flags |= 2
		}
		if !e.Object.zero() {
			flags |= 4
		}
		if !e.Attrs.zero() {
			flags |= 8
		}
		b = binary.AppendUvarint(b, uint64(len(e.Name)))
		b = append(append(b, e.Name...), byte(e.Kind), flags)
		b = binary.AppendUvarint(b, uint64(e.Mode))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = binary.AppendVarint(b, e.MTime)
		b = binary.AppendUvarint(b, uint64(e.UID))
		b = binary.AppendUvarint(b, uint64(e.GID))
		if e.Link != 0 {
			b = binary.AppendUvarint(b, e.Link)
		}
		if flags&4 != 0 {
			b = append(b, e.Object[:]...)
		}
		if flags&8 != 0 {
			b = append(b, e.Attrs[:]...)
		}
	}
	return b
}

var errTree = errors.New("a tree of the store is damaged")

// decodeTree reads a tree's object. It refuses anything that can't be a
// directory's list of names.
func decodeTree(b []byte) ([]Entry, error) {
	var list []Entry
	if len(b) == 0 || b[0] != wholeTree {
		return nil, errTree
	}
	r := reader{b: b[1:]}
	for len(r.b) > 0 {
		var e Entry
		e.Name = string(r.take(r.uvarint()))
		head := r.take(2)
		if r.bad {
			return nil, errTree
		}
		e.Kind, e.Sparse = Kind(head[0]), head[1]&1 != 0
		mode := r.uvarint()
		e.Mode, e.Size, e.MTime = uint32(mode), int64(r.uvarint()), r.varint()
		e.UID, e.GID = r.uint32(), r.uint32()
		if head[1]&2 != 0 {
			e.Link = r.uvarint()
		}
		if head[1]&4 != 0 {
			copy(e.Object[:], r.take(uint64(len(e.Object))))
		}
		if head[1]&8 != 0 {
			copy(e.Attrs[:], r.take(uint64(len(e.Attrs))))
		}
		sorted := len(list) == 0 || list[len(list)-1].Name < e.Name
		if r.bad || !sorted || len(list) == maxNames || !nameOK(e.Name) || !e.Kind.valid() || head[1] > 15 || mode > 0o7777 || e.Size < 0 {
			return nil, errTree
		}
		list = append(list, e)
	}
	return list, nil
}

// nameOK accepts names that a directory can hold.
func nameOK(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && strings.IndexByte(s, '/') < 0 && strings.IndexByte(s, 0) < 0
}

// A reader takes numbers and bytes from the front. Once bad it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	r.bad = r.bad || v > math.MaxUint32
	return uint32(v)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

// GitMode writes kind and permissions as git does.
func (e *Entry) GitMode() string {
	kind := map[Kind]uint32{File: 0o100000, Large: 0o100000, Directory: 0o040000, Symlink: 0o120000, Pipe: 0o010000}[e.Kind]
	return fmt.Sprintf("%06o", kind|e.Mode)
}
