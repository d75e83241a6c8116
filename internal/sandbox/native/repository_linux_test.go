package native

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// An ambush is a way to get a host's program to execute what a guest wrote.
// victim is what the human does afterwards, bare, in the workspace.
type ambush struct{ setup, attack, victim string }

// gitNow makes git the same on every machine.
const gitNow = `export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
plant() { printf '#!/bin/sh\ntouch "$OUT/pwned"\n' >"$1"; chmod +x "$1"; }
evil() { plant evil.sh; printf '[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfsmonitor = %s/evil.sh\n[alias]\n\tx = !touch $OUT/pwned\n' "$PWD" >"$1"; }
exchange() { python3 -c 'import ctypes,sys;ctypes.CDLL(None).renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2)' "$1" "$2"; }
`

const (
	bareParts   = `mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' >b/HEAD; `
	useBare     = `cd b && git x`
	separate    = `git init -q -b main --separate-git-dir store . && git commit -q --allow-empty -m one`
	dotBare     = `git init -q -b main tmp && git -C tmp commit -q --allow-empty -m one && git clone -q --bare tmp .bare && rm -rf tmp && echo 'gitdir: ./.bare' >.git && git worktree add -q main main`
	commitEmpty = `git commit -q --allow-empty -m two`
)

var ambushes = map[string]ambush{
	// Bare repositories, made by the guest, piece by piece in every order.
	"bare: config last":        {``, bareParts + `evil b/config`, useBare},
	"bare: HEAD last":          {``, `mkdir -p b/objects b/refs; evil b/config; echo 'ref: refs/heads/main' >b/HEAD`, useBare},
	"bare: HEAD renamed":       {``, `mkdir -p b/objects b/refs; evil b/config; echo 'ref: refs/heads/main' >b/h; mv b/h b/HEAD`, useBare},
	"bare: HEAD linked":        {``, `mkdir -p b/objects b/refs; evil b/config; echo 'ref: refs/heads/main' >b/h; ln b/h b/HEAD`, useBare},
	"bare: HEAD a link":        {``, `mkdir -p b/objects b/refs; evil b/config; ln -s refs/heads/main b/HEAD`, useBare},
	"bare: HEAD exchanged":     {``, `mkdir -p b/objects b/refs; evil b/config; mkfifo b/HEAD; echo 'ref: refs/heads/main' >b/h; exchange b/h b/HEAD`, useBare},
	"bare: HEAD over a FIFO":   {``, `mkdir -p b/objects b/refs; evil b/config; mkfifo b/HEAD; echo 'ref: refs/heads/main' >b/h; mv b/h b/HEAD`, useBare},
	"bare: objects last":       {``, `mkdir -p b/refs; echo 'ref: refs/heads/main' >b/HEAD; evil b/config; mkdir b/objects`, useBare},
	"bare: config renamed":     {``, bareParts + `evil b/c; mv b/c b/config`, useBare},
	"bare: config exchanged":   {``, bareParts + `evil b/c; printf '[core]\n\tbare = true\n' >b/config.lock; mv b/config.lock b/config; exchange b/c b/config`, useBare},
	"bare: config linked":      {``, bareParts + `evil b/c; ln b/c b/config`, useBare},
	"bare: config a link":      {``, bareParts + `evil b/c; ln -s c b/config`, useBare},
	"bare: config held open":   {``, `mkdir -p b/objects b/refs; printf '[core]\n\tbare = true\n' >b/config; exec 9>>b/config; echo 'ref: refs/heads/main' >b/HEAD; evil c; cat c >&9`, useBare},
	"bare: config by an alias": {``, `mkdir -p b/objects b/refs; printf '[core]\n\tbare = true\n' >b/config; ln b/config alias; echo 'ref: refs/heads/main' >b/HEAD; evil c; cat c >alias`, useBare},
	"bare: lock held open":     {``, bareParts + `printf '[core]\n\tbare = true\n' >b/config.lock; exec 9>>b/config.lock; mv b/config.lock b/config; evil c; cat c >&9`, useBare},
	"bare: commondir":          {``, `mkdir -p e/objects e/refs b; evil e/config; echo ../e >b/commondir; echo 'ref: refs/heads/main' >b/HEAD`, useBare},
	"bare: commondir last":     {``, `mkdir -p e/objects e/refs b; evil e/config; echo 'ref: refs/heads/main' >b/HEAD; echo ../e >b/commondir`, useBare},
	"bare: a hook":             {``, `git init -q --bare b; plant b/hooks/pre-receive`, `git init -q w && git -C w ` + commitEmpty[4:] + ` && git -C w push -q ../b HEAD:x`},
	"bare: a hook first":       {``, `mkdir -p b/hooks; plant b/hooks/pre-receive; git init -q --bare b`, `git init -q w && git -C w ` + commitEmpty[4:] + ` && git -C w push -q ../b HEAD:x`},
	"bare: hooks a link":       {``, `git init -q --bare b; mkdir h; plant h/pre-receive; rm -rf b/hooks; ln -s ../h b/hooks`, `git init -q w && git -C w ` + commitEmpty[4:] + ` && git -C w push -q ../b HEAD:x`},
	"bare: own one, undone":    {``, `git init -q --bare b; rm b/HEAD; evil b/config; echo 'ref: refs/heads/main' >b/HEAD`, useBare},
	"bare: the workspace":      {``, `mkdir objects refs; echo 'ref: refs/heads/main' >HEAD; evil config`, `git x`},
	"bare: beside .git":        {`git init -q . && mkdir objects refs && echo 'ref: refs/heads/main' >HEAD`, `rm -f .git/HEAD; rm -rf .git/refs; mv .git/objects gone; evil config`, `rm -f .git/HEAD; git x`},
	"bare: moved into place":   {``, `mkdir -p c/objects c/refs; echo 'ref: refs/heads/main' >c/HEAD; mkdir c/sub; evil c/sub/config; mv c/sub/config c/config; mv c b`, useBare},
	"bare: in git's data":      {`git init -q .`, `mkdir -p .git/objects/b/objects .git/objects/b/refs; evil .git/objects/b/config; echo 'ref: refs/heads/main' >.git/objects/b/HEAD`, `cd .git/objects/b && git x`},
	"bare: of the host":        {`git init -q --bare b`, `evil b/config; evil c; mv c b/config; rm -f b/config; evil b/config; git -C b config alias.x '!touch $OUT/pwned'`, useBare},
	"bare: of the host, HEAD":  {`git init -q --bare b`, `mv b/HEAD h; rm -f b/HEAD; evil b/config; evil c; mv c b/config; mv h b/HEAD`, useBare},
	"bare: in other letters":   {``, bareParts + `evil b/CONFIG; mv b/CONFIG b/config`, useBare},
	"bare: in refs":            {`git init -q .`, inRefs(".git/refs/x"), `cd .git/refs/x && git x`},
	"bare: in refs, in order":  {`git init -q .`, `mkdir -p .git/refs/x/objects; echo 'ref: refs/heads/main' >.git/refs/x/HEAD; evil .git/refs/x/config; mkdir .git/refs/x/refs`, `cd .git/refs/x && git x`},
	"bare: out of refs":        {``, `git init -q --bare h; ` + inRefs("h/refs/x") + `; mv h/refs/x b`, useBare},
	"bare: out of objects":     {``, `git init -q --bare h; ` + inRefs("h/objects/x") + `; mv h/objects/x b`, useBare},
	"bare: refs left alone":    {``, `git init -q --bare h; ` + inRefs("h/logs/x") + `; rm h/HEAD`, `cd h/logs/x && git x`},
	// Git directories of another name.
	"separate: hook":          {separate, `plant store/hooks/pre-commit`, commitEmpty},
	"separate: config":        {separate, `evil c; cat c >>store/config`, `git x`},
	"separate: config.lock":   {separate, `git config alias.x '!touch $OUT/pwned'`, `git x`},
	"separate: renamed":       {separate, `mv store s; plant s/hooks/pre-commit; mv s store`, commitEmpty},
	"separate: replaced":      {separate, `cp -r store s; plant s/hooks/pre-commit; exchange s store`, commitEmpty},
	"separate: .git replaced": {separate, `mkdir -p e/objects e/refs; cp store/HEAD e; evil e/config; rm .git; echo 'gitdir: e' >.git; rm .git; ln -s e .git; mv e .git`, `git x`},
	"separate: nested":        {`git init -q --separate-git-dir store sub`, `plant store/hooks/pre-commit`, `cd sub && ` + commitEmpty},
	"dotbare: hook":           {dotBare, `plant .bare/hooks/pre-commit`, `cd main && ` + commitEmpty},
	"dotbare: config":         {dotBare, `cd main; git config alias.x '!touch $OUT/pwned'`, `cd main && git x`},
	"dotbare: commondir":      {dotBare, `mkdir -p e/objects e/refs; evil e/config; echo ../../../e >.bare/worktrees/main/commondir; rm .bare/worktrees/main/commondir; echo ../../../e >.bare/worktrees/main/commondir`, `cd main && git x`},
	"dotbare: new worktree":   {dotBare, `mkdir -p .bare/worktrees/e; cp .bare/HEAD .bare/worktrees/e; mkdir -p f/objects f/refs wt; evil f/config; echo "$PWD/f" >.bare/worktrees/e/commondir; echo "$PWD/wt/.git" >.bare/worktrees/e/gitdir; echo "gitdir: $PWD/.bare/worktrees/e" >wt/.git`, `cd wt && git x`},
	".git a link":             {`git init -q . && mv .git repo && ln -s repo .git`, `plant repo/hooks/pre-commit; rm .git; mv repo r2; mkdir repo; cp -r r2/* repo; plant repo/hooks/pre-commit; ln -s repo .git`, commitEmpty},
	// Protected names that are links, and what a configuration names.
	"link: .envrc":             {`mkdir env; echo >env/dev; ln -s env/dev .envrc`, `plant env/dev`, `sh ./.envrc`},
	"link: through it":         {`mkdir env; echo >env/dev; ln -s env/dev .envrc`, `cat >.envrc <<E` + "\n" + `touch $OUT/pwned` + "\nE", `sh ./.envrc`},
	"link: renamed over":       {`mkdir env; echo >env/dev; ln -s env/dev .envrc`, `plant x; mv -f x env/dev; plant y; exchange y env/dev`, `sh ./.envrc`},
	"link: its directory":      {`mkdir env; echo >env/dev; ln -s env/dev .envrc`, `mv env e2; mkdir env; plant env/dev`, `sh ./.envrc`},
	"link: to nothing":         {`ln -s env/dev .envrc`, `mkdir env; plant env/dev`, `sh ./.envrc`},
	"link: to nothing, a link": {`ln -s env/dev .envrc`, `mkdir e2; plant e2/dev; ln -s e2 env; mv e2 env`, `sh ./.envrc`},
	"link: in between":         {`mkdir a b; echo >a/dev; plant b/dev; ln -s a env; ln -s env/dev .envrc`, `ln -sfn b env; rm -f env; ln -s b env`, `sh ./.envrc`},
	"link: a chain":            {`echo >b; ln -s b a; ln -s a .envrc`, `plant x; ln -sf x a; rm a; ln -s x a`, `sh ./.envrc`},
	"link: hard":               {`mkdir env; echo >env/dev; ln -s env/dev .envrc`, `ln env/dev x; plant x`, `sh ./.envrc`},
	"link: a directory":        {`mkdir -p t/vs; ln -s t/vs .vscode`, `plant t/vs/tasks`, `sh .vscode/tasks`},
	"link: .koda":              {`mkdir -p t/koda/agents; ln -s t/koda .koda`, `plant t/koda/agents/x`, `sh .koda/agents/x`},
	"link: .koda, absent":      {`mkdir -p t/koda; ln -s t/koda .koda`, `mkdir t/koda/agents; plant t/koda/agents/x`, `sh .koda/agents/x`},
	"link: hooks":              {`git init -q . && rm -r .git/hooks && mkdir gh && ln -s ../gh .git/hooks`, `plant gh/pre-commit`, commitEmpty},
	"link: one hook":           {`git init -q . && mkdir gh && echo >gh/pc && chmod +x gh/pc && ln -s ../../gh/pc .git/hooks/pre-commit`, `plant gh/pc`, commitEmpty},
	"link: a nested one":       {`mkdir -p s/t; ln -s t s/.vscode`, `plant s/.vscode/tasks`, `sh s/.vscode/tasks`},
	"hooksPath":                {`git init -q . && mkdir dev && git config core.hooksPath dev`, `plant dev/pre-commit`, commitEmpty},
	"hooksPath: absent":        {`git init -q . && git config core.hooksPath dev/hooks`, `mkdir -p dev/hooks; plant dev/hooks/pre-commit`, commitEmpty},
	"hooksPath: above":         {`git init -q . && mkdir -p dev/hooks && git config core.hooksPath dev/hooks`, `mv dev d2; mkdir -p dev/hooks; plant dev/hooks/pre-commit`, commitEmpty},
	"hooksPath: a link":        {`git init -q . && mkdir -p a && ln -s a dev && git config core.hooksPath dev`, `plant a/pre-commit; mkdir b; plant b/pre-commit; ln -sfn b dev`, commitEmpty},
	"hooksPath: separate":      {separate + ` && mkdir dev && git config core.hooksPath dev`, `plant dev/pre-commit`, commitEmpty},
	"include":                  {`git init -q . && git config include.path ../team.cfg`, `evil team.cfg`, `git x`},
	"a program":                {`git init -q . && mkdir tools && echo >tools/fs && chmod +x tools/fs && git config core.fsmonitor tools/fs`, `plant tools/fs`, `git status`},
	"an alias":                 {`git init -q . && echo >x.sh && git config alias.x '!sh "x.sh" -v'`, `plant x.sh`, `git x`},
}

