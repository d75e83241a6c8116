package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// pooled is a request for a workspace with a pool.
func pooled(t *testing.T, ws string) sandbox.Request {
	t.Helper()
	req := request(ws)
	state := workspace(t)
	req.GitPool = filepath.Join(state, "pool")
	if err := os.Mkdir(req.GitPool, 0o700); err != nil {
		t.Fatal(err)
	}
	req.Hidden = append(req.Hidden, state)
	return req
}

// TestGuestsRepositories makes repositories in the workspace, works in them, moves
// and removes them. The host sees files, and an empty .git.
func TestGuestsRepositories(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify", "git", "python3")
	ws := workspace(t)
	req := pooled(t, ws)
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, code, denials := execute(t, p, plan, gitNow+`set -e
git init -q -b main a; cd a; echo 1 >f; git add f; git commit -qm one; git config alias.x '!echo alias'; git x; plant .git/hooks/post-commit; cd ..
git clone -q a b; cd b; git log --format=%s; git gc -q; git worktree add -q ../w; cd ../w; git status -sb; cd ..
cp -r a c; git -C c fsck; tar cf t.tar a; mkdir d; tar xf t.tar -C d; git -C d/a log --format=tar:%s
mv b e; git -C e log --format=moved:%s; mkdir h; mv e/.git h/.git; ls h/.git/HEAD; mv h/.git e/.git; git -C e log --format=back:%s
rm -rf c; mkdir c; rmdir c; git clone -q a c; rm -rf c; ls
git init -q -b main outer; cd outer; git commit -q --allow-empty -m o; git -c protocol.file.allow=always submodule add -q ../a sub; git commit -qm sub; git submodule status | cut -c1; cd ..`)
	t.Log(out)
	for _, want := range []string{"alias\n", "one\n", "## w\n", "tar:one\n", "moved:one\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 || len(denials) > 0 {
		t.Errorf("status %d, refused %v", code, denials)
	}
	if got, want := host(t, ws, `find . -name .git | sort; find . -path '*.git/*'; cat w/.git outer/sub/.git`), "./a/.git\n./d/a/.git\n./e/.git\n./outer/.git\n./outer/sub/.git\n./w/.git\n"; got != want {
		t.Errorf("the host sees %q; want %q", got, want)
	}
	if got := host(t, req.GitPool, `grep -ho '"path":"[^"]*"' */place.json | wc -l; ls */git/HEAD | wc -l`); got != "6\n4\n" {
		t.Errorf("the pool holds %q", got)
	}
}

// gitOf is the entry of a pool that lies over r/.git.
func gitOf(ws, pool, entry string) bawn.GitDir {
	return bawn.GitDir{Path: filepath.Join(ws, "r/.git"), Private: filepath.Join(pool, entry, sandbox.PoolGit)}
}
