package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAttrs bounds the extended attributes of one file, in bytes.
const maxAttrs = 1 << 20

// listAttrs returns the extended attributes of an open file as an object lists
// them, nil for none. Attributes that the kernel maintains (labels) are left
// out.
func listAttrs(fd int) []byte {
	names := make([]byte, 256)
	n, err := unix.Flistxattr(fd, names)
	if errors.Is(err, unix.ERANGE) {
		if n, err = unix.Flistxattr(fd, nil); err == nil && n < maxAttrs {
			names = make([]byte, n)
			n, err = unix.Flistxattr(fd, names)
		}
	}
	if err != nil || n <= 0 || n > len(names) {
		return nil
	}
	var b []byte
	for _, name := range slices.Sorted(strings.SplitSeq(strings.TrimRight(string(names[:n]), "\x00"), "\x00")) {
		if !attrOK(name) {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil || len(b)+n > maxAttrs {
			continue
		}
		b = appendAttr(b, name, value[:n])
	}
	return b
}

func appendAttr(b []byte, name string, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(name)))
	b = binary.AppendUvarint(append(b, name...), uint64(len(value)))
	return append(b, value...)
}

// setAttrs gives an open file the extended attributes of an entry, and no others.
func (a *undoer) setAttrs(f int, e *Entry) error {
	now, err := decodeAttrs(listAttrs(f))
	if err != nil {
		return err
	}
	var list []attr
	if !e.Attrs.zero() {
		b, err := a.s.get(e.Attrs)
		if err != nil {
			return err
		}
		if list, err = decodeAttrs(b); err != nil {
			return err
		}
	}
	for _, x := range now {
		if !slices.ContainsFunc(list, func(y attr) bool { return x.name == y.name }) {
			if err := unix.Fremovexattr(f, x.name); err != nil {
				return fmt.Errorf("remove %q: %w", x.name, err)
			}
		}
	}
	for _, x := range list {
		if err := unix.Fsetxattr(f, x.name, x.value, 0); err != nil {
			return fmt.Errorf("set %q: %w", x.name, err)
		}
	}
	return nil
}

// attrOK accepts those that a checkpoint has: of users, and access control lists.
func attrOK(name string) bool {
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// An attr is one extended attribute.
type attr struct {
	name  string
	value []byte
}

// decodeAttrs reads what listAttrs has written.
func decodeAttrs(b []byte) ([]attr, error) {
	var list []attr
	r := reader{b: b}
	for len(r.b) > 0 {
		name := string(r.take(r.uvarint()))
		value := r.take(r.uvarint())
		if r.bad || !attrOK(name) {
			return nil, errTree
		}
		list = append(list, attr{name, value})
	}
	return list, nil
}
