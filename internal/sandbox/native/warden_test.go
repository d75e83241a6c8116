package native

import (
	"strings"
	"testing"
)

// TestWarden rules as a supervisor does, and refuses what a supervisor would do
// itself.
func TestWarden(t *testing.T) {
	w := NewWarden(&Plan{
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
		{ChangePut, "/w/.git/objects/aa/bb", false, true}, {ChangePut, "/w/.git/HEAD", false, true}, {ChangePut, "/w/.git/index", false, true},
		{ChangePut, "/w/.git/refs/heads/x", false, true}, {ChangeMake, "/w/.git", true, true}, {ChangePut, "/w/.vscode/own", false, true},
		{ChangePut, "/w/.git/config", false, false}, {ChangePut, "/w/.git/hooks/pre-commit", false, false}, {ChangePut, "/w/.git", false, false},
		{ChangePut, "/w/sub/.GIT/Config", false, false}, {ChangePut, "/w/.git/config.worktree", false, false}, {ChangePut, "/w/.git/info/attributes", false, false},
		{ChangePut, "/w/.git/worktrees/x/commondir", false, false}, {ChangePut, "/w/.git/modules/a/config", false, false},
		{ChangeLink, "/w/.git/HEAD", false, false}, {ChangeLink, "/w/.git/objects", false, false}, {ChangeLink, "/w/.git/refs/heads/x", false, false}, {ChangeLink, "/w/.git", false, false},
		{ChangeRemove, "/w/.git/hooks/pre-commit", false, false}, {ChangeRemove, "/w/.git/config", false, false}, {ChangeRemove, "/w/.git/HEAD", false, false},
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

// TestWardenOfLayouts: git knows a git directory by what it holds, be that old or
// new. A + is before what comes, a / behind a directory.
func TestWardenOfLayouts(t *testing.T) {
	const bare, comes = "b/HEAD b/objects/ b/refs/", "+b/HEAD +b/objects/ +b/refs/"
	for _, tt := range []struct {
		holds string
		c     Change
		path  string
		ok    bool
	}{
		{bare, ChangePut, "b/config", false}, {comes, ChangePut, "b/config", false}, {comes, ChangePut, "b/hooks/pre-push", false}, {comes, ChangePut, "b/commondir", false},
		{comes, ChangePut, "b/info/attributes", false}, {comes, ChangePut, "b/modules/x/config", false}, {comes, ChangePut, "b/worktrees/x/commondir", false}, {comes, ChangePut, "b/config.worktree", false},
		{bare, ChangeRemove, "b/config", false}, {bare, ChangeRemove, "b/HEAD", false}, {bare, ChangeLink, "b/config", false}, {bare, ChangeLink, "b/hooks", false}, {comes, ChangeLink, "b/HEAD", false},
		{comes, ChangePut, "B/CONFIG", false}, {"+b/head +b/Objects/ +b/REFS/", ChangePut, "b/config", false}, {"+b/HEAD b/objects/ +b/refs", ChangePut, "b/config", false}, {"b/HEAD", ChangePut, "b/config", false},
		{"+b/HEAD +b/commondir", ChangePut, "b/commondir", false}, {"+HEAD +objects/ +refs/", ChangePut, "config", false}, {"+d/e/HEAD", ChangePut, "d/e/config", false},
		{"+.git/refs/x/HEAD +.git/refs/x/objects/ +.git/refs/x/refs/", ChangePut, ".git/refs/x/config", false}, {"+.git/objects/x/HEAD", ChangePut, ".git/objects/x/config", false},
		{"b/HEAD +b/refs/x/HEAD +b/refs/x/objects/ +b/refs/x/refs/", ChangePut, "b/refs/x/config", false}, {"b/HEAD +b/objects/x/HEAD", ChangePut, "b/objects/x/config", false},
		{"b/config +b/HEAD", ChangePut, "b/HEAD", false}, {"b/hooks/ b/hooks/update +b/HEAD", ChangePut, "b/HEAD", false}, {"b/hooks +b/HEAD", ChangePut, "b/HEAD", false}, {"b/config +b/HEAD", ChangeLink, "b/HEAD", false},
		{"b/info/attributes +b/head", ChangePut, "b/head", false}, {"b/HEAD b/config b/objects/ +b/refs/", ChangeMake, "b/refs", false}, {".git/refs/x/HEAD .git/refs/x/config +.git/refs/x/objects/ +.git/refs/x/refs/", ChangeMake, ".git/refs/x/refs", false},
		// What is no git directory, and what git needs.
		{"", ChangePut, "b/config", true}, {"b/objects/ b/refs/", ChangePut, "b/config", true}, {"b/HEAD/ b/objects/ b/refs/", ChangePut, "b/config", true}, {bare, ChangePut, "c/config", true}, {bare, ChangePut, "b/d/config", true},
		{"+b/HEAD", ChangePut, "b/HEAD", true}, {"b/hooks/ b/hooks/update.sample +b/HEAD", ChangePut, "b/HEAD", true}, {bare + " b/config", ChangePut, "b/HEAD", true}, {comes, ChangeMake, "b/objects", true}, {comes, ChangeMake, "b/hooks", true},
		{bare, ChangePut, "b/refs/heads/config", true}, {bare, ChangePut, "b/objects/aa/bb", true}, {bare, ChangePut, "b/packed-refs", true}, {"b/HEAD", ChangeRemove, "b/HEAD", true},
		{".git/refs/remotes/origin/HEAD", ChangePut, ".git/refs/remotes/origin/config", true}, {"b/HEAD b/refs/remotes/origin/HEAD b/refs/remotes/origin/config", ChangePut, "b/refs/remotes/origin/hooks", true},
	} {
		w := NewWarden(&Plan{Protected: []string{"/w"}})
		for name := range strings.FieldsSeq(tt.holds) {
			name, comes := strings.CutPrefix(name, "+")
			name, dir := strings.CutSuffix(name, "/")
			w.Holds("/w/"+name, dir, !comes)
		}
		if rule := w.Refuses(tt.c, "/w/"+tt.path, tt.c == ChangeMake); (rule == "") != tt.ok {
			t.Errorf("%q: %d of %q: rule %q; want it to be allowed: %v", tt.holds, tt.c, tt.path, rule, tt.ok)
		}
	}
}
