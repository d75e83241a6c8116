package human_test

// lay makes commits by hand: tree FILE... of lines "MODE TYPE ID<tab>NAME" from
// standard input, and land puts such a tree on the branch as a commit, with the index.
const lay = `
blob() { printf "$1" | git hash-object -w --stdin; }
me="-c user.name=x -c user.email=x@y"
land() { git $me update-ref HEAD $(git $me commit-tree -p HEAD -m "$1" $2) && git read-tree HEAD; }
with() { { git ls-tree HEAD; cat; } | git mktree; }
`

// worktree is one of the human's that lies in the project.
const worktree = "git worktree add -q trees/wt fix"

// invented are plants of a second kind: what is published, and what lies beside it.
var invented = []plant{
	// What the human's git reads beside refs and objects.
	{name: "a commit graph", guest: "git commit-graph write --reachable; chmod u+w .git/objects/info/commit-graph; printf 'XXXXXXXXXXXXXXXX' | dd of=.git/objects/info/commit-graph bs=1 seek=200 conv=notrunc 2>/dev/null", same: "git log --format=%H%P%T main 2>&1; git commit-graph verify 2>&1"},
	{name: "a multi-pack index", guest: "git repack -adq; git multi-pack-index write; chmod u+w .git/objects/pack/multi-pack-index; printf 'XXXXXXXXXXXXXXXXXXXXXXXX' | dd of=.git/objects/pack/multi-pack-index bs=1 seek=1200 conv=notrunc 2>/dev/null", same: "git multi-pack-index verify 2>&1; git rev-list --objects --count --all 2>&1"},
	{name: "a bitmap", guest: "git repack -adbq; f=$(ls .git/objects/pack/*.bitmap); chmod u+w $f; printf 'XXXXXXXX' | dd of=$f bs=1 seek=60 conv=notrunc 2>/dev/null", same: "git rev-list --objects --use-bitmap-index --count --all 2>&1"},
	{name: "objects of elsewhere", guest: "mkdir -p .git/objects/info x; echo $PWD/x >.git/objects/info/alternates", same: "git count-objects -v | grep alternate"},
	{name: "peeled lines that lie", guest: "git -c user.name=x -c user.email=x@y tag -am t t; git pack-refs --all; sed -i \"s/^^.*/^$(git rev-parse HEAD:f2)/\" .git/packed-refs", same: "git show-ref -d | grep '{}' | grep -v $(git rev-parse HEAD)"},
	{name: "what is ignored", guest: "mkdir -p .git/info; echo '*' >.git/info/exclude", same: "touch mine; git status --porcelain mine; rm mine"},
	{name: "a sparse work tree", guest: "git config core.sparseCheckout true; mkdir -p .git/info; echo /f1 >.git/info/sparse-checkout", same: "git read-tree -mu HEAD; ls f2 f3 2>&1"},
	{name: "entries to skip", guest: "git config core.sparseCheckout true; git update-index --skip-worktree f2; echo hidden >>f2; git config sparse.expectFilesOutsideOfPatterns true", human: []string{"git diff --quiet && touch $MARK"}},
	{name: "a recorded resolution", guest: `mkdir .git/rr-cache; git checkout -q -b left HEAD; echo left >f1; git -c user.name=x -c user.email=x@y commit -qam left; git checkout -q -b right HEAD~1; echo right >f1; git -c user.name=x -c user.email=x@y commit -qam right; git -c user.name=x -c user.email=x@y merge left; echo evil >f1; git add f1; git -c user.name=x -c user.email=x@y commit -qm m; git checkout -q main; git branch -qD left right`,
		same: `git checkout -q -B l main; echo left >f1; git commit -qam left; git checkout -q -B r main; echo right >f1; git commit -qam right; git merge l >/dev/null 2>&1; cat f1 | sed 's/>>>>>>>.*//'; git merge --abort; git checkout -q main; git branch -qD l r`},
	{name: "a monitor's answer", guest: "git config core.fsmonitor true; printf '#!/bin/sh\\nprintf \"t\\\\0\"\\n' >.git/fsm; chmod +x .git/fsm; git config core.fsmonitor .git/fsm; git update-index --fsmonitor; git update-index --fsmonitor-valid f2; git status; echo hidden >>f2", human: []string{"git diff --quiet && touch $MARK"}},
	{name: "a split index", guest: "git update-index --split-index; echo 3 >f9; git add f9; rm -f .git/sharedindex.*", same: "git ls-files f1 f2 f3 2>&1"},

	// Configuration that names programs.
	{name: "a program that signs", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >.git/sign; chmod +x .git/sign; git config gpg.program $PWD/.git/sign; git config commit.gpgSign true", human: []string{commit}},
	{name: "a remote that executes", guest: "git config protocol.ext.allow always; git remote set-url origin \"ext::touch $MARK\"", human: []string{"git fetch -q origin; git fetch -q"}},
	{name: "the other end of a remote", guest: "git config remote.origin.uploadpack \"touch $MARK; git-upload-pack\"; git config remote.origin.receivepack \"touch $MARK; git-receive-pack\"", human: []string{"git fetch -q origin; git push -q origin main"}},
	{name: "a credential helper", guest: "git config credential.helper \"!touch $MARK; :\"; git remote set-url origin http://127.0.0.1:9/x", human: []string{"printf 'protocol=http\\nhost=x\\n\\n' | git credential fill </dev/stdin; git fetch -q origin"}},
	{name: "the update of a submodule", guest: `printf '[submodule "s"]\n\tpath = s\n\turl = ./vendor/lib\n' >.gitmodules; git add .gitmodules; git update-index --add --cacheinfo 160000,$(git -C vendor/lib rev-parse HEAD),s; git -c user.name=x -c user.email=x@y commit -qm s; git config submodule.s.url $PWD/vendor/lib; git config submodule.s.update "!touch $MARK; :"`, human: []string{"git -c protocol.file.allow=always submodule update --init"}},
	{name: "the git directory of a submodule", guest: layout + `layout .git/modules/s; printf '\tworktree = ../../../s\n' >>.git/modules/s/config; mkdir s; echo 'gitdir: ../.git/modules/s' >s/.git`, human: []string{"cd s && git status"}},
	{name: "a submodule that executes", guest: `git -c protocol.file.allow=always submodule --quiet add $PWD/vendor/lib s; me="-c user.name=x -c user.email=x@y"; git -C s $me commit -q --allow-empty -m s; git add s; git $me commit -qm s; printf '%s' "$EVIL" >>.git/modules/s/config; printf '#!/bin/sh\ntouch "%s"\n' "$MARK" >.git/modules/s/hooks/post-commit; chmod +x .git/modules/s/hooks/post-commit`, human: []string{"cd s && git log -1 && git status && git commit -q --allow-empty -m mine", "git status; git submodule update --init"}},
	{name: "a submodule among the hooks", guest: `git -c protocol.file.allow=always clone -q --separate-git-dir .git/hooks/zz vendor/lib s; rm s/.git; echo 'gitdir: ../.git/hooks/zz' >s/.git; git -C s -c user.name=x -c user.email=x@y commit -q --allow-empty -m s; printf '%s' "$EVIL" >>.git/hooks/zz/config`, human: []string{"cd s && git status; git commit -q --allow-empty -m mine"}},
	{name: "a merge driver", guest: "git config merge.x.driver \"touch $MARK; true\"; echo '* merge=x' >.gitattributes", human: []string{"git checkout -q -b l; echo l >f1; git commit -qam l; git checkout -q main; echo m >f1; git commit -qam m; git merge l"}},
	{name: "a diff driver", guest: "git config diff.x.textconv \"touch $MARK; cat\"; echo '* diff=x' >.gitattributes; echo x >>f1", human: []string{"git diff; git log -p -1"}},
	{name: "another worktree's configuration", guest: "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = \"touch %s; false\"\\n' \"$MARK\" >.git/config.worktree", human: []string{"git status"}},

	// Names.
	{name: "a branch that a prompt executes", guest: `git checkout -q -b 'a$(touch${IFS}$MARK)'`, human: []string{`eval "PS1=\"$(git symbolic-ref --short HEAD)\""; true`}},
	{name: "a branch in backquotes", guest: "git checkout -q -b 'a`touch${IFS}$MARK`'", human: []string{`eval "PS1=\"$(git symbolic-ref --short HEAD)\""; true`}},
	{name: "a tag that ends a command", guest: "git tag 'v1;touch${IFS}$MARK'", human: []string{`for t in $(git tag); do sh -c "echo $t"; done`}},
	{name: "a note's ref that executes", guest: "git -c user.name=x -c user.email=x@y notes --ref='x|touch${IFS}$MARK' add -m n HEAD", human: []string{`for r in $(git for-each-ref --format='%(refname)'); do sh -c "echo $r"; done`}},
	{name: "a branch that is an option", guest: "git update-ref refs/heads/--output=.bashrc HEAD; git update-ref refs/heads/--exec=x HEAD", same: "git for-each-ref --format='%(refname)' | grep -v ^refs/bawn/.*/refused/"},
	{name: "a branch called HEAD", guest: "git update-ref refs/heads/HEAD HEAD~1; git update-ref refs/tags/main HEAD~1", same: "git rev-parse HEAD main 2>&1"},
	{name: "a branch that leads to another", guest: "git symbolic-ref refs/heads/main refs/heads/fix", same: "git symbolic-ref -q refs/heads/main; git rev-parse main"},
	{name: "a .GIT", guest: layout + "mkdir sub; layout sub/.GIT", there: "sub/.GIT/config"},
	{name: "a short name of .git", guest: layout + "mkdir sub; layout sub/git~1", there: "sub/git~1/config"},
	{name: "a .git with a mark that is not seen", guest: layout + "mkdir sub; layout $'sub/.g\\u200cit'", there: "sub/.g\u200cit/config"},

	// What commits hold.
	{name: "a commit with a .git that is not seen", guest: lay + `t=$(printf '100644 blob %s\tconfig\n' $(blob "$EVIL") | git mktree); s=$(printf "040000 tree %s\t.gi\xe2\x80\x8ct\n" $t | git mktree); land c $(printf '040000 tree %s\tsub\n' $s | with)`, human: []string{"git checkout -- .; ls -d sub/.g* && touch $MARK"}},
	{name: "a commit of a repository in three parts", guest: lay + `o=$(printf '100644 blob %s\tx\n' $(blob x) | git mktree); e=$(printf '100644 blob %s\tHEAD\n100644 blob %s\tconfig\n040000 tree %s\tobjects\n040000 tree %s\trefs\n' $(blob 'ref: refs/heads/main\n') $(blob "$EVIL\tworktree = ..\n") $o $o | git mktree); land c $(printf '040000 tree %s\te\n' $e | with)`, human: []string{"git checkout -- .; cd e && git status"}},
	{name: "a repository half of which is committed", guest: lay + `mkdir e; printf '%s\tworktree = ..\n' "$EVIL" >e/config; echo 'ref: refs/heads/main' >e/HEAD; git add e; git $me commit -qm c; sleep 1; rm e/HEAD; mkdir -p e/objects e/refs`, human: []string{"git checkout -- .; cd e && git status"}},
	{name: "the other half", guest: lay + `mkdir -p e/objects e/refs; touch e/objects/x e/refs/x; git add e; git $me commit -qm c; sleep 1; rm -r e/objects e/refs; printf '%s\tworktree = ..\n' "$EVIL" >e/config; echo 'ref: refs/heads/main' >e/HEAD`, human: []string{"git checkout -- .; cd e && git status"}},
	{name: "half a repository in a stash", guest: lay + `mkdir e; printf '%s\tworktree = ..\n' "$EVIL" >e/config; echo 'ref: refs/heads/main' >e/HEAD; git add e; git $me stash -q; sleep 1; mkdir -p e/objects e/refs; printf '%s\tworktree = ..\n' "$EVIL" >e/config; git rm -q --cached -r e`, human: []string{"rm -f e/config; git stash pop; cd e && git status"}},
	{name: "a file in place of a repository", guest: lay + `land c $(printf '100644 blob %s\tvendor\n' $(blob x) | with)`, human: []string{"git checkout -- .", "git reset -q --hard"}, same: "git -C vendor/lib rev-list --count HEAD 2>&1"},
	{name: "a link in place of a repository", guest: lay + `v=$(printf '120000 blob %s\tlib\n' $(blob ../src) | git mktree); land c $(printf '040000 tree %s\tvendor\n' $v | with)`, human: []string{"git checkout -- .", "git reset -q --hard"}, same: "git -C vendor/lib rev-list --count HEAD 2>&1 | grep -v '^5'"},
	{name: "a branch with a file in place of a repository", guest: lay + `git update-ref refs/heads/new $(git $me commit-tree -p HEAD -m c $(printf '100644 blob %s\tvendor\n' $(blob x) | with))`, human: []string{"git checkout -q new"}, same: "git -C vendor/lib rev-list --count HEAD 2>&1"},
	{name: "a stash with an editor's tasks", guest: lay + `mkdir v; echo '{}' >v/tasks.json; b=$(git hash-object -w v/tasks.json); rm -r v; t=$(printf '100644 blob %s\ttasks.json\n' $b | git mktree); u=$(git $me commit-tree -m u $(printf '040000 tree %s\t.vscode\n' $t | git mktree)); i=$(git $me commit-tree -p HEAD -m i HEAD^{tree}); w=$(git $me commit-tree -p HEAD -p $i -p $u -m w HEAD^{tree}); git stash store -m w $w`, human: []string{"git stash pop; test -e .vscode/tasks.json && touch $MARK"}},
	{name: "a tag of a tree with an environment", guest: lay + `git tag t $(printf '100644 blob %s\t.envrc\n' $(blob x) | git mktree)`, human: []string{"git checkout t -- .; test -e .envrc && touch $MARK"}},
	{name: "a link called .vscode", guest: lay + `mkdir cfg; echo '{}' >cfg/tasks.json; git add cfg; t=$(git write-tree); git read-tree $t; git update-index --add --cacheinfo 120000,$(blob cfg),.vscode; git $me commit -qm c`, human: []string{"git checkout -- .; test -e .vscode/tasks.json && touch $MARK"}},
	{name: "an environment that is only staged", guest: lay + `git update-index --add --cacheinfo 100644,$(blob x),.envrc`, human: []string{"git checkout -- .; test -e .envrc && touch $MARK"}},

	// Repositories of the human's beside the session's own.
	{name: "hooks in the work tree of a repository of the human's", before: "mkdir vendor/lib/.githooks; git -C vendor/lib config core.hooksPath .githooks", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/lib/.githooks/post-commit; chmod +x vendor/lib/.githooks/post-commit", human: []string{"cd vendor/lib; echo x >>lib.c; git commit -qam x"}},
	{name: "hooks that are not there yet", before: "git -C vendor/lib config core.hooksPath ../hooks", guest: "mkdir vendor/hooks; printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/hooks/post-commit; chmod +x vendor/hooks/post-commit", human: []string{"cd vendor/lib; echo x >>lib.c; git commit -qam x"}},
	{name: "a repository with another name", before: "git -C vendor/lib config core.hooksPath hooks", guest: "mv vendor/lib vendor/new; mkdir vendor/new/hooks; printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/new/hooks/post-commit; chmod +x vendor/new/hooks/post-commit", human: []string{"cd vendor/new; echo x >>lib.c; git commit -qam x"}},
	{name: "a link among the hooks of a repository of the human's", before: "mkdir vendor/lib/dev; echo '#!/bin/sh' >vendor/lib/dev/pc; chmod +x vendor/lib/dev/pc; ln -s ../../dev/pc vendor/lib/.git/hooks/post-commit", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/lib/dev/pc", human: []string{"cd vendor/lib; echo x >>lib.c; git commit -qam x"}},
	{name: "a repository moved to other hooks", before: "mkdir vendor/hooks; git -C vendor/lib config core.hooksPath ../hooks", guest: "mkdir -p w/hooks; printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >w/hooks/post-commit; chmod +x w/hooks/post-commit; mv vendor/lib w/lib", human: []string{"cd w/lib; echo x >>lib.c; git commit -qam x"}},
	{name: "what a repository of the human's includes", before: "touch vendor/lib/dev.cfg; git -C vendor/lib config include.path ../dev.cfg", guest: `printf '%s' "$EVIL" >vendor/lib/dev.cfg`, human: []string{"cd vendor/lib; git status"}},
	{name: "a monitor of a repository of the human's", before: "printf '#!/bin/sh\\n' >vendor/lib/fsm; chmod +x vendor/lib/fsm; git -C vendor/lib config core.fsmonitor ./fsm", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >vendor/lib/fsm", human: []string{"cd vendor/lib; git status"}},
	{name: "what an included file includes", before: "printf '[include]\\n\\tpath = more.cfg\\n' >dev.cfg; touch more.cfg; git config include.path ../dev.cfg", guest: `printf '%s' "$EVIL" >more.cfg`, human: []string{"git status"}},
	{name: "hooks of the session's own repository", before: "mkdir .githooks; git config core.hooksPath .githooks", guest: "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$MARK\" >.githooks/post-commit; chmod +x .githooks/post-commit", human: []string{commit}},
	{name: "what a worktree of the human's shares", before: worktree, guest: layout + `layout "$PWD/e"; echo "$PWD/e" >.git/worktrees/wt/commondir`, human: []string{"cd trees/wt && git status"}},
	{name: "the configuration of a worktree of the human's", before: worktree + "; git config extensions.worktreeConfig true", guest: `printf '%s' "$EVIL" >.git/worktrees/wt/config.worktree`, human: []string{"cd trees/wt && git status"}},
	{name: "a rebase half done in a worktree of the human's", before: worktree, guest: `d=.git/worktrees/wt/rebase-merge; mkdir $d; echo "exec touch $MARK" >$d/git-rebase-todo; : >$d/interactive; : >$d/done; git rev-parse fix >$d/onto; cp $d/onto $d/orig-head; echo refs/heads/fix >$d/head-name; echo 1 >$d/msgnum; echo 1 >$d/end; git -C trees/wt checkout -q --detach`, human: []string{"cd trees/wt; git checkout -q --detach; git rebase --continue"}},
	{name: "a commit in a worktree of the human's", before: worktree, guest: lay + `cd trees/wt; land c $(printf '100644 blob %s\t.envrc\n' $(blob x) | with)`, human: []string{"cd trees/wt; git checkout -- .; test -e .envrc && touch $MARK"}},
	{name: "a merge that the human has open", before: "git checkout -q -b l fix; echo l >f1; git commit -qam l; git checkout -q main; echo m >f1; git commit -qam m; git merge l", guest: lay + `git checkout -q --theirs f1; git add f1; git update-index --add --cacheinfo 100644,$(blob x),.envrc; git $me commit -qm merged`, human: []string{"git checkout -- .; test -e .envrc && touch $MARK"}},
	{name: "a repository that the human keeps", guest: `git init -q sub; cd sub; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; git remote add origin "ext::touch $MARK"; git config protocol.ext.allow always; git config remote.origin.vcs x; git config commit.gpgSign true; git config gpg.program "touch $MARK"; git config core.fsmonitor "touch $MARK; false"; git config core.hooksPath h; mkdir h; printf '#!/bin/sh\ntouch "%s"\n' "$MARK" >h/post-commit; chmod +x h/post-commit; git config branch.main.remote "ext::touch $MARK"`,
		human: []string{"bawn git keep sub; cd sub && git status; git fetch; git commit --allow-empty -m x"}},
}