// inRefs makes a whole repository in dir.
func inRefs(dir string) string {
	return `mkdir -p ` + dir + `/objects ` + dir + `/refs; evil ` + dir + `/config; echo 'ref: refs/heads/main' >` + dir + `/HEAD`
}

// TestAmbushes plants in a session what git or a shell executes on the host
// later. The control is the same without one. Where testenv.Short says so, root
// tries every third.
func TestAmbushes(t *testing.T) {
	testenv.Need(t, "userns", "notify", "python3", "git")
	for i, name := range slices.Sorted(maps.Keys(ambushes)) {
		if testenv.Short() && os.Geteuid() == 0 && i%3 != 0 {
			continue
		}
		a := ambushes[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, inside := range []bool{false, true} {
				if got := a.try(t, inside, New("")); got == inside {
					t.Errorf("inside %v: executed %v", inside, got)
				}
			}
		})
	}
}

// TestAmbushesOnTheNextRung tries them where no mount helps the supervisor.
func TestAmbushesOnTheNextRung(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "landlock", "notify", "python3", "git")
	for name, a := range ambushes {
		t.Run(name, func(t *testing.T) {
			if a.try(t, true, NewLandlock("")) {
				t.Error("executed")
			}
		})
	}
}

// try reports whether the host executed something of the guest's.
func (a ambush) try(t *testing.T, inside bool, p sandbox.Provider) bool {
	t.Helper()
	ws, out := workspace(t), workspace(t)
	host := func(what, text string) {
		cmd := exec.Command("bash", "-c", gitNow+text)
		cmd.Dir, cmd.Env = ws, append(os.Environ(), "OUT="+out)
		if text, err := cmd.CombinedOutput(); err != nil && what == "setup" {
			t.Fatalf("%s: %v: %s", what, err, text)
		}
	}
	if a.setup != "" {
		host("setup", a.setup)
	}
	if inside {
		req := request(ws)
		req.Session.ID = filepath.Base(ws)
		if p.Name() == layout.NativeName {
			a.private(t, &req)
		}
		req.Environ = append(req.Environ, "OUT="+out)
		req.Session.Isolation.Env = append(req.Session.Isolation.Env, "OUT")
		plan, err := p.Plan(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := execute(t, p, plan, gitNow+a.attack)
		t.Log(strings.TrimSpace(text))
	} else {
		host("attack", a.attack)
	}
	host("victim", a.victim)
	_, err := os.Stat(filepath.Join(out, "pwned"))
	litter(t, ws)
	return err == nil
}

// private gives a session private git directories where there are some to copy.
func (a ambush) private(t *testing.T, req *sandbox.Request) {
	t.Helper()
	state := workspace(t)
	req.GitPool, req.Hidden = state, append(req.Hidden, state)
	for _, name := range []string{".git", "store", ".bare"} {
		dir := filepath.Join(req.Dir, name)
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
			privateCopy(t, req, dir)
		}
	}
}

