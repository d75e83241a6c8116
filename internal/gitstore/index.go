package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEntries bounds an index.
const maxEntries = 4_000_000

// An entry is one of an index; it has three where a path is in conflict.
type entry struct {
	mode, id string
	stage    byte
	skip     bool // not in a sparse work tree
}

// An index has the entries of each path, by stage.
type index map[string][]entry

// parseIndex reads what git ls-files -s -t -z writes. A path that git must not
// write makes the whole of it an error.
func parseIndex(text []byte, size int) (index, error) {
	list := index{}
	n := 0
	for len(text) > 0 {
		line, rest, ok := bytes.Cut(text, []byte{0})
		if !ok {
			return nil, errors.New("the index: its last entry has no end")
		}
		text = rest
		head, p, ok := strings.Cut(string(line), "\t")
		f := strings.Split(head, " ")
		if !ok || len(f) != 4 || len(f[0]) != 1 || len(f[3]) != 1 || f[3][0] < '0' || f[3][0] > '3' {
			return nil, fmt.Errorf("the index: %q is no entry", head[:min(len(head), 100)])
		}
		e := entry{mode: f[1], id: f[2], stage: f[3][0], skip: f[0] == "S"}
		switch {
		case !slices.Contains([]string{"100644", "100755", "120000", "160000"}, e.mode):
			return nil, fmt.Errorf("the index: %q has mode %q", p, e.mode)
		case !isID(e.id, size):
			return nil, fmt.Errorf("the index: %q has no object", p)
		case !pathOK(p):
			return nil, fmt.Errorf("the index: %q is a path that git must not write", p)
		case slices.ContainsFunc(list[p], func(o entry) bool { return o.stage == e.stage }):
			return nil, fmt.Errorf("the index: %q is there twice", p)
		}
		if n++; n > maxEntries {
			return nil, fmt.Errorf("the index: %w", errTooMuch)
		}
		list[p] = append(list[p], e)
	}
	return list, nil
}

// pathOK accepts paths that lie below the work tree and in no git directory, also
// where file systems take other spellings for the same name.
func pathOK(p string) bool {
	if p == "" || len(p) > 4096 || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || likeGit(part) {
			return false
		}
	}
	return true
}

// likeGit reports names that some file system takes for ".git".
func likeGit(name string) bool {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff, r == utf8.RuneError:
			continue // HFS+ ignores them
		case r == ':' || r == '\\': // of NTFS: a stream, a directory
			return likeGit(b.String()) || r == '\\' && likeGit(name[strings.IndexByte(name, '\\')+1:])
		}
		b.WriteRune(r)
	}
	plain := strings.ToLower(strings.TrimRight(b.String(), ". "))
	return plain == ".git" || plain == "git~1"
}

// merge3 joins what both sides have changed. It returns the paths that both have
// changed in different ways; of these each side keeps its own.
func merge3(base, host, private index) (forHost, forPrivate index, apart []string) {
	forHost, forPrivate = maps.Clone(host), maps.Clone(private)
	paths := maps.Clone(base)
	maps.Copy(paths, host)
	maps.Copy(paths, private)
	for p := range paths {
		b, h, g := base[p], host[p], private[p]
		switch {
		case slices.Equal(h, g):
		case slices.Equal(h, b):
			forHost.set(p, g)
		case slices.Equal(g, b):
			forPrivate.set(p, h)
		default:
			apart = append(apart, p)
		}
	}
	slices.Sort(apart)
	return forHost, forPrivate, apart
}

func (x index) set(p string, list []entry) {
	if list == nil {
		delete(x, p)
		return
	}
	x[p] = list
}

