package gitstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the refs of one repository.
const (
	maxRefs    = 200_000
	maxRefName = 1024
)

// refs are object IDs by the names of refs.
type refs map[string]string

// A refTree holds the refs of a git directory.
type refTree struct {
	refs   refs
	links  map[string]bool // names that lead to other refs
	dirs   []string        // that hold loose refs, from the git directory on
	broken []string        // files whose name or contents are not those of a ref
}

// readRefs reads the refs of a common git directory. Loose ones come first: git
// writes packed-refs before it removes the loose refs.
func readRefs(root *os.Root, size int) (*refTree, error) {
	t := &refTree{refs: refs{}, links: map[string]bool{}}
	if err := t.walk(root, "refs", size, 0); err != nil {
		return nil, err
	}
	text, err := readFile(root, "packed-refs", maxPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the refs: %w", err)
	}
	return t, t.packed(text, size)
}

func (t *refTree) walk(root *os.Root, dir string, size, depth int) error {
	list, err := readDir(root, dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || depth > 0 {
			return nil // removed meanwhile, or made unreadable
		}
		return fmt.Errorf("read the refs: %w", err)
	}
	if depth > maxDepth {
		return fmt.Errorf("read the refs: %w", errTooMuch)
	}
	t.dirs = append(t.dirs, dir)
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if err := t.walk(root, name, size, depth+1); err != nil {
				return err
			}
		case strings.HasSuffix(name, ".lock"):
		default:
			if err := t.loose(root, name, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// loose reads one ref. Anything that is neither a ref nor a link to one is
// broken.
func (t *refTree) loose(root *os.Root, name string, size int) error {
	if len(t.refs)+len(t.broken)+len(t.links) >= maxRefs {
		return fmt.Errorf("read the refs: %w", errTooMuch)
	}
	text, err := readFile(root, name, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // packed or removed meanwhile
	}
	line := strings.TrimRight(string(text), " \t\r\n")
	switch {
	case err != nil || !formatOK(name):
		t.broken = append(t.broken, name)
	case strings.HasPrefix(line, "ref:"):
		t.links[name] = true
	case isID(line, size):
		t.refs[name] = line
	default:
		t.broken = append(t.broken, name)
	}
	return nil
}

// packed adds the lines of packed-refs for which there are no loose refs.
func (t *refTree) packed(text []byte, size int) error {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\n")
		if len(line) == 0 || line[0] == '#' || line[0] == '^' {
			continue
		}
		if len(t.refs) >= maxRefs {
			return fmt.Errorf("read the refs: packed-refs: %w", errTooMuch)
		}
		id, name, ok := strings.Cut(string(line), " ")
		if !ok || !isID(id, size) || !formatOK(name) || !strings.HasPrefix(name, "refs/") {
			if len(t.broken) < maxRefs {
				t.broken = append(t.broken, name)
			}
			continue
		}
		if _, there := t.refs[name]; !there && !t.links[name] && !slices.Contains(t.broken, name) {
			t.refs[name] = id
		}
	}
	return nil
}

// isID accepts an object ID of the repository's format, size digits long, that
// stands for an object.
func isID(s string, size int) bool {
	if len(s) != size {
		return false
	}
	zero := true
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
		zero = zero && s[i] == '0'
	}
	return !zero
}

// formatOK accepts what git check-ref-format accepts of full names.
func formatOK(name string) bool {
	if name == "" || len(name) > maxRefName || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] == 0x7f || strings.IndexByte("~^:?*[\\", name[i]) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// published reports whether refs of a name are the human's as well as the
// guest's. Remotes, replacements and whatever else a guest makes stay inside.
func published(name string) bool {
	return name == stashRef || strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || strings.HasPrefix(name, "refs/notes/")
}

// pulled reports whether the guest learns of the human's changes of a ref.
func pulled(name string) bool { return published(name) || strings.HasPrefix(name, "refs/remotes/") }

const stashRef = "refs/stash"

// nameOK accepts the name of a guest's ref: one that can't be taken for an
// option, an object ID, or another of git's own words.
func nameOK(name string) error {
	short, why := name, ""
	for _, prefix := range []string{"refs/heads/", "refs/tags/", "refs/notes/"} {
		short = strings.TrimPrefix(short, prefix)
	}
	switch {
	case !formatOK(name) || !published(name):
		why = "git would not make it"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		why = "it holds characters that can't be seen"
	case strings.HasPrefix(short, "-") || strings.Contains(short, "/-"):
		why = "it looks like an option"
	case strings.ContainsAny(name, "$`;|&<>()\"'!"):
		why = "it holds characters that a shell, a prompt or a script may execute"
	case isID(path.Base(short), 40) || isID(path.Base(short), 64) || abbreviated(short):
		why = "it looks like an object ID"
	case strings.HasPrefix(short, "refs/") || name != stashRef && (short == "stash" || pseudo(short)):
		why = "it looks like another ref"
	}
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// abbreviated reports names that git also takes for the beginning of an object ID.
func abbreviated(short string) bool {
	return len(short) >= 7 && len(short) <= 64 && strings.Trim(strings.ToLower(short), "0123456789abcdef") == ""
}

// pseudo reports names such as HEAD and ORIG_HEAD, which git looks for first.
func pseudo(short string) bool {
	return strings.HasSuffix(short, "HEAD") && strings.ToUpper(short) == short && !strings.Contains(short, "/")
}

// hides reports the ref that a new name would make ambiguous: git takes a tag
// before a branch, and a branch before one of a remote.
func hides(name string, others refs, fold bool) (string, bool) {
	tag, isTag := strings.CutPrefix(name, "refs/tags/")
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	short := tag
	if isBranch {
		short = branch
	}
	if isTag || isBranch {
		for _, other := range []string{"refs/tags/" + short, "refs/heads/" + short, "refs/remotes/" + short} {
			if _, there := others[other]; there && other != name {
				return other, true
			}
		}
	}
	if fold {
		for other := range others {
			if other != name && strings.EqualFold(other, name) {
				return other, true
			}
		}
	}
	return "", false
}

// readHead reads what HEAD says: "ref: refs/heads/…", or an object ID.
func readHead(root *os.Root, dir string, size int) (string, error) {
	text, err := readFile(root, path.Join(dir, "HEAD"), 4096)
	if err != nil {
		return "", fmt.Errorf("read HEAD: %w", err)
	}
	return parseHead(string(text), size)
}

func parseHead(text string, size int) (string, error) {
	line := strings.TrimRight(text, " \t\r\n")
	if target, ok := strings.CutPrefix(line, "ref:"); ok {
		target = strings.TrimLeft(target, " \t")
		if !formatOK(target) || !strings.HasPrefix(target, "refs/") {
			return "", errors.New("read HEAD: it names no ref")
		}
		return "ref: " + target, nil
	}
	if !isID(line, size) {
		return "", errors.New("read HEAD: it holds neither a ref nor an object ID")
	}
	return line, nil
}

// branchOf is the ref that a HEAD names, or "" for a detached one.
func branchOf(head string) string {
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok {
		return ""
	}
	return ref
}
