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
		{opMkdir, ".git", true, rulingGit},
		{opMkdir, "deep/.GIT", true, rulingGit},
		{opOpen, "wt/.git", false, rulingGit},
		{opRenameTo, "wt/.git", false, rulingDeny},
		{opRenameFrom, ".git", true, rulingDeny},
		{opRemove, ".git", true, rulingDeny},
		{opSymlink, "x/.git", false, rulingDeny},
		{opMknod, ".git", false, rulingDeny},
		{opOpen, ".git/index.lock", false, rulingDeny},
		{opRenameTo, ".git/index", false, rulingDeny},
		{opOpen, ".git/objects/ab/cd", false, rulingDeny},
		{opLinkFrom, "sub/.git/config", false, rulingDeny},
		{opTruncate, ".git/HEAD", false, rulingDeny},
		{opSymlink, ".git/COMMIT_EDITMSG", false, rulingDeny},
		{opMkdir, "sub/.Git/zz/.git", true, rulingDeny},
		{opRemove, "GIT~1/config", false, rulingDeny},
		{opOpen, ".gitignore", false, rulingAllow},
		{opOpen, ".github/x.git/y", false, rulingAllow},
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

func FuzzSettings(f *testing.F) {
	f.Add("[core]\n\thooksPath = dev\n[include] path = x\n")
	f.Add("[a \"b]\"]\nc = \"d\\\\\" # e")
	f.Fuzz(func(_ *testing.T, text string) { settings(text) })
}
