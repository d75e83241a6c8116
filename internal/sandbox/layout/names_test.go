package layout

import "testing"

// TestSpellings rules on names that some file system takes for protected ones.
func TestSpellings(t *testing.T) {
	p := NewProtector([]string{"/w"}, []string{"secret-hooks"}, nil)
	denied := []string{
		".GIT/hooks/x", ".g\u200cit/hooks/x", ".gi\ufefft/hooks/x", ".gıt/hooks/x", ".gİt/hooks/x", "GIT~1/hooks/x", "git~2/hooks/x", ".git./hooks/x",
		".git /hooks/x", ".git::$INDEX_ALLOCATION/hooks/x", `a\.git\hooks\x`, ".git/hook\u017f/x", ".git/HOOKS./x", ".git/config.", ".git/index", ".\u017f\u017fh/x", ".ßh/x", ".proﬁle", ".vſcode/x", ".VSCODE/x", "VSCODE~1/x",
		"ENVRC~1", "MCP~1.JSO", "CLAUDE~1/x", "CLAUDE~1.JSO", ".envrc ", ".envrc...", ".env\u00adrc", ".\u212aoda/agents/x", ".koda/AGENTS/x", "SECRET~1",
		".conﬁg/fiſh/x",
	}
	for _, name := range denied {
		if got, _ := p.Rule(OpOpen, "/w/"+name, false); got != RulingDeny {
			t.Errorf("%q: got %d, want deny", name, got)
		}
		if got, _ := p.Rule(OpRenameTo, "/w/deep/"+name, false); got == RulingAllow {
			t.Errorf("deep/%q: got allow", name)
		}
	}
	for _, name := range []string{"git~", "git~x", "a~1", "file~1.txt", ".gitignore", "...", " ", "a:b", "ünïcode", "日本.txt", `a\b`, "x.", "env~1rc"} {
		if got, rule := p.Rule(OpOpen, "/w/"+name, false); got != RulingAllow {
			t.Errorf("%q: got %d (%s), want allow", name, got, rule)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add(".GIT/hooks")
	f.Add("g\u200cit~1:x. ")
	f.Fuzz(func(t *testing.T, s string) {
		p := NewProtector([]string{"/w"}, nil, nil)
		if len(p.Parts(s)) == 0 {
			t.Errorf("%q: no part", s)
		}
	})
}
