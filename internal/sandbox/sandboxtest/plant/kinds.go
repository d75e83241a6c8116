package plant

// setup makes a repository of four commits with a worktree and a submodule, and
// beside it what plants are made of. What is planted runs with $OUT, which says
// where the canary is.
const setup = `set -e
git init -q -b main .; mkdir src kit e e/objects e/refs
printf '/kit\n/e\n/wt\n' >.gitignore
for i in 1 2 3; do echo "original $i" >src/f$i; git add src .gitignore; git commit -qm "$i"; done
git init -q -b main kit/up; git -C kit/up commit -q --allow-empty -m up
git -c protocol.file.allow=always submodule --quiet add ./kit/up sub; git commit -qm sub
git worktree add -q wt -b side
printf '#!/bin/sh\ntouch "$OUT/pwned"\n' >kit/evil; chmod 755 kit/evil
printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch $OUT/pwned; false"\n[alias]\n\tx = !touch $OUT/pwned\n' >kit/config
cp kit/config e/config; cp .git/HEAD kit/HEAD
git rev-parse HEAD >kit/head; git rev-parse HEAD:src/f2 >kit/f2
blob() { git -C kit/up hash-object -w --stdin; }
loose() { echo "kit/up/.git/objects/$(echo "$1" | cut -c1-2)/$(echo "$1" | cut -c3-)"; }
script=$(blob <kit/evil); other=$(echo evil | blob)
echo "$script" >kit/script; echo "$other" >kit/other; cp "$(loose "$script")" kit/script.o; cp "$(loose "$other")" kit/other.o
index() { P=$1 M=$2 ID=$script python3 -c '
import struct,hashlib,os,sys
p=os.environ["P"].encode(); e=struct.pack(">10I",0,0,0,0,0,0,int(os.environ["M"],8),0,0,0)+bytes.fromhex(os.environ["ID"])+struct.pack(">H",len(p))+p
e+=b"\0"*(8-len(e)%8); b=b"DIRC"+struct.pack(">II",2,1)+e; sys.stdout.buffer.write(b+hashlib.sha1(b).digest())'; }
index .git/hooks/post-index-change 100755 >kit/index; index ../victim 100644 >kit/outside`

// human is a script of a human's work in a repository after a session: look,
// continue a rebase, commit, restore, fetch and clean up. It then reports every
// change. On a pipe git would wait.
const human = `n=$(cat kit/head); f2=$(cat kit/f2)
g() { timeout 60 git -c filter.mine.smudge="touch '$OUT/pwned'; cat" "$@"; }
find .git b/HEAD \( -type p -o -type s \) -print -delete 2>/dev/null | grep -q . && touch "$OUT/pwned"
g status -s; for d in wt sub docs q b g2 g3; do [ -d $d ] && (cd $d && g status -s; g x); done
[ "$(git rev-list --count "$n")" = 4 ] || touch "$OUT/pwned"; g log --format=%h; g rebase --continue; g checkout-index -f -a; g checkout -- .; g restore .; g stash; g stash pop
rm -f src/f2; g checkout -- src/f2; [ ! -e src/f2 ] || grep -q original src/f2 || touch "$OUT/pwned"
echo more >>src/f1; g commit -qam "human"; g fetch -q; g worktree list; g reflog expire --expire=now --all; g gc -q --prune=now
rm -f .git/shallow .git/info/grafts; git rev-list --count "$n" | grep -qx 4 || touch "$OUT/pwned"; git rev-parse -q --verify main || touch "$OUT/pwned"
[ ! -e ../victim ] || touch "$OUT/pwned"; rm -f ../victim; grep -qx keep "$OUT/victim" && [ "$(wc -l <"$OUT/victim")" = 1 ] || touch "$OUT/pwned"`

// object puts an object into the repository's own.
const object = `o() { d=.git/objects/$(cut -c1-2 kit/$1); mkdir -p $d; cp kit/$1.o $d/$(cut -c3- kit/$1); }; o `

