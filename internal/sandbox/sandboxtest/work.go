package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A WorkRunner starts argv in dir and waits for its end. A nil stdin is
// /dev/null. Code is the exit code, 128+n after signal n; -1 means that argv
// could not be started or was still running after [WorkTimeout].
type WorkRunner func(dir string, stdin io.Reader, argv ...string) (stdout, stderr string, code int)

// WorkTimeout ends a piece of work that hangs.
const WorkTimeout = 3 * time.Minute

// Work does ordinary development work twice, unsandboxed and through run, each
// time in a fresh copy of the same tree. It fails t wherever standard output,
// standard error, the exit code or the resulting tree differ. Of git
// directories is compared what git says of them (see gitSays). Both trees lie
// below base, which must exist: where it lies (under the home directory, under
// /tmp) is part of what is tested. What is known to differ is logged, not
// failed: known has the reason for each such piece, by its name.
func Work(t *testing.T, base string, run WorkRunner, known map[string]string) {
	shelf := workShelf(t)
	for i, p := range workPieces() {
		if testenv.Short() && i%share() != 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel() // much of the work is waiting
			if p.user && os.Geteuid() == 0 {
				return // unsandboxed root may do what the guest, who never is root, may not
			}
			testenv.Need(t, p.needs...)
			differences := p.compare(t, base, shelf, run)
			if why, ok := known[p.name]; ok {
				if len(differences) == 0 && !p.chance {
					t.Errorf("it is known to differ (%s), and does not", why)
				}
				t.Logf("%d known differences: %s", len(differences), why)
				return
			}
			for _, d := range differences[:min(len(differences), mostDifferences)] {
				t.Error(d)
			}
			if more := len(differences) - mostDifferences; more > 0 {
				t.Errorf("… and %d more", more)
			}
		})
	}
}

// share: where testenv.Short says so, an ordinary user does every third piece of work
// and root every eighth, some of each kind.
func share() int {
	if os.Geteuid() == 0 {
		return 8
	}
	return 3
}

// mostDifferences are shown for one piece.
const mostDifferences = 8

// A workPiece is one piece of work. It must come out the same every time it
// is done unsandboxed.
type workPiece struct {
	name   string
	needs  []string // features of testenv
	user   bool     // comes out the same only for an ordinary user
	setup  string   // shell, always unsandboxed: prepares the files
	script string   // shell; $SHELF is a directory beside the workspace, read-only to a guest
	argv   []string // instead of script
	stdin  stdinKind
	mask   []string // expressions for what may differ in the output
	opaque []string // patterns of files whose contents may differ
	ignore []string // patterns of files and directories that may be there or not
	chance bool     // a known difference does not show every time or everywhere
	inside string   // why what git has at the end is not published
}

// stdinKind says what a piece has as standard input.
type stdinKind uint8

const (
	stdinNull stdinKind = iota
	stdinFile           // a regular file of the tree, "input"
	stdinPipe           // a pipe with the same contents
)

// workInput is what a piece reads that has a standard input.
const workInput = "first\nsecond\n\nlast, without an end"

// workPrologue makes programs answer the same in every environment.
const workPrologue = `SHELF=$1
unset MAKELEVEL MAKEFLAGS MFLAGS MAKEOVERRIDES
export LC_ALL=C TZ=UTC GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com GIT_AUTHOR_DATE='1700000000 +0000'
export GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.com GIT_COMMITTER_DATE='1700000000 +0000'
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=init.defaultBranch GIT_CONFIG_VALUE_0=main
export GIT_CONFIG_KEY_1=pack.threads GIT_CONFIG_VALUE_1=1 GIT_CONFIG_KEY_2=gc.auto GIT_CONFIG_VALUE_2=0
`

// compare does the piece both ways and says what differs.
func (p *workPiece) compare(t testing.TB, base, shelf string, run WorkRunner) []string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "work-")
	if err != nil {
		t.Fatal(err)
	}
	defer removeTree(dir)
	// Equally long, as sizes are compared, and with the same last part.
	bare, guest := filepath.Join(dir, "bare", "work"), filepath.Join(dir, "bawn", "work")
	want, err := p.do(bare, shelf, Unsandboxed)
	if err != nil {
		t.Fatalf("bare: %v", err)
	}
	got, err := p.do(guest, shelf, run)
	if err != nil {
		t.Fatalf("guest: %v", err)
	}
	return slices.Concat(p.diffOutput(want, got), diffTrees(p, want.tree, got.tree), p.diffGit(want, got))
}

// An outcome is all that a piece of work leaves.
type outcome struct {
	stdout, stderr string
	code           int
	notes          []string // of Bawn's on standard error, about git
	tree           map[string]node
	git            map[string]string // what git says, by repository and question
}

func (p *workPiece) do(dir, shelf string, run WorkRunner) (o outcome, err error) {
	if err := p.prepare(dir, shelf); err != nil {
		return o, err
	}
	stdin, err := p.open(dir)
	if err != nil {
		return o, err
	}
	if f, ok := stdin.(io.Closer); ok {
		defer f.Close()
	}
	o.stdout, o.stderr, o.code = run(dir, stdin, p.command(shelf)...)
	o.stdout, o.stderr = p.normal(o.stdout, dir, shelf), p.normal(o.stderr, dir, shelf)
	o.stderr, o.notes = splitNotes(o.stderr)
	if o.tree, err = readTree(dir); err != nil {
		return o, err
	}
	o.git = gitSays(dir, shelf, o.tree)
	return o, err
}

