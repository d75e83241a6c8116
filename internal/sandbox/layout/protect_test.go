package layout

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
		op   Operation
		path string
		dir  bool
		want Ruling
	}{
		{OpOpen, "main.go", false, RulingAllow},
		{OpMkdir, ".git", true, RulingGit},
		{OpMkdir, "deep/.GIT", true, RulingGit},
		{OpOpen, "wt/.git", false, RulingGit},
		{OpRenameTo, "wt/.git", false, RulingDeny},
		{OpRenameFrom, ".git", true, RulingDeny},
		{OpRemove, ".git", true, RulingDeny},
		{OpSymlink, "x/.git", false, RulingDeny},
		{OpMknod, ".git", false, RulingDeny},
		{OpOpen, ".git/index.lock", false, RulingDeny},
		{OpRenameTo, ".git/index", false, RulingDeny},
		{OpOpen, ".git/objects/ab/cd", false, RulingDeny},
		{OpLinkFrom, "sub/.git/config", false, RulingDeny},
		{opTruncate, ".git/HEAD", false, RulingDeny},
		{OpSymlink, ".git/COMMIT_EDITMSG", false, RulingDeny},
		{OpMkdir, "sub/.Git/zz/.git", true, RulingDeny},
		{OpRemove, "GIT~1/config", false, RulingDeny},
		{OpOpen, ".gitignore", false, RulingAllow},
		{OpOpen, ".github/x.git/y", false, RulingAllow},
		{OpRemove, ".envrc", false, RulingDeny},
		{OpOpen, ".claude/settings.json", false, RulingDeny},
		{OpMkdir, "deep/down/.vscode", true, RulingDeny},
		{OpSymlink, ".idea", false, RulingDeny},
		{OpRenameTo, ".cursor", true, RulingDeny},
		{OpOpen, ".envrc", false, RulingDeny},
		{OpOpen, ".koda/agents/x.json", false, RulingDeny},
		{OpOpen, ".koda/notes", false, RulingAllow},
		{OpMkdir, ".koda", true, RulingAllow},
		{OpRenameTo, ".koda", true, RulingDeny},
		{OpOpen, ".github/workflows/ci.yml", false, RulingAllow},
		{OpOpen, "extra/file", false, RulingDeny},
	}
	p := NewProtector([]string{w}, []string{"extra"}, nil)
	for _, c := range cases {
		if got, _ := p.Rule(c.op, w+"/"+c.path, c.dir); got != c.want {
			t.Errorf("op %d on %s: got %d, want %d", c.op, c.path, got, c.want)
		}
		if got, _ := p.Rule(c.op, "/tmp/"+c.path, c.dir); got != RulingAllow {
			t.Errorf("op %d on /tmp/%s, outside: got %d, want allow", c.op, c.path, got)
		}
	}
}

func TestAProtectedDirectoryGivenByNameIsWritable(t *testing.T) {
	p := NewProtector([]string{"/w", "/w/.claude"}, nil, nil)
	for path, want := range map[string]Ruling{"/w/.claude/x": RulingAllow, "/w/.claude/.envrc": RulingDeny, "/w/.vscode/x": RulingDeny} {
		if got, _ := p.Rule(OpOpen, path, false); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

// Names of logins count at the top alone where no home directory is, and others at any depth.
func TestProjectsHaveFixtures(t *testing.T) {
	p := NewProtector([]string{"/w", "/w/in", "/v"}, []string{"extra"}, nil)
	p.Projects = []string{"/w"}
	for file, want := range map[string]Ruling{
		"/w/.bashrc": RulingDeny, "/w/test/.bashrc": RulingAllow, "/w/test/.BashRC": RulingAllow, "/w/.local/bin/x": RulingDeny, "/w/a/.local/bin/x": RulingAllow,
		"/w/a/.envrc": RulingDeny, "/w/a/.vscode/x": RulingDeny, "/w/a/.git/config": RulingDeny, "/w/a/extra": RulingDeny, "/w/a/.bashrc/.envrc": RulingDeny,
		"/w/in/a/.bashrc": RulingDeny, "/v/a/.bashrc": RulingDeny,
	} {
		for _, op := range []Operation{OpOpen, OpSymlink, OpRenameTo, OpLinkTo, OpMknod} {
			if got, rule := p.Rule(op, file, false); got != want {
				t.Errorf("op %d on %s: %d by %q, want %d", op, file, got, rule, want)
			}
		}
	}
	if got, rule := p.Rule(OpRenameTo, "/w/a/.local", true); got != RulingAllow {
		t.Errorf("a directory that may hold a login's names: %d by %q", got, rule)
	}
}

// Whatever lies below a protected name is protected, wherever the name stands.
func TestProtectedNamesHoldAtAnyDepth(t *testing.T) {
	p := NewProtector([]string{"/w"}, nil, nil)
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
		op := Operation(rapid.IntRange(0, int(OpRemove)).Draw(t, "op"))
		if got, _ := p.Rule(op, abs, rapid.Bool().Draw(t, "dir")); got != RulingDeny {
			t.Fatalf("op %d on %s: got %d, want deny", op, abs, got)
		}
	})
}

// What is hidden and absent must not come into being, by whatever detour.
func TestHiddenAndAbsentStaysAbsent(t *testing.T) {
	p := NewProtector([]string{"/home/a"}, nil, nil)
	p.Absent = []string{"/home/a/.config/bawn"}
	cases := []struct {
		op   Operation
		path string
		want Ruling
	}{
		{OpMkdir, "/home/a/.config", RulingAllow},
		{OpMkdir, "/home/a/.config/bawn", RulingDeny},
		{OpOpen, "/home/a/.config/bawn/config.toml", RulingDeny},
		{OpRenameTo, "/home/a/.config", RulingDeny},
		{OpSymlink, "/home/a/.config", RulingDeny},
		{OpRenameTo, "/home/a/.config/bawn", RulingDeny},
		{OpOpen, "/home/a/.config/bawnish", RulingAllow},
	}
	for _, c := range cases {
		if got, _ := p.Rule(c.op, c.path, true); got != c.want {
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
