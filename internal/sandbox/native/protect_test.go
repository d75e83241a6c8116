package native

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/protect"
)

func TestRules(t *testing.T) {
	const w = "/srv/p"
	cases := []struct {
		op   operation
		path string
		dir  bool
		want ruling
	}{
		{opOpen, "main.go", false, rulingAllow},
		{opOpen, ".git/index.lock", false, rulingAllow},
		{opRenameTo, ".git/index", false, rulingAllow},
		{opOpen, ".git/objects/ab/cd", false, rulingAllow},
		{opOpen, ".git/refs/heads/hooks", false, rulingAllow},
		{opOpen, ".git/logs/refs/heads/config", false, rulingAllow},
		{opOpen, ".git/HEAD", false, rulingAllow},
		{opMkdir, ".git", true, rulingAllow},
		{opMkdir, "sub/.git/hooks", true, rulingAllow},
		{opOpen, "sub/.git/hooks/pre-commit.sample", false, rulingAllow},
		{opRenameTo, "sub/.git/hooks/pre-commit.sample", false, rulingDeny},
		{opRenameFrom, "sub/.git/hooks/pre-commit.sample", false, rulingDeny},
		{opOpen, ".git/hooks/pre-commit", false, rulingDeny},
		{opOpen, ".GIT/Hooks/pre-commit", false, rulingDeny},
		{opOpen, ".git/config", false, rulingDeny},
		{opRenameTo, ".git/config", false, rulingNewFile},
		{opOpen, ".git/config.lock", false, rulingNewLock},
		{opLinkFrom, ".git/config", false, rulingDeny},
		{opTruncate, ".git/config", false, rulingDeny},
		{opOpen, ".git/config.worktree", false, rulingDeny},
		{opOpen, ".git/commondir", false, rulingDeny},
		{opOpen, ".git/info/attributes", false, rulingDeny},
		{opOpen, ".git/info/exclude", false, rulingAllow},
		{opOpen, "wt/.git", false, rulingGitfile},
		{opRenameTo, "wt/.git", false, rulingDeny},
		{opRenameFrom, ".git", true, rulingDeny},
		{opSymlink, "x/.git", false, rulingDeny},
		{opSymlink, ".git/tAbCdE", false, rulingAllow},
		{opSymlink, ".git/hooks", false, rulingDeny},
		{opSymlink, ".git/modules", false, rulingDeny},
		{opRenameTo, ".git/modules", false, rulingDeny},
		{opRenameTo, ".git/worktrees", true, rulingDeny},
		{opRenameTo, ".git/info", true, rulingDeny},
		{opSymlink, ".git/worktrees/x", false, rulingDeny},
		{opMkdir, ".git/worktrees/x", true, rulingAllow},
		{opOpen, ".git/worktrees/x/commondir", false, rulingCommon},
		{opRenameTo, ".git/worktrees/x/commondir", false, rulingDeny},
		{opOpen, ".git/worktrees/x/gitdir", false, rulingAllow},
		{opOpen, ".git/worktrees/x/config", false, rulingDeny},
		{opRenameTo, ".git/worktrees/x/config", false, rulingDeny},
		{opOpen, ".git/worktrees/x/config.worktree", false, rulingDeny},
		{opOpen, ".git/worktrees/x/hooks/y", false, rulingDeny},
		{opOpen, ".git/modules/a/b/hooks/post-checkout", false, rulingDeny},
		{opRenameTo, ".git/modules/a/config", false, rulingDeny},
		{opSymlink, ".git/modules/a", false, rulingDeny},
		{opRemove, ".git/config", false, rulingOwn},
		{opRemove, ".git/hooks/pre-push", false, rulingOwn},
		{opRemove, ".git/hooks", true, rulingAllow},
		{opRemove, ".git/index.lock", false, rulingAllow},
		{opRemove, ".git/HEAD", false, rulingOwn},
		{opRemove, ".git/refs", true, rulingOwn},
		{opRemove, ".git/refs/heads/x", false, rulingAllow},
		{opRenameFrom, ".git/HEAD", false, rulingDeny},
		{opRenameFrom, ".git/objects", true, rulingDeny},
		{opRenameTo, ".git/HEAD", false, rulingAllow},
		{opRenameTo, ".git/refs", true, rulingDeny},
		{opRemove, ".git/worktrees/x/HEAD", false, rulingAllow},
		{opOpen, ".git/config.lock.bawn", false, rulingDeny},
		{opRemove, "wt/.git", false, rulingAllow},
		{opRemove, ".git/worktrees/x/commondir", false, rulingAllow},
		{opRemove, ".git/modules/a/config", false, rulingDeny},
		{opRemove, ".envrc", false, rulingDeny},
		{opOpen, ".claude/settings.json", false, rulingDeny},
		{opMkdir, "deep/down/.vscode", true, rulingDeny},
		{opSymlink, ".idea", false, rulingDeny},
		{opRenameTo, ".cursor", true, rulingDeny},
		{opOpen, ".envrc", false, rulingDeny},
		{opOpen, ".koda/agents/x.json", false, rulingDeny},
		{opOpen, ".koda/notes", false, rulingAllow},
		{opMkdir, ".koda", true, rulingAllow},
		{opRenameTo, ".koda", true, rulingDeny},
		{opOpen, ".github/workflows/ci.yml", false, rulingAllow},
		{opOpen, "extra/file", false, rulingDeny},
	}
	p := newProtector([]string{w}, []string{"extra"}, nil)
	for _, c := range cases {
		if got, _ := p.rule(c.op, w+"/"+c.path, c.dir); got != c.want {
			t.Errorf("op %d on %s: got %d, want %d", c.op, c.path, got, c.want)
		}
		if got, _ := p.rule(c.op, "/tmp/"+c.path, c.dir); got != rulingAllow {
			t.Errorf("op %d on /tmp/%s, outside: got %d, want allow", c.op, c.path, got)
		}
	}
}