// TestWorktreeOfABareRepository works in a worktree whose repository is a bare
// one outside of the workspace, of which the session has a private copy: git goes
// on working, and the host's stays as it is.
func TestWorktreeOfABareRepository(t *testing.T) {
	testenv.Need(t, "userns", "notify", "git")
	proj := workspace(t)
	host(t, proj, dotBare)
	list := `find .bare -type f | sort | xargs sha256sum`
	before := host(t, proj, list)
	req := request(filepath.Join(proj, "main"))
	privateCopy(t, &req, filepath.Join(proj, ".bare"))
	p := New("")
	plan, err := p.Plan(req)
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := execute(t, p, plan, gitNow+`echo x >x; git add x; git commit -qm two; git log --format=%s
plant ../.bare/hooks/pre-commit; evil ../.bare/config; git config a.b c; evil ../.bare/worktrees/main/config.worktree; rm ../.bare/HEAD; mv ../.bare/refs r; echo x >../.bare/description; rm -f .git; echo x >>.git`)
	if !strings.HasPrefix(out, "two\none\n") {
		t.Errorf("git did not work: %s", out)
	}
	if after := host(t, proj, list); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
	if got := host(t, proj, `git -C main log --format=%s; cat main/.git`); !strings.HasPrefix(got, "one\ngitdir: ") || strings.Contains(got, "x\n") {
		t.Errorf("the worktree: %q", got)
	}
}

// TestNoFIFOForHEAD keeps git on the host from hanging. The control is that a
// file of another name may be one.
func TestNoFIFOForHEAD(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	ws := workspace(t)
	script(t, ws, `mkdir -p b/objects b/refs; mkfifo b/other b/HEAD; mkfifo b/x; mv b/x b/HEAD; ln b/other b/HEAD`)
	for name, want := range map[string]bool{"other": true, "HEAD": false} {
		if _, err := os.Lstat(filepath.Join(ws, "b", name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}

// litter fails where a session left something of its own behind.
func litter(t *testing.T, ws string) {
	t.Helper()
	_ = filepath.WalkDir(ws, func(p string, d os.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "bawn") && p != ws {
			t.Errorf("%s was left behind", p)
		}
		return nil
	})
}
