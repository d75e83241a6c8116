package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// host runs a script as the human does, outside of any sandbox.
func host(t *testing.T, dir, text string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", gitNow+text)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", text, err, out)
	}
	return string(out)
}

// privateCopy makes a private git directory by hand: what git (the path of a git
// directory of the host) holds, but for its objects, which it borrows.
func privateCopy(t *testing.T, req *sandbox.Request, git string) bawn.GitDir {
	t.Helper()
	state := workspace(t)
	g := bawn.GitDir{
		Path: git, Private: filepath.Join(state, "git"),
		Objects: []bawn.GitObjects{{Source: filepath.Join(git, "objects"), Target: "/run/bawn/git/0/objects"}},
	}
	host(t, state, `cp -a '`+git+`' git && rm -r git/objects && mkdir -p git/objects/info git/objects/pack && echo /run/bawn/git/0/objects >git/objects/info/alternates`)
	req.Git = append(req.Git, g)
	req.Hidden = append(req.Hidden, state)
	return g
}

// TestPrivateGitDirectory works in a repository whose git directory is the
// session's: git does what it does, and the host's stays as it is.
func TestPrivateGitDirectory(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git")
	ws := workspace(t)
	host(t, ws, `git init -q -b main . && echo 1 >f && git add f && git commit -qm one`)
	before := host(t, ws, `find .git -type f | sort | xargs sha256sum`)
	req := request(ws)
	g := privateCopy(t, &req, filepath.Join(ws, ".git"))
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, code, denials := execute(t, p, plan, gitNow+`set -e; echo 2 >f; git commit -qam two; git config alias.x '!echo alias'; git x
plant .git/hooks/pre-commit; ln -s /etc/passwd .git/COMMIT_EDITMSG2; mkfifo .git/fifo; ln .git/HEAD .git/HEAD2; mkdir -p .git/.vscode; echo >.git/.vscode/x
git tag t; git stash list; git gc -q; git log --format=%s; git fsck; ! mv .git away 2>/dev/null; rm -rf .git 2>/dev/null || ls -A .git`)
	if code != 0 || !strings.HasPrefix(out, "alias\n") || !strings.Contains(out, "two\none\n") || len(denials) > 0 {
		t.Errorf("status %d, refused %v: %s", code, denials, out)
	}
	if after := host(t, ws, `find .git -type f | sort | xargs sha256sum`); after != before {
		t.Errorf("the host's git directory has changed: %s", after)
	}
	if left, err := os.ReadDir(g.Private); err != nil || len(left) > 0 {
		t.Errorf("of the private directory is left: %v, %v", left, err)
	}
}

// TestNoPrivateGitDirectory: the host's is read-only where the session has none of
// its own, and where a provider can't mount one.
func TestNoPrivateGitDirectory(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git", "landlock")
	for _, p := range []sandbox.Provider{New(""), NewLandlock("")} {
		ws := workspace(t)
		host(t, ws, `git init -q -b main . && echo 1 >f && git add f && git commit -qm one`)
		before := host(t, ws, `find .git -type f | sort | xargs sha256sum`)
		req := request(ws)
		req.Session.ID = filepath.Base(ws)
		if p.Name() == layout.LandlockName {
			privateCopy(t, &req, filepath.Join(ws, ".git"))
			req.Hidden = nil
		}
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		out, _, denials := execute(t, p, plan, gitNow+`echo 2 >g && git add g; echo x >>.git/config; echo x >.git/new; rm -f .git/HEAD; mv .git x; mkdir .git/zz; git log --format=%s`)
		if !strings.HasSuffix(out, "one\n") {
			t.Errorf("%s: git can't read: %s", p.Name(), out)
		}
		if after := host(t, ws, `find .git -type f | sort | xargs sha256sum`); after != before {
			t.Errorf("%s: the host's git directory has changed: %s", p.Name(), after)
		}
		if len(denials) == 0 {
			t.Errorf("%s: nothing was reported", p.Name())
		}
		for _, d := range denials {
			t.Log(d)
		}
	}
}
