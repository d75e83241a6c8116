package protect

import (
	"strings"
	"unicode"
)

// Fold returns what a path may mean on a file system that is less exact about
// names than Linux: one that ignores case (full folding, as ext4's casefold
// and APFS have it), leaves out characters that can't be seen, as HFS+ does
// (git-config(1), core.protectHFS), or takes trailing dots and spaces, streams
// and backslashes as NTFS does (core.protectNTFS). Short names are undone by
// [Set.Long].
func Fold(p string) string {
	if exact(p) {
		return p
	}
	if plain(p) {
		return foldPlain(p)
	}
	parts := strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
	for i, n := range parts {
		parts[i] = FoldName(n)
	}
	if strings.HasPrefix(p, "/") {
		return "/" + strings.Join(parts, "/")
	}
	return strings.Join(parts, "/")
}

// exact reports whether folding would change nothing.
func exact(p string) bool {
	for i := range len(p) {
		switch ch := p[i]; {
		case ch >= 0x80, 'A' <= ch && ch <= 'Z', ch == '\\', ch == ':':
			return false
		case (ch == ' ' || ch == '.' || ch == '/') && (i+1 == len(p) || p[i+1] == '/'):
			return false
		}
	}
	return true
}

// plain reports whether a path has ASCII alone, and no separator but "/".
func plain(p string) bool {
	for i := range len(p) {
		if p[i] >= 0x80 || p[i] == '\\' || p[i] == ':' {
			return false
		}
	}
	return true
}

// foldPlain is Fold for a plain path.
func foldPlain(p string) string {
	var b strings.Builder
	b.Grow(len(p))
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		if cut := strings.TrimRight(name, " ."); cut != "" {
			name = cut
		}
		if b.Len() > 0 || p[0] == '/' {
			b.WriteByte('/')
		}
		for i := range len(name) {
			b.WriteByte(lowerASCII(name[i]))
		}
	}
	if b.Len() == 0 {
		return "/" // of nothing else
	}
	return b.String()
}

// FoldName is Fold for one name, which may be any bytes but "/".
func FoldName(n string) string {
	var b strings.Builder
	for _, r := range n {
		switch {
		case r < 0x80:
			b.WriteByte(lowerASCII(byte(r)))
		case invisible(r):
		case several[r] != "":
			b.WriteString(several[r])
		default:
			b.WriteRune(lowest(r))
		}
	}
	s, _, _ := strings.Cut(b.String(), ":")
	if cut := strings.TrimRight(s, " ."); cut != "" {
		return cut
	}
	return n
}

func lowerASCII(ch byte) byte {
	if 'A' <= ch && ch <= 'Z' {
		ch |= 0x20
	}
	return ch
}

// lowest returns the ASCII letter that r is the same as when case is ignored,
// or its lower case.
func lowest(r rune) rune {
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other < 0x80 {
			return unicode.ToLower(other)
		}
	}
	return unicode.ToLower(r)
}

// several are characters that fold to more than one letter (Unicode's
// CaseFolding.txt, status F), and the two letters i of Turkish.
var several = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st", 'ı': "i", 'İ': "i",
}

// invisible reports whether a file system may ignore r in a name: Unicode's
// default ignorable code points, of which HFS+ ignores some and ext4 all, and
// the dot that İ leaves on its i.
func invisible(r rune) bool {
	switch {
	case r == 0xad, r == 0x307, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, 0x180b <= r && r <= 0x180f,
		0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f, r == 0x3164, 0xfe00 <= r && r <= 0xfe0f,
		r == 0xfeff, r == 0xffa0, 0xfff0 <= r && r <= 0xfff8, 0x1bca0 <= r && r <= 0x1bca3, 0x1d173 <= r && r <= 0x1d17a, 0xe0000 <= r && r <= 0xe0fff:
		return true
	}
	return false
}

// IsShort reports whether a folded name is the short form of a longer one on NTFS
// and FAT, as "git~1" is of ".git".
func IsShort(long, name string) bool {
	stem, ext, ok := short(name)
	return ok && isShort(long, stem, ext)
}

// short takes a short name apart: stem~N.ext.
func short(name string) (stem, ext string, ok bool) {
	stem, rest, ok := strings.Cut(name, "~")
	if !ok || rest == "" || rest[0] < '1' || rest[0] > '9' {
		return "", "", false
	}
	_, ext, _ = strings.Cut(rest, ".")
	return stem, ext, true
}

// isShort reports whether stem~N.ext is how Windows shortens a name: six
// letters without dots, and three of what follows the last dot.
func isShort(long, stem, ext string) bool {
	long = strings.TrimLeft(long, ". ")
	name, last := long, ""
	if i := strings.LastIndexByte(long, '.'); i >= 0 {
		name, last = long[:i], long[i+1:]
	}
	name = strings.NewReplacer(".", "", " ", "").Replace(name)
	return name[:min(6, len(name))] == stem && last[:min(3, len(last))] == ext
}
