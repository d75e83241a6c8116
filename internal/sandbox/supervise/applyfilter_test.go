package supervise

import (
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// TestApplyFilter rules as a supervisor does, and refuses what a supervisor would do
// itself.
func TestApplyFilter(t *testing.T) {
	w := NewApplyFilter(&layout.Plan{
		Protected: []string{"/w"}, ExtraNames: []string{"extra"}, Absent: []string{"/w/hidden"}, Guarded: []string{"/w/guarded"}, Owned: []string{"/w/.vscode/own"},
		Targets: []string{"/w/target"},
	})
	for _, tt := range []struct {
		c    Change
		path string
		dir  bool
		ok   bool
	}{
		{ChangePut, "/w/a", false, true}, {ChangeMake, "/w/a", true, true}, {ChangeLink, "/w/a", false, true}, {ChangeRemove, "/w/a", false, true},
		{ChangePut, "/w/.vscode/own", false, true}, {ChangePut, "/w/.gitignore", false, true},
		{ChangePut, "/w/.git/objects/aa/bb", false, false}, {ChangePut, "/w/.git/HEAD", false, false}, {ChangeMake, "/w/.git", true, false}, {ChangePut, "/w/.git", false, false},
		{ChangePut, "/w/sub/.GIT/Config", false, false}, {ChangeLink, "/w/.git/zz", false, false}, {ChangeLink, "/w/.git", false, false}, {ChangeMake, "/w/a/.git/hooks", true, false},
		{ChangeRemove, "/w/.git/hooks/pre-commit", false, false}, {ChangeRemove, "/w/.git", true, false},
		{ChangePut, "/w/.vscode/tasks.json", false, false}, {ChangeMake, "/w/.vscode", true, false}, {ChangeRemove, "/w/.envrc", false, false}, {ChangePut, "/w/a/.ENVRC", false, false},
		{ChangePut, "/w/a/.env\u200crc", false, false}, {ChangePut, "/w/extra", false, false}, {ChangePut, "/w/hidden/x", false, false}, {ChangeMake, "/w/hidden", true, false},
		{ChangePut, "/w/guarded", false, false}, {ChangePut, "/w/target", false, false}, {ChangeLink, "/w/.vscode/own", false, false}, {ChangeMake, "/w/.github/hooks", true, false},
		{ChangePut, "/w/.bawn/x", false, false}, {ChangePut, "/w/.config", false, false}, {ChangePut, "/w/.mcp.json", false, false}, {ChangePut, "/w/GIT~1/config", false, false},
	} {
		if rule := w.Refuses(tt.c, tt.path, tt.dir); (rule == "") != tt.ok {
			t.Errorf("%d of %q: rule %q; want it to be allowed: %v", tt.c, tt.path, rule, tt.ok)
		}
	}
}

// TestApplyFilterOfLayouts: git knows a git directory by what it holds, be that old or
// new. A slash is behind a directory.
func TestApplyFilterOfLayouts(t *testing.T) {
	const bare = "b/HEAD b/objects/ b/refs/"
	for _, tt := range []struct {
		holds string
		c     Change
		path  string
		ok    bool
	}{
		{bare, ChangePut, "b/config", false}, {bare, ChangePut, "b/objects/aa/bb", false}, {bare, ChangePut, "b/HEAD", false}, {bare, ChangePut, "b/COMMIT_EDITMSG", false},
		{bare, ChangeMake, "b/zz", false}, {bare, ChangeLink, "b/x", false}, {bare, ChangeRemove, "b/config", false}, {bare, ChangePut, "B/CONFIG", false},
		{"b/head b/Objects/ b/REFS/", ChangePut, "b/config", false}, {"b/HEAD b/commondir", ChangePut, "b/commondir", false}, {"HEAD objects/ refs/", ChangePut, "config", false},
		{"HEAD objects refs", ChangePut, "d/e/f", false}, {bare + " b/refs/x/HEAD", ChangePut, "b/refs/x/config", false},
		{"", ChangePut, "b/config", true}, {"b/objects/ b/refs/", ChangePut, "b/config", true}, {"b/HEAD/ b/objects/ b/refs/", ChangePut, "b/config", true}, {bare, ChangePut, "c/config", true},
		{"b/HEAD", ChangePut, "b/config", true}, {"b/HEAD b/objects/", ChangeMake, "b/x", true},
	} {
		w := NewApplyFilter(&layout.Plan{Protected: []string{"/w"}})
		for name := range strings.FieldsSeq(tt.holds) {
			name, dir := strings.CutSuffix(name, "/")
			w.Holds("/w/"+name, dir)
		}
		if rule := w.Refuses(tt.c, "/w/"+tt.path, tt.c == ChangeMake); (rule == "") != tt.ok {
			t.Errorf("%q: %d of %q: rule %q; want it to be allowed: %v", tt.holds, tt.c, tt.path, rule, tt.ok)
		}
	}
}
