package human_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A plant is what a guest leaves, and what the human does then.
type plant struct {
	name   string
	before string   // what the human has set up, in shell
	guest  string   // shell
	human  []string // shell, one after the other
	// there says that the effect is a file of the project's that a program of the
	// human's obeys. Empty: something executes or the human's file changes.
	there string
	// same is a command whose output must stay what it was before the guest.
	same string
}

// evilIndex writes an index with one entry: $1 its name, $2 its mode in octal.
const evilIndex = `
evil_index() {
	blob=$(printf '#!/bin/sh\ntouch "%s"\n' "$MARK" | git hash-object -w --stdin)
	P=$1 M=$2 ID=$blob python3 - <<'P'
import struct,hashlib,os
p=os.environ["P"].encode()
e=struct.pack(">10I",0,0,0,0,0,0,int(os.environ["M"],8),0,0,0)+bytes.fromhex(os.environ["ID"])+struct.pack(">H",min(len(p),0xfff))+p
e+=b"\0"*(8-len(e)%8)
b=b"DIRC"+struct.pack(">II",2,1)+e
open(".git/index","wb").write(b+hashlib.sha1(b).digest())
P
}
`

// layout makes a git directory by hand that executes: $1 its name.
const layout = `
layout() {
	mkdir -p "$1/objects" "$1/refs"
	echo 'ref: refs/heads/main' >"$1/HEAD"
	printf '%s' "$EVIL" >"$1/config"
}
`

const commit = "echo more >>f1; git commit -qam 'a commit of mine'"