func (p *workPiece) prepare(dir, shelf string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if p.stdin != stdinNull {
		if err := os.WriteFile(filepath.Join(dir, "input"), []byte(workInput), 0o644); err != nil {
			return err
		}
	}
	if p.setup == "" {
		return nil
	}
	out, errs, code := Unsandboxed(dir, nil, "sh", "-c", workPrologue+"set -e\n"+p.setup, "sh", shelf)
	if code != 0 {
		return fmt.Errorf("setup ended with %d: %s%s", code, out, errs)
	}
	return nil
}

func (p *workPiece) open(dir string) (io.Reader, error) {
	switch p.stdin {
	case stdinFile:
		return os.Open(filepath.Join(dir, "input"))
	case stdinPipe:
		return strings.NewReader(workInput), nil
	}
	return nil, nil
}

func (p *workPiece) command(shelf string) []string {
	if p.argv != nil {
		return p.argv
	}
	return []string{"sh", "-c", workPrologue + p.script, "sh", shelf}
}

// normal replaces what may differ.
func (p *workPiece) normal(s, dir, shelf string) string {
	s = strings.NewReplacer(dir, "$WORK", shelf, "$SHELF").Replace(s)
	for _, m := range p.mask {
		s = regexp.MustCompile(m).ReplaceAllString(s, "$$MASKED")
	}
	return s
}

func (p *workPiece) diffOutput(want, got outcome) (diffs []string) {
	if want.stdout != got.stdout {
		diffs = append(diffs, diffText("standard output", want.stdout, got.stdout))
	}
	if want.stderr != got.stderr {
		diffs = append(diffs, diffText("standard error", want.stderr, got.stderr))
	}
	if want.code != got.code {
		diffs = append(diffs, fmt.Sprintf("exit code: bare %d, guest %d (standard error: %.500s)", want.code, got.code, got.stderr))
	}
	return diffs
}

// diffText shows the lines that differ, or all from the first that does where
// there are more of them on one side.
func diffText(what, want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		w, g = w[1:], g[1:]
	}
	if len(w) != len(g) {
		return fmt.Sprintf("%s differs from here on:\n bare: %.700q\nguest: %.700q", what, strings.Join(w, ""), strings.Join(g, ""))
	}
	text := what + " differs:"
	for i := range w {
		if w[i] != g[i] {
			text += fmt.Sprintf("\n bare: %.200q\nguest: %.200q", w[i], g[i])
		}
	}
	return text
}

// Unsandboxed is the runner without a sandbox: what every other one is compared to.
func Unsandboxed(dir string, stdin io.Reader, argv ...string) (stdout, stderr string, code int) {
	return Wrapped()(dir, stdin, argv...)
}

// Wrapped returns the runner that puts words in front of each command, such
// as a sandbox's command line.
func Wrapped(words ...string) WorkRunner {
	return func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		argv = slices.Concat(words, argv)
		ctx, cancel := context.WithTimeout(context.Background(), WorkTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		var out, errs bytes.Buffer
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, stdin, &out, &errs
		cmd.WaitDelay = 2 * time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it signals as a group is not the test
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.Env = append(os.Environ(), "PWD="+dir)
		err := cmd.Run()
		code, err := exitCode(ctx, err)
		if err != nil {
			fmt.Fprintf(&errs, "%s: %v\n", argv[0], err)
		}
		return out.String(), errs.String(), code
	}
}

// exitCode turns a signal into 128+n, as shells do.
func exitCode(ctx context.Context, err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return -1, fmt.Errorf("still running after %s", WorkTimeout)
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return -1, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// WorkDir makes a directory that t removes at its end: below the home
// directory, or below /var/lib for root, whose home may be part of the test.
func WorkDir(t testing.TB) string {
	t.Helper()
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		parent = home
	}
	return workDirBelow(t, parent)
}

func workDirBelow(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "bawn-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTree(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// workShelf makes a directory with what several pieces use: the program
// workguest and a repository to clone.
func workShelf(t testing.TB) string {
	t.Helper()
	dir := WorkDir(t)
	if err := testhome.Programs(dir, "internal/sandbox/sandboxtest/workguest"); err != nil {
		t.Fatal(err)
	}
	out, errs, code := Unsandboxed(dir, nil, "sh", "-c", workPrologue+"set -e\n"+shelfRepository, "sh", dir)
	if code != 0 {
		t.Fatalf("making the repository of the shelf: %d: %s%s", code, out, errs)
	}
	return dir
}

const shelfRepository = `git init -q upstream; cd upstream
for i in 1 2 3; do echo "line $i" >>file; mkdir -p d$i; echo $i >d$i/f; git add .; git commit -qm "commit $i"; done
git tag -a v1 -m one; git branch side`

// removeTree removes also what forbids it.
func removeTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// diffTrees says what differs between two trees.
func diffTrees(p *workPiece, want, got map[string]node) (diffs []string) {
	paths := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if matchesAny(p.ignore, path) || belowGit(path) {
			continue
		}
		w, inBare := want[path]
		g, inGuest := got[path]
		if matchesAny(p.opaque, path) {
			w.contents, g.contents, w.size, g.size = "", "", 0, 0
		}
		switch {
		case !inGuest:
			diffs = append(diffs, fmt.Sprintf("%q is there bare (%s), not with the guest", path, w))
		case !inBare:
			diffs = append(diffs, fmt.Sprintf("%q is there with the guest (%s), not bare", path, g))
		case w != g:
			diffs = append(diffs, fmt.Sprintf("%q differs:\n bare: %s\nguest: %s", path, w, g))
		}
	}
	return diffs
}

// matchesAny reports whether a pattern matches the path or a directory above.
func matchesAny(patterns []string, path string) bool {
	for ; path != "."; path = filepath.Dir(path) {
		for _, p := range patterns {
			if ok, err := filepath.Match(p, path); err != nil || ok {
				return true
			}
		}
	}
	return false
}
