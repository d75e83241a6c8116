package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// A trapped is a repository whose own configuration and attributes name
// programs for everything that git can run; each leaves a marker.
type trapped struct {
	t              *testing.T
	dir, repo, bin string
}

// program writes one that notes that it ran and behaves well.
func (r trapped) program(name, then string) string {
	file := filepath.Join(r.bin, name)
	text := "#!/bin/sh\n: >>" + filepath.Join(r.dir, "ran-"+name) + "\n" + then + "\n"
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
	return file
}

func (r trapped) git(args ...string) string { return r.gitReads("", args...) }

func (r trapped) gitReads(in string, args ...string) string {
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.repo, r.environ(), strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// sign makes the branch and the tag "signed", with a signature that somebody
// must check.
func (r trapped) sign() {
	const (
		begin = "-----BEGIN PGP SIGNATURE-----"
		end   = "-----END PGP SIGNATURE-----"
		who   = "a <a@example.com> 1700000000 +0000"
	)
	tree, head := r.git("rev-parse", "HEAD^{tree}"), r.git("rev-parse", "HEAD")
	commit := r.gitReads("tree "+tree+"\nauthor "+who+"\ncommitter "+who+"\ngpgsig "+begin+"\n \n x\n "+end+"\n\nm\n", "hash-object", "-t", "commit", "-w", "--stdin")
	tag := r.gitReads("object "+head+"\ntype commit\ntag signed\ntagger "+who+"\n\nm\n"+begin+"\n\nx\n"+end+"\n", "hash-object", "-t", "tag", "-w", "--stdin")
	r.git("update-ref", "refs/heads/signed", commit)
	r.git("update-ref", "refs/tags/signed", tag)
}

// bare makes a directory of the working tree look like a bare repository with
// a configuration of its own.
func (r trapped) bare(program string) {
	dir := filepath.Join(r.repo, "evil")
	for _, d := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
	r.write("evil/HEAD", "ref: refs/heads/main\n")
	r.write("evil/config", "[core]\n\tbare = false\n\tworktree = .\n[filter \"evil\"]\n\tclean = "+program+"\n")
	r.write("evil/.gitattributes", "* filter=evil\n")
	r.write("evil/x", "x\n")
}

func (r trapped) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "TERM=dumb",
	}
}