// difference is what update-index --index-info reads to make one index another.
// Removals come first: a directory may become a file.
func difference(from, to index, zero string) []byte {
	var gone, come bytes.Buffer
	for p, old := range from {
		if now, there := to[p]; !there || !slices.Equal(now, old) {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", zero, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(to)) {
		if now := to[p]; !slices.Equal(now, from[p]) {
			for _, e := range now {
				fmt.Fprintf(&come, "%s %s %c\t%s\x00", e.mode, e.id, e.stage, p)
			}
		}
	}
	return append(gone.Bytes(), come.Bytes()...)
}

// same reports whether two indexes have the same entries.
func (x index) same(y index) bool {
	return maps.EqualFunc(x, y, func(a, b []entry) bool { return slices.Equal(a, b) })
}

// blobs are the objects that an index has more than another.
func (x index) blobs(than index) []string {
	var list []string
	for p, now := range x {
		for _, e := range now {
			if e.mode != "160000" && !slices.Contains(than[p], e) {
				list = append(list, e.id)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// listArgs make git write an index as parseIndex reads it.
var listArgs = []string{"ls-files", "-s", "-t", "-z"}

// hostIndex lists an index of the host's: its own for "".
func (s *Store) hostIndex(ctx context.Context, u *unit, file string) ([]byte, error) {
	c := call{args: listArgs}
	if file != "" {
		if _, err := os.Lstat(file); missing(err) {
			return []byte{}, nil
		}
		c.env = []string{"GIT_INDEX_FILE=" + file}
	}
	return s.git.run(ctx, u, c)
}

// privateIndex lists the guest's.
func (s *Store) privateIndex(ctx context.Context, u *unit) ([]byte, error) {
	out := &bounded{}
	if err := s.read(ctx, u, nil, out, listArgs...); err != nil {
		return nil, err
	}
	return inOrder(out.Bytes()), nil
}

// indexes are those of one unit, as far as they differ: paths at which all three are
// the same are in none of the maps.
type indexes struct {
	base, host, private index
	merged, inner       index     // the entries for the host and the guest
	listed              [2][]byte // all of base and private, as git lists them
	apart               []string  // paths at which they differ
	stamps              [2]stamp  // of host and private, before they were read
	text                []byte    // the host's in the end, and its stamp
	now                 stamp
}

// lists reads the three indexes and joins them. It returns nil if nothing has
// changed.
func (s *Store) lists(ctx context.Context, u *unit) (*indexes, error) {
	x := &indexes{stamps: [2]stamp{stampOf(u.host, u.at("index")), stampOf(u.private, u.at("index"))}}
	if x.stamps == u.seen {
		return nil, nil
	}
	base, err := s.baseListing(ctx, u)
	if err != nil {
		return nil, err
	}
	host, private := base, base
	if x.stamps[0] != u.seen[0] || len(u.Apart) > 0 {
		if host, err = s.hostIndex(ctx, u, ""); err != nil {
			return nil, err
		}
	}
	if x.stamps[1] != u.seen[1] || len(u.Apart) > 0 {
		if private, err = s.privateIndex(ctx, u); err != nil {
			return nil, err
		}
	}
	x.listed = [2][]byte{base, private}
	if x.base, x.host, x.private, err = parseChanged(base, host, private, u.Size); err != nil {
		return nil, err
	}
	if x.base.same(x.host) && x.base.same(x.private) {
		u.seen = x.stamps
		return nil, nil
	}
	x.merged, x.inner, x.apart = merge3(x.base, x.host, x.private)
	if len(x.apart) > 0 {
		s.tell(u, &s.report.Questions, fmt.Sprintf("%q was staged on both sides: each keeps its own", x.apart[0]))
	}
	return x, nil
}

// baseListing lists what both sides had last.
func (s *Store) baseListing(ctx context.Context, u *unit) ([]byte, error) {
	if u.last != nil {
		return u.last, nil
	}
	text, err := s.hostIndex(ctx, u, s.basePath(u))
	if err != nil {
		return nil, err
	}
	was := map[string]string{}
	for p, text := range u.Apart {
		list, err := parseIndex([]byte(text), u.Size)
		if err != nil {
			return nil, err
		}
		was[p] = lines(p, list[p])
	}
	if _, err := parseIndex(text, u.Size); err != nil { // once: later only what differs is parsed
		return nil, err
	}
	if u.last = patchListing(text, was); u.last == nil {
		return nil, errUnordered
	}
	return u.last, nil
}

// at is a file of the unit's git directory, from the common one on.
func (u *unit) at(name string) string { return path.Join(u.Rel, name) }

// stamps remembers the indexes as they are, which are the same.
func (u *unit) stamps() {
	u.seen = [2]stamp{stampOf(u.host, u.at("index")), stampOf(u.private, u.at("index"))}
}
