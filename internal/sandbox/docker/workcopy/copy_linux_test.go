package workcopy

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func allow(Change, string, bool) string { return "" }

// workspace makes one with files by path; a path that ends in / is a directory,
// a text that begins with -> a link.
func workspace(t testing.TB, files map[string]string) string {
	t.Helper()
	ws := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		fill(t, ws, name, text)
	}
	return ws
}

func fill(t testing.TB, ws, name, text string) {
	t.Helper()
	at := filepath.Join(ws, name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	to, isLink := strings.CutPrefix(text, "->")
	switch {
	case err != nil:
	case strings.HasSuffix(name, "/"):
		err = os.MkdirAll(at, 0o755)
	case isLink:
		err = os.Symlink(to, at)
	default:
		err = os.WriteFile(at, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, dir string) *os.File {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// taken packs a workspace.
func taken(t testing.TB, ws string, r Rules) (Manifest, []byte, []Left) {
	t.Helper()
	var b bytes.Buffer
	p := &Packer{To: tar.NewWriter(&b), Prefix: "w", UID: 1000, GID: 1000, Rules: r, Limits: plenty}
	m, left, err := p.Pack(opened(t, ws))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.To.Close(); err != nil {
		t.Fatal(err)
	}
	return m, b.Bytes(), left
}

// tree is what a directory holds.
func tree(t testing.TB, ws string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(ws, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(ws, p)
		switch {
		case err != nil || rel == ".":
			return err
		case d.IsDir():
			got[rel+"/"] = ""
			return os.Chmod(p, 0o755) // what came back may be closed to its owner
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(p)
			got[rel] = "->" + to
			return err
		case d.Type().IsRegular():
			text, err := os.ReadFile(p)
			if errors.Is(err, fs.ErrPermission) && os.Chmod(p, 0o644) == nil {
				text, err = os.ReadFile(p)
			}
			got[rel] = string(text)
			return err
		default:
			got[rel] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// returns has a guest's copy come back, and says what was left and why.
func returns(t testing.TB, ws string, m Manifest, b []byte, r Rules) []string {
	t.Helper()
	c, err := Read(bytes.NewReader(b), int64(len(b)), "w", plenty)
	if err != nil {
		t.Fatal(err)
	}
	steps, left := Compare(m, c, r)
	_, more := Apply(opened(t, ws), bytes.NewReader(b), steps)
	var list []string
	for _, l := range append(left, more...) {
		list = append(list, l.Path+": "+l.Why)
	}
	slices.Sort(list)
	return list
}

// TestThereAndBack: what a guest does to a copy is what the workspace is
// afterwards.
func TestThereAndBack(t *testing.T) {
	before := map[string]string{"a": "1", "b": "2", "d/x": "3", "d/y": "4", "e/": "", "l": "->a", "k": "->/etc/hosts", "f/g/h": "5", "swap": "file", "paws/z": "6", "name with\nline": "7"}
	after := map[string]string{"a": "1", "b": "two", "d/x": "3", "new/deep/file": "8", "l": "->d/x", "k": "->/etc/hosts", "swap/now": "a directory", "paws": "a file", "name with\nline": "seven", "up": "->new/deep", "new/back": "->../a"}
	ws, guest := workspace(t, before), workspace(t, after)
	m, _, _ := taken(t, ws, Rules{})
	old, err := os.Stat(filepath.Join(ws, "a"))
	if err != nil {
		t.Fatal(err)
	}
	_, back, _ := taken(t, guest, Rules{})
	if left := returns(t, ws, m, back, Rules{Refuses: allow}); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if diff := cmp.Diff(tree(t, guest), tree(t, ws)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	if now, err := os.Stat(filepath.Join(ws, "a")); err != nil || !os.SameFile(old, now) {
		t.Errorf("what was not changed is another file: %v", err)
	}
}

// TestTaken: what is hidden does not leave, and what is no file is named.
func TestTaken(t *testing.T) {
	ws := workspace(t, map[string]string{"a": "1", "secret/key": "2", "secretive": "3", "kept/x": "4"})
	if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, b, left := taken(t, ws, Rules{Hidden: []string{"secret"}, Kept: []string{"kept"}})
	want := []string{"a", "kept", "kept/x", "secretive"}
	if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
		t.Errorf("taken: %q, want %q", got, want)
	}
	if bytes.Contains(b, []byte("secret/")) || !bytes.Contains(b, []byte("secretive")) {
		t.Error("the stream has what is hidden, or has not what is there")
	}
	if len(left) != 1 || left[0].Path != "pipe" {
		t.Errorf("left: %v", left)
	}
	var out bytes.Buffer
	for _, l := range []Limits{{Bytes: 2, Entries: 9}, {Bytes: 100, Entries: 3}} {
		p := &Packer{To: tar.NewWriter(&out), Prefix: "w", Limits: l}
		if _, _, err := p.Pack(opened(t, ws)); err == nil {
			t.Errorf("%+v: no error", l)
		}
	}
}

// TestClosedPlaces: nothing comes back to what is hidden, may not be written, or is
// protected. The control is the same with rules that allow it.
func TestClosedPlaces(t *testing.T) {
	before := map[string]string{"hidden/x": "host's", "kept/x": "host's", ".git/hooks/a": "host's", ".git/config": "host's", "gone/.git/config": "host's", "ok": "host's"}
	after := map[string]string{"hidden/x": "guest's", "hidden/new": "guest's", "HIDDEN/other": "guest's", "Kept": "guest's", "kept/x": "guest's", "kept/new": "guest's", ".git/hooks/b": "guest's", ".git/config": "guest's", ".envrc": "guest's", "ok": "guest's"}
	protected := func(_ Change, rel string, _ bool) string {
		if strings.Contains(rel, ".git/hooks") || strings.Contains(rel, ".git/config") || strings.Contains(rel, ".envrc") {
			return "protected"
		}
		return ""
	}
	ws, guest := workspace(t, before), workspace(t, after)
	r := Rules{Hidden: []string{"hidden"}, Kept: []string{"kept"}, Refuses: protected}
	m, _, _ := taken(t, ws, r)
	_, back, _ := taken(t, guest, Rules{})
	left := returns(t, ws, m, back, r)
	want := maps.Clone(tree(t, workspace(t, before)))
	want["ok"] = "guest's"
	if diff := cmp.Diff(want, tree(t, ws)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	for _, p := range []string{"hidden/x: it is hidden", "hidden/new: it is hidden", "HIDDEN/other: it is hidden", "Kept: the session", "kept/x: the session may not", "kept/new: the session", ".git/hooks/b: it is protected", ".git/hooks/a: it is protected", ".git/config: it is", ".envrc: it is", "gone: the directory holds"} {
		if !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, p) }) {
			t.Errorf("%q is not among %q", p, left)
		}
	}
	control := workspace(t, before)
	m, _, _ = taken(t, control, Rules{})
	if left := returns(t, control, m, back, Rules{Refuses: allow}); len(left) > 0 {
		t.Errorf("control: %q", left)
	}
	if diff := cmp.Diff(tree(t, guest), tree(t, control)); diff != "" {
		t.Errorf("control (-want +got):\n%s", diff)
	}
	if left := returns(t, ws, m, back, Rules{}); len(left) == 0 {
		t.Error("rules that are none allow something")
	}
}

// TestMeanwhile: what the host's side has changed since stays, and is named.
func TestMeanwhile(t *testing.T) {
	before := map[string]string{"changed": "1", "replaced": "1", "removed": "1", "gone": "1", "dir/x": "1", "fine": "1"}
	ws := workspace(t, before)
	m, _, _ := taken(t, ws, Rules{})
	guest := workspace(t, map[string]string{"changed": "guest's", "replaced": "guest's", "removed": "guest's", "made": "guest's", "dir/x": "guest's", "fine": "guest's", "newdir/f": "guest's"})
	_, back, _ := taken(t, guest, Rules{})
	outside := filepath.Join(filepath.Dir(ws), "outside")
	for _, err := range []error{
		os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "x"), []byte("outside"), 0o600),
		os.WriteFile(filepath.Join(ws, "changed"), []byte("h"), 0o600), os.WriteFile(filepath.Join(ws, "made"), []byte("host's"), 0o600),
		os.Remove(filepath.Join(ws, "replaced")), os.WriteFile(filepath.Join(ws, "replaced"), []byte("1"), 0o600), os.Remove(filepath.Join(ws, "removed")),
		os.WriteFile(filepath.Join(ws, "gone"), []byte("h"), 0o600),
		os.Rename(filepath.Join(ws, "dir"), filepath.Join(ws, "moved")), os.Symlink(outside, filepath.Join(ws, "dir")),
		os.Symlink(outside, filepath.Join(ws, "newdir")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	left := returns(t, ws, m, back, Rules{Refuses: allow})
	want := map[string]string{"changed": "h", "replaced": "1", "gone": "h", "made": "host's", "fine": "guest's", "dir": "->" + outside, "newdir": "->" + outside, "moved/": "", "moved/x": "1"}
	if diff := cmp.Diff(want, tree(t, ws)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"x": "outside"}, tree(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	if len(left) != 8 { // changed replaced removed gone made dir/x newdir newdir/f
		t.Errorf("left: %q", left)
	}
}

// TestLinks: none comes back that leads out of the workspace, or to what is not
// the session's. The control are those that stay inside.
func TestLinks(t *testing.T) {
	before := map[string]string{"a/b/c/f": "1", "hostout": "->/etc", "hostup": "->../..", "hidden/x": "1"}
	for to, ok := range map[string]bool{
		"f": true, "../f": true, "../../c/f": true, "nothing": true, "../../..": true, "": false,
		"/etc/passwd": false, "/": false, "../../../..": false, "../../../../x": false, "x/../../../../../y": false, "./../f": false, "x/..": false,
		"../../../hostout/passwd": false, "../../../hostup/x": false, "../../../hidden/x": false, "../../../.envrc": false, `..\..\x`: false,
	} {
		if to == "" {
			continue // no stream has one
		}
		ws, guest := workspace(t, before), workspace(t, before)
		r := Rules{Hidden: []string{"hidden"}, Refuses: func(_ Change, rel string, _ bool) string {
			return map[bool]string{true: "protected"}[filepath.Base(rel) == ".envrc"]
		}}
		m, _, _ := taken(t, ws, r)
		fill(t, guest, "a/b/c/new", "->"+to)
		_, back, _ := taken(t, guest, r)
		left := returns(t, ws, m, back, r)
		_, err := os.Lstat(filepath.Join(ws, "a/b/c/new"))
		if (err == nil) != ok || (len(left) == 0) != ok {
			t.Errorf("a link to %q: %v, left %q; want it to come back: %v", to, err, left, ok)
		}
	}
}

// TestDetour: a chain of links, each of which is inside by its words, does not
// lead out either.
func TestDetour(t *testing.T) {
	ws, guest := workspace(t, nil), workspace(t, map[string]string{"a/b/c/": "", "a/b/c/d": "->../../..", "l": "->a/b/c/d/../../x"})
	m, _, _ := taken(t, ws, Rules{})
	_, back, _ := taken(t, guest, Rules{})
	left := returns(t, ws, m, back, Rules{Refuses: allow})
	if len(left) != 1 || !strings.HasPrefix(left[0], "l: it is a link out") {
		t.Errorf("left: %q", left)
	}
}

// TestAliases: a link does not come back that leads to what is not the session's
// through others, of the host's or such as come with it. The controls lead through
// some to what is the session's.
func TestAliases(t *testing.T) {
	before := map[string]string{"secret/key": "1", "a/f": "1", "a/b/": "", "p/q/": "", "here": "->a", "current": "->a", "hostw": "->secret", "hostx": "->w/secret/key", "a/far": "->../p/q/../../a/f", "hosty": "->current/key"}
	for name, tt := range map[string]struct {
		after map[string]string
		left  string // begins what is told; "" where all comes back
	}{
		"control: one of the host's":      {map[string]string{"x": "->here/f"}, ""},
		"control: one that comes":         {map[string]string{"w": "->a", "x": "->w/f", "y": "->x"}, ""},
		"control: upwards":                {map[string]string{"a/b/up": "->../..", "x": "->a/b/up/a/f"}, ""},
		"control: to the top":             {map[string]string{"p/w": "->..", "x": "->p/w/a"}, ""},
		"one that comes":                  {map[string]string{"v": "->.", "x": "->v/secret/key"}, "x: it leads to what is not the session's: it is hidden"},
		"in capital letters":              {map[string]string{"v": "->.", "x": "->V/secret/key"}, "x: it leads to what is not"},
		"upwards":                         {map[string]string{"a/b/up": "->../..", "x": "->a/b/up/secret"}, "x: it leads to what is not"},
		"a chain":                         {map[string]string{"v": "->a/..", "u": "->.", "t": "->u/u", "x": "->t/secret"}, "v: it is a link out|x: it leads to what is not"},
		"one of the host's":               {map[string]string{"x": "->hostw/key"}, "x: it leads to what is not"},
		"to a protected name":             {map[string]string{"v": "->.", "x": "->v/.envrc"}, "x: it leads to what is not the session's: it is protected"},
		"to a directory by another name":  {map[string]string{"u": "->.", "x": "->u/secret"}, "x: it leads to what is not"},
		"a circle":                        {map[string]string{"v": "->u", "u": "->v", "x": "->u/y"}, "u: it leads through too many|v: it leads through too many|x: it leads through too many"},
		"one that was changed":            {map[string]string{"current": "->p", "x": "->current/f"}, "x: it leads through a link that was changed"},
		"on the way of one of the host's": {map[string]string{"w": "->."}, "w: with it, of \"hostx\": it leads to what is not"},
		"in its way":                      {map[string]string{"current": "->hostw"}, "current: it leads to what is not"},
		"out with one of the host's":      {map[string]string{"p/q": "->.."}, "p/q: with it, of \"a/far\": it is a link out"},
	} {
		ws, guest := workspace(t, before), workspace(t, before)
		r := Rules{Hidden: []string{"secret"}, Refuses: func(_ Change, rel string, _ bool) string {
			return map[bool]string{true: "protected"}[filepath.Base(rel) == ".envrc"]
		}}
		m, _, _ := taken(t, ws, r)
		for name, text := range tt.after {
			if err := os.RemoveAll(filepath.Join(guest, name)); err != nil {
				t.Fatal(err)
			}
			fill(t, guest, name, text)
		}
		_, back, _ := taken(t, guest, r)
		left := returns(t, ws, m, back, r)
		var want []string
		if tt.left != "" {
			want = strings.Split(tt.left, "|")
		}
		if !slices.EqualFunc(left, want, strings.HasPrefix) {
			t.Errorf("%s: left %q; want %q", name, left, want)
		}
	}
}

// TestHardLinksAndModes: other names of a file come back as files, without
// set-id bits.
func TestHardLinksAndModes(t *testing.T) {
	ws := workspace(t, nil)
	m, _, _ := taken(t, ws, Rules{})
	f := file("w/f")
	f.Mode = 0o6711
	left := returns(t, ws, m, stream(t, f, hard("w/g", "w/f"), tar.Header{Typeflag: tar.TypeChar, Name: "w/dev", Devmajor: 1}), Rules{Refuses: allow})
	for _, name := range []string{"f", "g"} {
		st, err := os.Stat(filepath.Join(ws, name))
		if err != nil || st.Mode() != 0o711 {
			t.Errorf("%s: %v, %v", name, st, err)
			continue
		}
		if text, err := os.ReadFile(filepath.Join(ws, name)); string(text) != "text of w/f" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if fmt.Sprint(left) != "[dev: it is a device or a pipe]" {
		t.Errorf("left: %q", left)
	}
}

// TestReadWhileItChanges: a file that grows or shrinks is no copy.
func TestReadWhileItChanges(t *testing.T) {
	ws := workspace(t, map[string]string{"a": strings.Repeat("x", 200000), "b": "y"})
	p := &Packer{Prefix: "w", Limits: plenty}
	p.To = tar.NewWriter(writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("xxxx")) {
			if err := os.Truncate(filepath.Join(ws, "a"), 100); err != nil {
				t.Error(err)
			}
		}
		return len(b), nil
	}))
	if _, _, err := p.Pack(opened(t, ws)); err == nil || !strings.Contains(err.Error(), "changes while it is copied") {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
