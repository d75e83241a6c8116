package git

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestCheckRef: what we accept, git accepts.
func TestCheckRef(t *testing.T) {
	testenv.Need(t, "git")
	good := []string{
		"refs/heads/main", "refs/heads/--mirror", "refs/heads/agent/a.b/c@d", "refs/tags/v1.0", "refs/for/main%submit", "refs/heads/é", "refs/heads/-", "refs/heads/@",
	}
	bad := []string{
		"", "HEAD", "main", "refs", "refs/", "refs/heads/", "refs//heads", "/refs/heads/a", "refs/heads/a..b", "refs/heads/.a", "refs/heads/a.lock", "refs/heads/a.lock/b",
		"refs/heads/a.", "refs/heads/a b", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", `refs/heads/a\b`, "refs/heads/a@{1}",
		"refs/heads/a\x00b", "refs/heads/a\nb", "refs/heads/a\x7f", "REFS/heads/a",
	}
	ours := []string{"refs/heads/\xff", "refs/heads/a\u202eb", "refs/heads/" + strings.Repeat("a", maxRef)} // git takes these
	for _, ref := range good {
		if err := CheckRef(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
		if err := exec.Command("git", "check-ref-format", ref).Run(); err != nil {
			t.Errorf("git does not take %q", ref)
		}
	}
	for _, ref := range append(bad, ours...) {
		if CheckRef(ref) == nil {
			t.Errorf("%q is taken", ref)
		}
	}
}

func TestRepoName(t *testing.T) {
	good := map[string]string{
		"/owner/name.git": "owner/name", "owner/name": "owner/name", "/a/b/c.git": "a/b/c", "name": "name", "/~user/x.git": "~user/x", "/A/B": "A/B", "/o/n.js.git": "o/n.js",
	}
	for path, want := range good {
		if got, err := repoName(path); got != want || err != nil {
			t.Errorf("%q: got %q, %v; want %q", path, got, err, want)
		}
	}
	bad := []string{
		"", "/", ".git", "/.git", "//owner/name", "/owner//name", "/owner/name/", "/owner/../name", "/owner/./name", "/owner/name.git/.git", "/owner/name.git.git", "/owner.git/name",
		"/owner/-name", "/--upload-pack=x", "/owner/na%6de", "/owner/na me", "/owner/name;x", "/owner/name\x00", "/owner/name\n", "/owner/n\\m", "/owner/n:m", "/owner/é", "/owner/.name", "/~", "/~/x",
		"/owner/a~b", "/owner/name.", "/owner/name.GIT.git", "/" + strings.Repeat("a", maxRepo+1), "/owner/name?x", "/owner/name#x", "/a/..b", "/a/b..c", "/a/b..git",
	}
	for _, path := range bad {
		if got, err := repoName(path); err == nil {
			t.Errorf("%q is taken as %q", path, got)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"refs/heads/agent/*", "refs/heads/agent/a", true},
		{"refs/heads/agent/*", "refs/heads/agent/a/b", false},
		{"refs/heads/agent/**", "refs/heads/agent/a/b", true},
		{"refs/heads/agent/**", "refs/heads/agentx", false},
		{"refs/heads/agent-*", "refs/heads/agent-1", true},
		{"refs/heads/agent-*", "refs/heads/agent", false},
		{"refs/**", "refs/heads/a", true},
		{"**", "refs/heads/a", true},
		{"**/a", "refs/heads/a", true},
		{"refs/**/a", "refs/a", true},
		{"refs/*/a", "refs/a", false},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "ac", false},
		{"a*a", "a", false},
		{"*", "", false},
		{"", "refs/heads/a", false},
		{"refs/for/*", "refs/for/main", true},
		{"refs/for/*", "refs/for/main%submit", false},
		{"refs/for/**", "refs/for/main%submit", false},
		{"refs/for/main%submit", "refs/for/main%submit", true},
		{"refs/heads/Main", "refs/heads/main", false},
	}
	for _, tt := range tests {
		if got := matchRef(tt.pattern, tt.s); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
	slow := strings.Repeat("**/a/", 200) + "b"
	if matchRepo(slow, strings.Repeat("a/", 200)+"c") {
		t.Error("the long pattern matches")
	}
}

func TestParseCommand(t *testing.T) {
	good := []struct {
		text, canonical, repo string
		kind                  Kind
		discovery             bool
	}{
		{"git-upload-pack '/owner/name.git'", "git-upload-pack '/owner/name.git'", "owner/name", Fetch, false},
		{"git-receive-pack 'owner/name'", "git-receive-pack 'owner/name'", "owner/name", Push, true},
		{"git upload-pack 'owner/name/'", "git-upload-pack 'owner/name/'", "owner/name", Fetch, false},
		{"git-upload-archive '/owner/name'", "git-upload-archive '/owner/name'", "owner/name", Fetch, false},
		{"git-lfs-authenticate owner/name.git download", "git-lfs-authenticate 'owner/name.git' download", "owner/name", Fetch, false},
		{"git-lfs-authenticate 'owner/name.git' upload", "git-lfs-authenticate 'owner/name.git' upload", "owner/name", Push, false},
	}
	for _, tt := range good {
		c, err := ParseCommand(tt.text)
		if err != nil || c.String() != tt.canonical || c.Repo != tt.repo || c.Kind != tt.kind || c.Discovery != tt.discovery {
			t.Errorf("%q: got %+v, %v", tt.text, c, err)
		}
	}
	for _, text := range badCommands {
		if c, err := ParseCommand(text); err == nil {
			t.Errorf("%q is taken as %+v", text, c)
		}
	}
}

var badCommands = []string{
	"", "git-receive-pack", "git-receive-pack ", "git-receive-pack ''", "git-receive-pack 'x'; id", "git-receive-pack 'x';id", "git-receive-pack 'x' 'y'", "git-receive-pack 'x' y",
	"git-receive-pack 'x'\nid", "git-receive-pack 'x\n'", "git-receive-pack $(id)", "git-receive-pack `id`", "git-receive-pack 'a'\\''b'", "git-receive-pack \"x\"", "git-receive-pack 'x", "git-receive-pack  'x'",
	"git-receive-pack '--help'", "git-receive-pack -x", "git-receive-pack 'a/../b.git'", "git-receive-pack '/etc//x'", "git-shell 'x'", "git status", "git", "git 'x'", "git -c x=y upload-pack 'x'", "sh -c 'x'",
	"git-upload-pack 'x' upload", "git-lfs-authenticate x", "git-lfs-authenticate x delete", "git-lfs-authenticate x upload y", "git-lfs-transfer x upload", "/usr/bin/git-upload-pack 'x'",
	"GIT-UPLOAD-PACK 'x'", "git-upload-pack\t'x'", " git-upload-pack 'x'", "git-upload-pack 'x' ", "env A=b git-upload-pack 'x'", "git-upload-pack 'x'&", "git-upload-pack ~/x", "git-upload-pack '~'/x",
	"git-receive-pack '" + strings.Repeat("a/", maxCommand) + "'",
}

// FuzzParseCommand: what is accepted says the same when it is read again, and
// holds nothing that a shell would take for more than a word.
func FuzzParseCommand(f *testing.F) {
	for _, text := range append(badCommands, "git-upload-pack '/owner/name.git'", "git-lfs-authenticate owner/name.git download") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCommand(text)
		if err != nil {
			return
		}
		again, err := ParseCommand(c.String())
		if err != nil || again.String() != c.String() || again.Repo != c.Repo || again.Kind != c.Kind {
			t.Errorf("%q: read %+v, then %+v, %v", text, c, again, err)
		}
		if c.Kind == None || strings.ContainsAny(c.Path, "'\"\\ \n\t;&|<>$`*?[](){}!#%") || strings.HasPrefix(c.Path, "-") || strings.Contains(c.Path, "..") {
			t.Errorf("%q: path %q", text, c.Path)
		}
	})
}