// Live are the plants in a git directory that is there.
var Live = map[string]string{
	"config":            `cat kit/config >>.git/config`,
	"config-replaced":   `cp kit/config c; mv -f c .git/config`,
	"config-worktree":   `printf '[extensions]\n\tworktreeConfig = true\n' >>.git/config; cp kit/config .git/config.worktree`,
	"hook":              `cp kit/evil .git/hooks/pre-commit`,
	"hooks-linked":      `rm -rf .git/hooks; mkdir h; cp kit/evil h/pre-commit; ln -s ../h .git/hooks`,
	"index":             object + `script; cp kit/index .git/index`,
	"index-outside":     object + `script; cp kit/outside .git/index`,
	"rebase":            `mkdir .git/rebase-merge; cd .git/rebase-merge; echo 'exec touch "$OUT/pwned"' >git-rebase-todo; : >interactive; : >done; cp ../../kit/head onto; cp onto orig-head; echo refs/heads/main >head-name; echo 1 >msgnum; echo 1 >end; cp onto ../HEAD`,
	"commondir":         `echo "$PWD/e" >.git/worktrees/wt/commondir`,
	"modules":           `cat kit/config >>.git/modules/sub/config`,
	"message-linked":    `rm -f .git/COMMIT_EDITMSG; ln -s "$OUT/victim" .git/COMMIT_EDITMSG`,
	"message-moved":     `ln -s "$OUT/victim" l; mv -f l .git/COMMIT_EDITMSG`,
	"message-fifo":      `rm -f .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG`,
	"fifo-moved":        `mkfifo p; mv -f p .git/COMMIT_EDITMSG`,
	"reflog-linked":     `rm -f .git/logs/HEAD; ln -s "$OUT/victim" .git/logs/HEAD`,
	"shallow":           `cp kit/head .git/shallow`,
	"grafts":            `cp kit/head .git/info/grafts`,
	"refs":              `rm -rf .git/refs/heads .git/packed-refs .git/logs; mkdir .git/refs/heads`,
	"replace":           object + `other; mkdir -p .git/refs/replace; cp kit/other .git/refs/replace/$(cat kit/f2)`,
	"object":            `f=.git/objects/$(cut -c1-2 kit/f2)/$(cut -c3- kit/f2); rm -f $f; cp kit/other.o $f`,
	"attributes":        `echo '* filter=mine' >.git/info/attributes`,
	"nested":            `mkdir -p .git/zz/r/.git/objects .git/zz/r/.git/refs; cp kit/HEAD .git/zz/r/.git; cp kit/config .git/zz/r/.git; ln -s .git/zz/r docs`,
	"nested-bare":       `mkdir -p .git/zz/objects .git/zz/refs; cp kit/HEAD kit/config .git/zz; ln -s .git/zz docs`,
	"replaced":          `rm -rf .git; mkdir -p .git/objects .git/refs; cp kit/HEAD kit/config .git`,
	"moved":             `mv .git g2; mkdir -p .git/objects .git/refs; cp kit/HEAD kit/config .git`,
	"moved-back":        `mv .git g2; cat kit/config >>g2/config; mv g2 .git`,
	"worktree-gitfile":  `mkdir -p .git/zz/objects .git/zz/refs; cp kit/HEAD kit/config .git/zz; rm -f wt/.git; echo "gitdir: $PWD/.git/zz" >wt/.git`,
	"submodule-gitfile": `mkdir -p .git/zz/objects .git/zz/refs; cp kit/HEAD kit/config .git/zz; echo "gitdir: ../.git/zz" >sub/.git`,
}

// Made are the plants for which a guest makes a git directory of its own, or what
// leads to one.
var Made = map[string]string{
	"made":         `mkdir -p q/.git/objects q/.git/refs; cp kit/HEAD kit/config q/.git`,
	"made-copied":  `mkdir -p n/objects n/refs; cp kit/config n; mkdir q; cp -r n q/.git; cp kit/HEAD q/.git`,
	"made-moved":   `mkdir -p n/objects n/refs q; cp kit/config n; mv n q/.git; cp kit/HEAD q/.git`,
	"made-above":   `mkdir -p n/.git/objects n/.git/refs; cp kit/HEAD kit/config n/.git; mv n q`,
	"made-link":    `mkdir -p n/objects n/refs q; cp kit/HEAD kit/config n; ln -s ../n q/.git`,
	"made-gitfile": `mkdir -p n/objects n/refs q; cp kit/HEAD kit/config n; echo 'gitdir: ../n' >q/.git`,
	"made-renamed": `mkdir -p n/objects n/refs q; cp kit/HEAD kit/config n; echo 'gitdir: ../n' >g; mv g q/.git`,
	"made-linked":  `mkdir -p n/objects n/refs q; cp kit/HEAD kit/config n; echo 'gitdir: ../n' >g; ln g q/.git`,
	"bare":         `mkdir -p b/objects b/refs; cp kit/HEAD kit/config b`,
	"bare-last":    `mkdir -p b/refs; cp kit/HEAD kit/config b; mkdir b/objects`,
	"bare-moved":   `mkdir -p n/objects n/refs b; cp kit/HEAD kit/config b; mv n/objects n/refs b`,
	"bare-common":  `mkdir b; cp kit/HEAD b; echo ../e >b/commondir`,
	"fifo-head":    `mkdir -p b/objects b/refs; mkfifo b/HEAD; mkfifo b/x; mv b/x b/HEAD; ln b/x b/HEAD`,
}
