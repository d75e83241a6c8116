package human_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// day is what a human does in a project and in each of its directories: git from
// the prompt, an editor that opens the folder, a commit, and what was left half done.
var day = []string{
	`find . -type d -not -path './.git/*' | head -60 | while read -r d; do (cd "$d" 2>/dev/null && timeout -k 1 2 git status -s; timeout -k 1 2 git rev-parse --abbrev-ref HEAD) >/dev/null 2>&1; done`,
	`find -L . -maxdepth 4 -type d 2>/dev/null | head -60 | while read -r d; do (cd "$d" 2>/dev/null && timeout -k 1 2 git status -s) >/dev/null 2>&1; done`,
	`for f in .vscode/tasks.json .envrc .hg/hgrc .mise.toml; do find . -path "*/$f" -not -path './.git/*' | grep -q . && touch "$(dirname "$MARK")/$(basename $f)"; done; true`,
	"git add -A; git commit -qm 'a commit of mine'", "git fetch -q origin", "git stash; git stash pop", "git checkout -- .", "git restore .",
	"git rebase --continue", "git rebase --abort", "git bisect start; git bisect bad; git bisect good HEAD~3; git bisect reset", "git gc -q",
	`for r in $(find . -name .git -not -path './.git/*' | head -20); do (cd "$(dirname "$r")" && timeout -k 1 2 git checkout -- . ; timeout -k 1 2 git commit -qam x; timeout -k 1 2 git rebase --continue) >/dev/null 2>&1; done`,
	`find . -maxdepth 3 -type l | head -40 | while read -r l; do timeout 2 sh -c "echo mine >>'$l'" 2>/dev/null; done`,
}

// TestRandomPlants has guests whose threads do some thousands of file operations
// at random, among names and contents that matter, and then the human's day. It is
// the same for a seed but for the threads' order. The control is one without a
// sandbox.
func TestRandomPlants(t *testing.T) {
	reached, sessions := 0, testenv.Some(20, 1)
	for i := 0; i < sessions || i < 10 && reached == 0; i++ {
		seed := strconv.FormatUint(rand.Uint64(), 10)
		t.Run("control "+strconv.Itoa(i), func(t *testing.T) {
			r := newAccount(t)
			r.Run(t, r.fenced(r.Guest(seed, "1000")...)...)
			r.forget(t)
			r.works(t, day...)
			reached += min(1, len(r.effects(t)))
		})
		if i >= sessions {
			continue // until a control has an effect
		}
		t.Run("session "+strconv.Itoa(i), func(t *testing.T) {
			r := newAccount(t)
			argv := []string{"bawn", "run", "-q", "--net", "none", "--env", "MARK", "--env", "EVIL", "--"}
			if got := r.Run(t, append(argv, r.Guest(seed, "1000")...)...); got.Code != 0 {
				t.Fatalf("seed %s: %+v", seed, got)
			}
			r.forget(t)
			if got := append(r.works(t, day...), r.effects(t)...); len(got) > 0 {
				t.Errorf("seed %s: %q", seed, got)
			}
		})
	}
	if reached == 0 {
		t.Error("control: no seed had an effect without a sandbox")
	}
}

// guest does operations at random, in the workspace: SEED COUNT.
func guest(args []string) int {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	count, err2 := strconv.Atoi(args[1])
	if err != nil || err2 != nil {
		fmt.Fprintln(os.Stderr, "want SEED COUNT")
		return 2
	}
	var threads sync.WaitGroup
	for n := range uint64(4) {
		threads.Go(func() {
			g := gambler{rand.New(rand.NewPCG(seed, n))}
			for range count {
				g.play()
			}
		})
	}
	threads.Wait()
	return 0
}

// A gambler draws names, contents and calls.
type gambler struct{ *rand.Rand }

func (g gambler) of(words ...string) string { return words[g.IntN(len(words))] }

// dir draws a directory that a human may enter.
func (g gambler) dir() string {
	return g.of(".", "a", "a/b", "sub", "docs", "src", "vendor/lib", ".git", ".git/zz", ".git/refs/zz", "sub/.git", "a/.git", "a/b/.git", "vendor/lib/.git", "g", "sub/g", ".git/worktrees/w", ".git/modules/m")
}

// name draws a path.
func (g gambler) name() string {
	return filepath.Join(g.dir(), g.of("config", "HEAD", "hooks", "hooks/post-commit", "hooks/post-index-change", "index", "COMMIT_EDITMSG", "FETCH_HEAD", "logs/HEAD", "logs/refs/heads/main",
		"objects", "refs", "refs/heads/main", "commondir", "gitdir", "info/attributes", "rebase-merge/git-rebase-todo", "rebase-merge/interactive", "rebase-merge/head-name",
		"shallow", ".git", "g", "b", "f1", "n", ".vscode", ".vscode/tasks.json", ".envrc", ".hg/hgrc", ".mise.toml"))
}

// text draws contents.
func (g gambler) text() string {
	mark := os.Getenv("MARK")
	return g.of(os.Getenv("EVIL"), "#!/bin/sh\ntouch "+mark+"\n", "exec touch "+mark+"\n", "ref: refs/heads/main\n", "gitdir: "+g.target()+"\n", "../g\n", "* filter=mine\n", "refs/heads/main\n", "")
}

// target draws where a link leads.
func (g gambler) target() string {
	home := os.Getenv("HOME")
	return g.of(home+"/.bashrc", home, "../../.bashrc", "../../../.bashrc", "../..", ".git/zz", "../g", "g", "../evil.cfg", "/proc/self/cwd/../../.bashrc")
}

// write writes a file, and does not wait at a FIFO.
func (gambler) write(name, text string, mode os.FileMode) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, mode)
	if err != nil {
		return
	}
	_, _ = f.WriteString(text)
	_ = f.Close()
}

// gitPatience ends a git that reads a FIFO which another thread has put where it looks.
const gitPatience = 5 * time.Second

// play makes one call or a small sequence; most fail.
func (g gambler) play() {
	p, q := g.name(), g.name()
	switch g.IntN(14) {
	case 0:
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
	case 1, 2, 3:
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		g.write(p, g.text(), 0o755)
	case 4, 5:
		_ = os.Symlink(g.target(), p)
	case 6:
		_ = os.Remove(p)
		_ = os.Symlink(g.target(), p)
	case 7:
		_ = os.Link(p, q)
	case 8:
		_ = os.Rename(p, q)
	case 9:
		_ = os.Rename(g.dir(), g.dir())
	case 10:
		_ = unix.Renameat2(unix.AT_FDCWD, g.dir(), unix.AT_FDCWD, g.dir(), unix.RENAME_EXCHANGE)
	case 11:
		_ = unix.Mkfifo(p, 0o644)
		_ = os.Remove(p)
	case 12:
		g.layout(g.dir())
	case 13:
		if g.IntN(40) == 0 {
			ctx, cancel := context.WithTimeout(context.Background(), gitPatience)
			_ = exec.CommandContext(ctx, "git", g.of("init", "add", "status"), g.of("sub", "a/b", ".")).Run()
			cancel()
		}
	}
}

// layout makes a git directory by hand, in some order.
func (g gambler) layout(dir string) {
	parts := []func(){
		func() { _ = os.MkdirAll(dir+"/objects", 0o755) }, func() { _ = os.MkdirAll(dir+"/refs", 0o755) },
		func() { g.write(dir+"/HEAD", "ref: refs/heads/main\n", 0o644) },
		func() { g.write(dir+"/config", os.Getenv("EVIL"), 0o644) },
	}
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	_ = os.MkdirAll(dir, 0o755)
	for _, part := range parts {
		part()
	}
}