var plants = []plant{
	{name: "COMMIT_EDITMSG is a link", guest: "rm -f .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG", human: []string{commit}},
	{name: "COMMIT_EDITMSG is moved in", guest: "ln -s ~/.bashrc x; mv x .git/COMMIT_EDITMSG", human: []string{commit}},
	{name: "COMMIT_EDITMSG is a relative link", guest: "rm -f .git/COMMIT_EDITMSG; ln -s ../../../.bashrc .git/COMMIT_EDITMSG", human: []string{commit}},
	{name: "the log of HEAD is a link", guest: "ln -sf ~/.bashrc .git/logs/HEAD", human: []string{commit}},
	{name: "the log of a branch is a link", guest: "ln -sf ~/.bashrc .git/logs/refs/heads/main", human: []string{commit}},
	{name: "FETCH_HEAD is a link", guest: "rm -f .git/FETCH_HEAD; ln -s ~/.bashrc .git/FETCH_HEAD", human: []string{"git fetch -q origin"}},
	{name: "the configuration is a link", guest: `printf '%s' "$EVIL" >cfg; rm .git/config; ln -s ../cfg .git/config`, human: []string{"git status"}},
	{name: "the configuration", guest: "git config core.fsmonitor \"touch $MARK; false\"", human: []string{"git status"}},
	{name: "an alias of the configuration", guest: "git config core.pager \"touch $MARK; cat\"; git config pager.status true; git config core.sshCommand \"touch $MARK\"; git config core.fsmonitor \"touch $MARK; false\"", human: []string{"git status"}},
	{name: "a hook", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >.git/hooks/post-commit; chmod +x .git/hooks/post-commit", human: []string{commit}},
	{name: "hooks are a link", guest: "mkdir h; printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >h/post-commit; chmod +x h/post-commit; mv .git/hooks .git/old; ln -s ../h .git/hooks", human: []string{commit}},
	{name: "a git directory inside .git", guest: layout + "layout .git/zz/r/.git; ln -s .git/zz/r docs", human: []string{"cd docs && git status"}},
	{name: "a git directory in refs", guest: layout + "layout .git/refs/zz/.git; ln -s .git/refs/zz docs", human: []string{"cd docs && git status"}},
	{name: "an index that writes a hook", guest: evilIndex + "evil_index .git/hooks/post-index-change 100755", human: []string{"git checkout -- .", "git restore .", "git status"}},
	{name: "an index in a new repository", guest: evilIndex + "git init -q sub && cd sub && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; evil_index .git/hooks/post-index-change 100755", human: []string{"cd sub && git checkout -- .", "cd sub && git status; git -C . restore ."}},
	{name: "a rebase half done", guest: `mkdir .git/rebase-merge; cd .git/rebase-merge; echo "exec touch $MARK" >git-rebase-todo; : >interactive; : >done; git rev-parse HEAD >onto; cp onto orig-head; echo refs/heads/main >head-name; echo 1 >msgnum; echo 1 >end; cd ../..; git checkout -q --detach`,
		human: []string{"git checkout -q --detach; git rebase --continue"}},
	{name: "a rebase half done in a new repository", guest: `git init -q sub; cd sub; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; mkdir .git/rebase-merge; cd .git/rebase-merge; echo "exec touch $MARK" >git-rebase-todo; : >interactive; : >done; git rev-parse HEAD >onto; cp onto orig-head; echo refs/heads/main >head-name; echo 1 >msgnum; echo 1 >end; cd ../..; git checkout -q --detach`,
		human: []string{"cd sub && git rebase --continue"}},
	{name: "commondir of a worktree", guest: layout + `layout "$PWD/e"; git worktree add -q wt fix; echo "$PWD/e" >.git/worktrees/wt/commondir`, human: []string{"cd wt && git status"}},
	{name: "attributes with a filter of the human's", guest: "mkdir -p .git/info; echo '* filter=mine' >.git/info/attributes", human: []string{"rm f2; git checkout -- f2"}},
	{name: "a new repository that executes", guest: `git init -q sub; printf '%s' "$EVIL" >sub/.git/config`, human: []string{"cd sub && git status"}},
	{name: "a copied repository that executes", guest: `cp -r .git sub.git; mkdir sub; mv sub.git sub/.git; printf '%s' "$EVIL" >sub/.git/config`, human: []string{"cd sub && git status"}},
	{name: "a directory renamed to .git", guest: layout + "mkdir sub; layout sub/g; mv sub/g sub/.git", human: []string{"cd sub && git status"}},
	{name: "a parent renamed meanwhile", guest: layout + "mkdir -p a/b; layout a/b/g; mv a c; mv c/b/g c/b/.git", human: []string{"cd c/b && git status"}},
	{name: "two directories exchanged", guest: layout + `mkdir sub; git init -q sub/x; layout sub/g; python3 - <<'P'
import ctypes
ctypes.CDLL(None).renameat2(-100,b"sub/g",-100,b"sub/x/.git",2)
P`, human: []string{"cd sub/x && git status"}},
	{name: ".git is a file", guest: layout + `layout "$PWD/e"; mkdir sub; echo "gitdir: $PWD/e" >sub/.git`, human: []string{"cd sub && git status"}},
	{name: ".git is a link", guest: layout + `layout "$PWD/e"; mkdir sub; ln -s ../e sub/.git`, human: []string{"cd sub && git status"}},
	{name: "a bare layout", guest: layout + `layout e; printf '\tworktree = ..\n' >>e/config`, human: []string{"cd e && git status"}},
	{name: "a hook of a repository of the human's", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/lib/.git/hooks/post-commit; chmod +x vendor/lib/.git/hooks/post-commit", human: []string{"cd vendor/lib; echo x >>lib.c; git commit -qam x"}},
	{name: "the configuration of a repository of the human's", guest: `printf '%s' "$EVIL" >vendor/lib/.git/config`, human: []string{"cd vendor/lib && git status"}},
	{name: "an index of a repository of the human's", guest: evilIndex + "cd vendor/lib; evil_index .git/hooks/post-index-change 100755", human: []string{"cd vendor/lib && git checkout -- .; git status"}},
	{name: "a link in a repository of the human's", guest: "cd vendor/lib; rm -f .git/COMMIT_EDITMSG; ln -s ~/.bashrc .git/COMMIT_EDITMSG", human: []string{"cd vendor/lib; echo x >>lib.c; git commit -qam 'a commit'"}},
	{name: "a link to the home", guest: "ln -s ~/.bashrc notes.txt", human: []string{"echo mine >>notes.txt"}},
	{name: "a relative link to the home", guest: "ln -s ../../.bashrc notes.txt", human: []string{"echo mine >>notes.txt"}},
	{name: "a link to a directory of the home", guest: "ln -s ~ build", human: []string{"mkdir -p build; echo mine >>build/.bashrc"}},
	{name: "a link that leads home after a rename", guest: "mkdir -p a/b/c; ln -s ../../../.bashrc a/b/c/n; mv a/b/c c", human: []string{"echo mine >>c/n"}},
	{name: "a link by way of /proc", guest: "ln -s /proc/self/cwd/../../.bashrc notes.txt", human: []string{"echo mine >>notes.txt"}},
	{name: "an editor's tasks", guest: "mkdir -p .vscode; echo '{}' >.vscode/tasks.json", there: ".vscode/tasks.json"},
	{name: "an environment on entering", guest: "echo x >.envrc", there: ".envrc"},
	{name: "Mercurial", guest: "mkdir -p .hg; printf '[hooks]\\npre-status = touch x\\n' >.hg/hgrc", there: ".hg/hgrc"},
	{name: "mise", guest: "echo x >.mise.toml", there: ".mise.toml"},
	{name: "Cargo", guest: "mkdir -p .cargo; echo x >.cargo/config.toml", there: ".cargo/config.toml"},
	{name: "Amp", guest: "mkdir -p .amp; echo x >.amp/settings.json", there: ".amp/settings.json"},
	{name: "Yarn", guest: "echo x >.yarnrc.yml", there: ".yarnrc.yml"},
	{name: "history behind a shallow mark", guest: "git rev-parse HEAD >.git/shallow", same: "git rev-list --count HEAD"},
	{name: "a replaced object", guest: "mkdir -p .git/refs/replace; a=$(git rev-parse HEAD:f2); b=$(echo evil | git hash-object -w --stdin); echo $b >.git/refs/replace/$a", same: "git cat-file -p HEAD:f2"},
	{name: "a graft", guest: "git rev-parse HEAD >.git/info/grafts", same: "git rev-list --count HEAD 2>/dev/null"},
	{name: "refs and logs removed", guest: "rm -rf .git/refs/heads .git/packed-refs .git/logs", same: "git rev-list --count main 2>&1"},
	{name: "the git directory removed", guest: "rm -rf .git", same: "git rev-list --count --all"},
	{name: "an object overwritten", guest: "a=$(git rev-parse HEAD:f2); f=.git/objects/${a:0:2}/${a:2}; b=$(echo evil | git hash-object -w --stdin); chmod u+w $f; cat .git/objects/${b:0:2}/${b:2} >$f", same: "git cat-file -p HEAD:f2 2>&1"},
	{name: "edits hidden by the index", guest: "git update-index --assume-unchanged f2; echo hidden >>f2", human: []string{"git diff --quiet && touch $MARK"}},
}

// TestPlants has each plant left by a guest. The control leaves it without a
// sandbox; by day every third has one.
func TestPlants(t *testing.T) {
	for i, p := range slices.Concat(plants, invented) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := newAccount(t)
			if !testenv.Short() || i%3 == 0 {
				if got := p.reaches(t, r, r.bare); len(got) == 0 {
					t.Fatal("control: without a sandbox it has no effect")
				}
				r = newAccount(t)
			}
			if got := p.reaches(t, r, r.session); len(got) > 0 {
				t.Errorf("a guest's plant takes effect: %q", got)
			}
		})
	}
}

// reaches plays a plant and says which effects it had.
func (p plant) reaches(t *testing.T, r *account, leave func(*testing.T, string)) []string {
	t.Helper()
	if p.before != "" {
		r.Run(t, "bash", "-c", p.before)
	}
	var before string
	if p.same != "" {
		before = r.Run(t, "bash", "-c", p.same).Out
	}
	leave(t, p.guest)
	if p.there != "" {
		if _, err := os.Lstat(filepath.Join(r.Work, p.there)); err == nil {
			return []string{p.there + " is there"}
		}
	}
	r.forget(t)
	list := append(r.works(t, p.human...), r.effects(t)...)
	if p.same != "" {
		if after := r.Run(t, "bash", "-c", p.same).Out; after != before {
			list = append(list, "was "+strings.TrimSpace(before)+", is "+strings.TrimSpace(after))
		}
	}
	return list
}

// forget removes what executed already while the plant was laid without a sandbox.
func (r *account) forget(t *testing.T) {
	t.Helper()
	testhome.Check(t, os.RemoveAll(r.marks))
	testhome.Check(t, os.Mkdir(r.marks, 0o777))
}
