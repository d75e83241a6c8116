package native

import "testing"

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
