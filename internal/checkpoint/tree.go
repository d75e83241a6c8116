package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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

// A Kind is what a name of a tree stands for.
type Kind byte

// The kinds of entries. Of the last four a checkpoint has the name alone, and an
// undo leaves them as they are.
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
	Object Digest
	Attrs  Digest // the object that lists extended attributes; zero for none
}

// same reports whether two entries have the same content, attributes and mode.
// Times do not count.
func (e *Entry) same(o *Entry) bool {
	return e.Kind == o.Kind && e.Mode == o.Mode && e.Object == o.Object && e.Attrs == o.Attrs && (e.Kind != Uncovered || e.Size == o.Size)
}

// encodeTree returns a tree's object. Entries are sorted by name.
func encodeTree(list []Entry) []byte {
	b := make([]byte, 0, 64*len(list))
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

// decodeTree reads a tree's object. It refuses what can't be a directory's list of
// names.
func decodeTree(b []byte) ([]Entry, error) {
	var list []Entry
	r := reader{b: b}
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
		if r.bad || !sorted || !nameOK(e.Name) || !e.Kind.valid() || head[1] > 15 || mode > 0o7777 || e.Size < 0 {
			return nil, errTree
		}
		list = append(list, e)
	}
	return list, nil
}

// nameOK accepts what a directory can hold.
func nameOK(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && !strings.ContainsAny(s, "/\x00")
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