func TestRulesOfAGitDirectoryByItself(t *testing.T) {
	p := newProtector([]string{"/repo/.git"}, nil, nil)
	if got, _ := p.rule(opOpen, "/repo/.git/hooks/x", false); got != rulingDeny {
		t.Errorf("got %d, want deny", got)
	}
	if got, _ := p.rule(opOpen, "/repo/.git/objects/x", false); got != rulingAllow {
		t.Errorf("got %d, want allow", got)
	}
}

func TestAProtectedDirectoryGivenByNameIsWritable(t *testing.T) {
	p := newProtector([]string{"/w", "/w/.claude"}, nil, nil)
	for path, want := range map[string]ruling{"/w/.claude/x": rulingAllow, "/w/.claude/.envrc": rulingDeny, "/w/.vscode/x": rulingDeny} {
		if got, _ := p.rule(opOpen, path, false); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// Whatever lies below a protected name is protected, wherever the name stands.
func TestProtectedNamesHoldAtAnyDepth(t *testing.T) {
	p := newProtector([]string{"/w"}, nil, nil)
	names := slices.DeleteFunc(ProtectedNames(nil), func(n string) bool { return len(protect.Ways(ProtectedNames(nil))[n]) > 0 }) // of which only the way counts
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		parts := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,6}`), 0, 4)
		abs := "/w"
		for _, d := range parts.Draw(t, "above") {
			abs += "/" + d
		}
		abs += "/" + name
		for _, d := range parts.Draw(t, "below") {
			abs += "/" + d
		}
		op := operation(rapid.IntRange(0, int(opRemove)).Draw(t, "op"))
		if got, _ := p.rule(op, abs, rapid.Bool().Draw(t, "dir")); got != rulingDeny {
			t.Fatalf("op %d on %s: got %d, want deny", op, abs, got)
		}
	})
}

func TestActiveKey(t *testing.T) {
	inert := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a/b\"]\n\tmerge = refs/heads/a/b\n"
	if got := activeKey(inert); got != "" {
		t.Errorf("inert configuration: got %q", got)
	}
	active := map[string]string{
		"[core]\n\tfsmonitor = x\n":                                      "core.fsmonitor",
		"[CORE]\n\tHooksPath = /tmp\n":                                   "core.hookspath",
		"[core]\n\tsshCommand = x\n":                                     "core.sshcommand",
		"[alias]\n\tst = !x\n":                                           "alias.st",
		"[include]\n\tpath = /tmp/x\n":                                   "include.path",
		"[includeIf \"gitdir:/\"]\n\tpath = /x\n":                        "includeif.*.path",
		"[filter \"a\"]\n\tclean = x\n":                                  "filter.*.clean",
		"[remote \"o\"]\n\turl = ext::sh -c id\n":                        "remote.*.url",
		"[remote \"o\"]\n\turl = --upload-pack=x\n":                      "remote.*.url",
		"[remote \"o\"]\n\tpushurl = https://evil\n":                     "remote.*.pushurl",
		"[remote \"o\"]\n\tuploadpack = x\n":                             "remote.*.uploadpack",
		"[extensions]\n\tworktreeConfig = true\n":                        "extensions.worktreeconfig",
		"[core] fsmonitor = x\n":                                         "syntax",
		"[core]\n\tbare = false \\\n\tfsmonitor = x\n":                   "syntax",
		"bare = false\n":                                                 "syntax",
		"[core]\n\tbare\n":                                               "syntax",
		"[core]\r\n\tfsmonitor=x\n":                                      "syntax",
		"[core]\n\tbare = \"false\"\n":                                   "syntax",
		"[remote \"a\\\"]\n[core]\nfsmonitor=x #\"]\n\turl = https://\n": "syntax",
		"evil\n": "syntax",
	}
	for text, want := range active {
		if got := activeKey(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzActiveKey(f *testing.F) {
	f.Add("[core]\n\tbare = false\n")
	f.Add("[remote \"x\"]\n\turl = ext::x\n")
	f.Fuzz(func(t *testing.T, text string) { activeKey(text) })
}

// What is hidden and absent must not come into being, by whatever detour.
func TestHiddenAndAbsentStaysAbsent(t *testing.T) {
	p := newProtector([]string{"/home/a"}, nil, nil)
	p.absent = []string{"/home/a/.config/bawn"}
	cases := []struct {
		op   operation
		path string
		want ruling
	}{
		{opMkdir, "/home/a/.config", rulingAllow},
		{opMkdir, "/home/a/.config/bawn", rulingDeny},
		{opOpen, "/home/a/.config/bawn/config.toml", rulingDeny},
		{opRenameTo, "/home/a/.config", rulingDeny},
		{opSymlink, "/home/a/.config", rulingDeny},
		{opRenameTo, "/home/a/.config/bawn", rulingDeny},
		{opOpen, "/home/a/.config/bawnish", rulingAllow},
	}
	for _, c := range cases {
		if got, _ := p.rule(c.op, c.path, true); got != c.want {
			t.Errorf("op %d on %s: got %d, want %d", c.op, c.path, got, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	text := "[core]\n\thooksPath = dev # ours\n[include] path = \"../a b\"\n[includeIf \"gitdir:~/x]\"]\n\tpath = y\n[alias]\n\tx = !sh \\\"t.sh\\\"\n\ty = one \\\n two\n[a.b]\nc\n; no\n[core]\r\n\tfsmonitor=f\r\n"
	want := []setting{
		{"core.hookspath", "dev"}, {"include.path", "../a b"}, {"includeif.*.path", "y"}, {"alias.x", `!sh "t.sh"`}, {"alias.y", "one  two"},
		{"a.*.c", ""}, {"core.fsmonitor", "f"},
	}
	if d := cmp.Diff(want, settings(text), cmp.AllowUnexported(setting{})); d != "" {
		t.Error(d)
	}
}

// Whatever activeKey would refuse to let a guest write is found by settings.
func FuzzSettings(f *testing.F) {
	f.Add("[core]\n\thooksPath = dev\n[include] path = x\n")
	f.Add("[a \"b]\"]\nc = \"d\\\\\" # e")
	f.Fuzz(func(t *testing.T, text string) {
		list := settings(text)
		if activeKey(text) != "" {
			return
		}
		for _, s := range list {
			if !inertKeys[s.key] {
				t.Errorf("%q: found %q in what is inert", text, s.key)
			}
		}
	})
}