func (r trapped) write(name, text string) {
	if err := os.WriteFile(filepath.Join(r.repo, name), []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// markers takes away and returns the names of the programs that have run.
func (r trapped) markers() (ran []string) {
	found, err := filepath.Glob(filepath.Join(r.dir, "ran-*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range found {
		ran = append(ran, strings.TrimPrefix(filepath.Base(f), "ran-"))
		if err := os.Remove(f); err != nil {
			r.t.Fatal(err)
		}
	}
	return ran
}

// run executes a line with an environment, with a terminal's answer: none.
func (r trapped) run(line string, env []string) {
	cmd := exec.CommandContext(r.t.Context(), "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = r.repo, env
	out, err := cmd.CombinedOutput()
	r.t.Logf("%s: %v: %.200s", line, err, out)
}

func trap(t *testing.T) trapped {
	dir := t.TempDir()
	r := trapped{t, dir, filepath.Join(dir, "repo"), filepath.Join(dir, "bin")}
	for _, d := range []string{r.repo, r.bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.git("init", "-q", "-b", "main")
	r.write("a.txt", "one\n")
	r.write("b.bin", "one\n")
	r.git("add", ".")
	r.git("commit", "-qm", "first")
	r.write("a.txt", "two\n")
	r.write("b.bin", "two\n")
	r.git("commit", "-qam", "second")
	r.write("a.txt", "stashed\n")
	r.git("stash", "-q")
	r.write("a.txt", "three\n")
	r.write("b.bin", "three\n")
	r.git("tag", "-a", "-m", "x", "v1")
	settings := map[string]string{
		"core.fsmonitor": r.program("fsmonitor", ""), "core.pager": r.program("pager", "cat"), "pager.log": r.program("pager-log", "cat"), "pager.branch": r.program("pager-branch", "cat"), "pager.status": r.program("pager-status", "cat"),
		"pager.blame": r.program("pager-blame", "cat"), "pager.grep": r.program("pager-grep", "cat"), "pager.diff": r.program("pager-diff", "cat"), "pager.show": r.program("pager-show", "cat"), "pager.stash": r.program("pager-stash", "cat"), "pager.tag": r.program("pager-tag", "cat"),
		"diff.external": r.program("external", ""), "core.editor": r.program("editor", ""), "sequence.editor": r.program("sequence", ""), "core.sshCommand": r.program("ssh", ""), "core.askPass": r.program("askpass", ""),
		"core.alternateRefsCommand": r.program("alternates", ""), "gpg.program": r.program("gpg", ""), "log.showSignature": "true", "credential.helper": r.program("credential", ""),
		"diff.own.textconv": r.program("textconv", `cat "$1"`), "diff.cmd.command": r.program("command", ""), "filter.own.clean": r.program("clean", "cat"), "filter.own.smudge": r.program("smudge", "cat"), "filter.proc.process": r.program("process", ""),
		"merge.own.driver": r.program("driver", ""), "core.hooksPath": r.bin, "alias.status": "!" + r.program("alias", ""), "interactive.diffFilter": r.program("difffilter", "cat"), "uploadpack.packObjectsHook": r.program("packobjects", ""), "trailer.x.command": r.program("trailer", ""), "log.mailmap": "true", "status.showUntrackedFiles": "all", "status.submoduleSummary": "true", "core.attributesFile": filepath.Join(r.repo, ".gitattributes"),
	}
	for k, v := range settings {
		r.git("config", k, v)
	}
	for _, hook := range []string{"post-index-change", "post-checkout", "pre-commit", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"} {
		r.program(hook, "")
	}
	r.write(".gitattributes", "*.txt diff=own filter=own merge=own\n*.bin diff=cmd\n*.proc filter=proc\n")
	r.write("c.proc", "x\n")
	r.sign()
	r.bare(r.program("bare", "cat"))
	r.markers()
	return r
}

// reading are lines of the verbs that only look.
var readingLines = []string{
	"git status", "git status --short", "git diff", "git diff --stat", "git diff HEAD~1", "git diff --cached", "git log -p", "git log --stat -2", "git log --oneline --graph --all", "git log --show-signature -1", "git show", "git show HEAD:a.txt", "git show v1",
	"git blame a.txt", "git grep two", "git grep two HEAD~1", "git branch", "git branch -a -v", "git tag", "git stash list", "git stash show", "git stash show -p", "git reflog", "git describe", "git rev-parse HEAD", "git ls-files", "git ls-files -m", "git ls-tree HEAD", "git cat-file -p HEAD",
	"git shortlog -s", "git diff-files -p", "git diff-index HEAD", "git diff-index -p HEAD", "git diff-tree -p HEAD", "git for-each-ref", "git remote -v", "git worktree list", "git check-ignore a.txt", "git check-attr -a a.txt", "git count-objects", "git rev-list HEAD", "git merge-base HEAD HEAD~1", "git range-diff HEAD~1 HEAD HEAD",
	"git whatchanged", "git log -L1,1:a.txt", "git cat-file --batch-check --batch-all-objects", "git archive --list", "git rm -n a.txt", "git clean -nd", "git submodule status", "git hash-object a.txt", "git log -S two --textconv", "git diff --ext-diff", "git grep --textconv two", "git cat-file --textconv HEAD:a.txt", "git cat-file --filters HEAD:a.txt", "git fsck", "git verify-tag v1", "git bundle verify x", "git stripspace", "git annotate a.txt", "git diff --no-index a.txt b.bin", "git blame --contents b.bin a.txt", "git diff --submodule=log", "git log --remerge-diff",
	"git verify-commit refs/heads/signed", "git verify-tag signed", "git log --show-signature -1 refs/heads/signed", "git log -1 refs/heads/signed", "git show refs/tags/signed", "git -C evil hash-object x", "cd evil && git status", "git -C evil diff --no-index x HEAD",
	"git var GIT_EDITOR", "git notes list", "git apply --check x", "git fast-export --all",
}

// configured are programs that only the configuration of the repository can
// name, by the names of drivers: git has no variable that turns them off. The
// file is protected against writing.
var configured = map[string]bool{"clean": true, "smudge": true, "process": true, "textconv": true, "external": true, "command": true}

// TestGitWorksWithItsPins: what is set for git does not break it.
func TestGitWorksWithItsPins(t *testing.T) {
	r := trap(t)
	r.git("config", "--unset", "diff.external")
	r.git("config", "--remove-section", "diff.cmd")
	for line, want := range map[string]string{"git diff": "+three", "git log -p -1": "+two", "git var GIT_PAGER": "cat", "git status": "a.txt"} {
		q := ask4(line)
		q.Workspace, q.Home, q.Action.Dir = r.repo, r.dir, r.repo
		d := corpusPolicy(t).Decide(&q)
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", d.Canonical)
		cmd.Dir, cmd.Env = r.repo, append(r.environ(), d.Env...)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || d.Verdict != bawn.Allow {
			t.Errorf("%s: %v, %v: %s; want %q", line, d.Verdict, err, out, want)
		}
	}
}

// TestGitRunsNothingOfTheRepository executes what the policy allows outright
// as it wants it executed: the canonical text with the variables of the
// decision. None of the repository's programs may run.
func TestGitRunsNothingOfTheRepository(t *testing.T) {
	r := trap(t)
	p := corpusPolicy(t)
	var without []string
	allowed := 0
	for _, line := range readingLines {
		q := ask4(line)
		q.Workspace, q.Home, q.Action.Dir = r.repo, r.dir, r.repo
		d := p.Decide(&q)
		if d.Verdict != bawn.Allow {
			t.Logf("%s: %v: %s", line, d.Verdict, d.Reason)
			continue
		}
		allowed++
		r.run(d.Canonical, append(r.environ(), d.Env...))
		for _, name := range r.markers() {
			if !configured[name] {
				t.Errorf("%s is allowed, and ran %s", line, name)
			}
		}
		r.run(line, r.environ())
		without = append(without, r.markers()...)
	}
	if allowed < 30 {
		t.Errorf("only %d of %d lines are allowed", allowed, len(readingLines))
	}
	slices.Sort(without)
	for _, name := range []string{"fsmonitor", "external", "textconv", "clean", "post-index-change", "gpg", "bare"} {
		if !slices.Contains(without, name) {
			t.Errorf("without the variables of the decision %s does not run either: this test can't fail", name)
		}
	}
	t.Logf("without: %q", slices.Compact(without))
}

// TestGitPinsAreCopies: who changes them changes nobody else's.
func TestGitPinsAreCopies(t *testing.T) {
	p, q := mustPolicy(t, Options{}), ask4("git status")
	GitPins()[0] = "GIT_CONFIG_COUNT=0"
	if got := p.Decide(&q).Env; !slices.Equal(got, GitPins()) || got[0] == "GIT_CONFIG_COUNT=0" {
		t.Errorf("git is given %q", got)
	}
}
