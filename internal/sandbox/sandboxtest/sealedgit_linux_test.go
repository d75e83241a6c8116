package sandboxtest_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/sealed"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// sealedGuest plants a program for git in the session's own git directory and, where
// there is a git, in that of a repository which it makes. Both are kept: one has an
// open rebase, the other is new.
const sealedGuest = `set -e
plant() { printf '[core]\n\tworktree = "%s"\n\tfsmonitor = "echo owned >%s; false"\n' "$HOST" "$HOST/mark" >>"$1/.git/config"; }
HOST=$1
if command -v git >/dev/null; then
	git init -q made; cd made; echo x >f; git add f; git -c user.name=g -c user.email=g@g commit -qm inside; cd ..
	plant made
fi
plant .
mkdir .git/rebase-merge
echo ready; read -r line`

// TestPrivateGitIsSealed: no git of the user's comes upon what a guest has written
// in its git directories, while the session lasts and when it has ended.
func TestPrivateGitIsSealed(t *testing.T) {
	for _, name := range []string{"native", "bwrap", "docker", "gvisor"} {
		t.Run(name, func(t *testing.T) {
			testenv.Need(t, "git")
			c := contenderNamed(t, name)
			c.each(t, func(t *testing.T, f *sandboxtest.Fixtures) { c.privateGit(t, f) })
		})
	}
}

func (c contender) privateGit(t *testing.T, f *sandboxtest.Fixtures) {
	host := func(text string, args ...string) sandboxtest.Result {
		return sandboxtest.NoSandbox(t, f, append([]string{"sh", "-c", text, "sh"}, args...)...)
	}
	repo, mark := filepath.Join(f.Home, "repo"), filepath.Join(f.Home, "mark")
	if r := host(`git init -q "$1" && cd "$1" && echo x >f && git add f && git -c user.name=h -c user.email=h@h commit -qm first`, repo); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	cmd := f.Command(append(c.words(t, f, "--net", "none"), "--", "sh", "-c", sealedGuest, "sh", f.Home)...)
	cmd.Dir = repo
	end := startReady(t, cmd)
	seals, err := filepath.Glob(filepath.Join(f.Home, ".local/state/bawn/git/*/guest"))
	if err != nil || len(seals) != 1 {
		t.Fatalf("there is %q, %v", seals, err)
	}
	inside := sealed.Inside(seals[0])
	if f.UID == 0 { // whom no mode stops
		end()
		if r := host(`test -d "$1/private" && test -d "$1/made"`, inside); r.Code != 0 {
			t.Errorf("the session has left nothing: %s", r.Stderr)
		}
		return
	}
	link := filepath.Join(f.Home, "led") // as if a guest had made it
	if r := host(`ln -s "$1" "$2"`, inside, link); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	refused := func(when string) {
		t.Helper()
		for _, p := range []string{inside + "/private", link + "/private", inside + "/made", link + "/made"} {
			for _, look := range []string{`stat "$1"`, `ls "$1"`, `git -C "$1" status`} {
				if r := host(look, p); r.Code == 0 || !strings.Contains(r.Stderr, "ermission denied") {
					t.Errorf("%s: %s %s: %d, %q, %s", when, look, p, r.Code, r.Stdout, r.Stderr)
				}
			}
		}
		if _, err := os.Lstat(mark); err == nil {
			t.Errorf("%s: the guest's program was executed", when)
		}
	}
	refused("while the session lasts")
	end()
	refused("when it has ended")
	if err := os.Chmod(seals[0], 0o700); err != nil { // control
		t.Fatal(err)
	}
	planted := []string{inside + "/private", link + "/private"}
	if made, _ := filepath.Glob(inside + "/made/*/git"); len(made) > 0 {
		planted = append(planted, made...)
	} else if c.name != "docker" { // where nothing is mounted later, and nothing is made
		t.Error("the session has made no repository")
	}
	for _, p := range planted {
		if r := host(`rm -f "$2"; git -C "$1" status`, p, mark); !present(mark) {
			t.Errorf("without the seal: %s executes nothing: %d, %q, %s", p, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func present(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// startReady starts a command and waits until it says "ready". end closes its
// standard input, and wants it to succeed.
func startReady(t *testing.T, cmd *exec.Cmd) (end func()) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(testenv.Patience(t, time.Minute), func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop(); _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		_ = cmd.Wait()
		t.Fatalf("the guest says %q, %v: %s", line, err, &errs)
	}
	return func() {
		t.Helper()
		_, _ = io.WriteString(in, "\n")
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("the session: %v: %s", err, &errs)
		}
	}
}
