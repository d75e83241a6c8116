package sandboxtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	words "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
)

// TestNativePlanted and TestNativePatterns are these parts for the provider that
// nobody has to name.
func TestNativePlanted(t *testing.T)  { contenderNamed(t, "native").planted(t) }
func TestNativePatterns(t *testing.T) { contenderNamed(t, "native").patterns(t) }

// shell runs a script in a session that no flag but these says anything of.
func (c contender) shell(t *testing.T, f *sandboxtest.Fixtures, script string, flags ...string) sandboxtest.Result {
	t.Helper()
	argv := c.words(t, f, append([]string{"--net", "none"}, flags...)...)
	return f.Exec(t, append(argv, "--", "sh", "-c", script)...)
}

// makeFiles makes files, "a -> b" for a link, in a directory.
func makeFiles(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		name, to, link := strings.Cut(name, " -> ")
		p := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if err == nil && link {
			err = os.Symlink(to, p)
		} else if err == nil {
			err = os.WriteFile(p, []byte("of the host\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// planted names places by links in what guests may write. None is followed, and
// the remedy works, which is the control: what a link leads to is written where it
// is named itself.
func (c contender) planted(t *testing.T) {
	f := c.fixtures(t)
	ws, aside := f.Workspace, filepath.Join(f.Home, "aside")
	other := filepath.Join(f.Home, "other")
	makeFiles(t, f.Home, "aside/sub/file", "aside/file", "other/file")
	write := "echo PWNED >" + aside + "/file"
	text := func() string { got, _ := os.ReadFile(filepath.Join(aside, "file")); return string(got) }

	if r := c.shell(t, f, write, "--rw", aside); !strings.Contains(text(), "PWNED") {
		t.Fatalf("control: what is named itself is not written: %s", r.Stderr)
	}
	makeFiles(t, aside, "file")
	// A guest of an earlier session could write both places. The links are made
	// outside, as no guest can make them now: one of an earlier Bawn could.
	if r := c.shell(t, f, "mkdir "+other+"/used", "--rw", other); !there(filepath.Join(other, "used")) {
		t.Fatalf("the earlier guest could not write: %s", r.Stderr)
	}
	makeFiles(t, ws, "build -> "+aside, "one -> "+aside+"/file", "deep/dir -> "+aside, "two -> build")
	makeFiles(t, other, "late -> "+aside)
	for _, flags := range [][]string{
		{"--rw", "./build"}, {"--rw", "build/sub"}, {"--rw", "one"}, {"--rw", "deep/dir"}, {"--rw", "two"}, {"--rw", other + "/late"},
		{"--ro", "build"}, {"--deny", "build"}, {"--deny", "build/**/x"}, {"--open", "./build"}, {"--cwd", "build"}, {"--cwd", other + "/late"},
	} {
		r := c.shell(t, f, "echo ran; "+write+"; echo PWNED >file", flags...)
		if r.Code != 2 || strings.Contains(r.Stdout, "ran") || !strings.Contains(r.Stderr, "symbolic link") || !strings.Contains(r.Stderr, aside) {
			t.Errorf("%q: exit code %d, %q, %s; want the link refused, and where it leads", flags, r.Code, r.Stdout, r.Stderr)
		}
		if got := text(); got != "of the host\n" {
			t.Errorf("%q: the guest has written %q", flags, got)
			makeFiles(t, aside, "file")
		}
	}
	c.flipped(t, f, aside)
}

// flipped exchanges a directory of the workspace for a link all the time, as a
// guest that runs now could, while sessions are started that are to write it.
func (c contender) flipped(t *testing.T, f *sandboxtest.Fixtures, aside string) {
	at := filepath.Join(f.Workspace, "flip")
	makeFiles(t, f.Workspace, "real/file", "flip -> "+aside)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(at)
			_ = os.Rename(filepath.Join(f.Workspace, "real"), at)
			_ = os.Rename(at, filepath.Join(f.Workspace, "real"))
			_ = os.Symlink(aside, at)
		}
	})
	for range 5 {
		c.shell(t, f, "echo PWNED >flip/file; echo PWNED >"+aside+"/file", "--rw", "flip")
	}
	close(stop)
	wait.Wait()
	if got, _ := os.ReadFile(filepath.Join(aside, "file")); string(got) != "of the host\n" {
		t.Errorf("a guest for which a directory was exchanged has written %q outside", got)
	}
}

// patterns denies names by patterns: what is there is not read, and where the
// provider says so no such name comes into being. The control is the same without.
func (c contender) patterns(t *testing.T) {
	f := c.fixtures(t)
	ws, given := f.Workspace, filepath.Join(f.Home, "given")
	makeFiles(t, ws, ".env", "app/web/.env", "app/web/link.pem -> ../../top.pem", "top.pem", "conf/a.key", "conf/deeper/b.key", "plain", "vault/x/y")
	makeFiles(t, given, "sub/c.pem", "plain")
	read := "cat .env app/web/.env app/web/link.pem top.pem conf/a.key " + given + "/sub/c.pem vault/x/y; cat plain conf/deeper/b.key " + given + "/plain"
	flags := []string{"--ro", given, "--deny", "**/.env", "--deny", "*.pem", "--deny", "conf/*.key", "--deny", "vault/**", "--deny", "keys/*.key"}
	if r := c.shell(t, f, read, "--ro", given); strings.Count(r.Stdout, "of the host") != 10 {
		t.Fatalf("control: without patterns the guest reads %q: %s", r.Stdout, r.Stderr)
	}
	if r := c.shell(t, f, read, flags...); strings.Count(r.Stdout, "of the host") != 3 {
		t.Errorf("with patterns the guest reads %q, want what they do not match alone: %s", r.Stdout, r.Stderr)
	}
	made := map[string]string{
		"new.pem": "echo x >new.pem", "app/new.PEM": "echo x >app/new.PEM", "moved.pem": "echo x >m; mv m moved.pem", "linked.pem": "echo x >l; ln l linked.pem",
		"sym.pem": "ln -s plain sym.pem", "dir.pem": "mkdir dir.pem", "fifo.pem": "mkfifo fifo.pem",
		"conf/new.key": "echo x >conf/new.key", "keys/z.key": "mkdir fresh && echo x >fresh/z.key && mv fresh keys", "app/.env/x": "mkdir -p app/.env && echo x >app/.env/x",
	}
	if slices.Contains(c.needs, "runsc") {
		delete(made, "fifo.pem") // gVisor keeps a FIFO to itself
	}
	enforced := c.says(t, f)[sandbox.FSPatterns].Strength == words.Enforced
	for name, script := range made {
		p := filepath.Join(ws, name)
		if c.shell(t, f, script, "--ro", given); !there(p) {
			t.Errorf("control: %q makes nothing", script)
		}
		os.RemoveAll(p)
		if c.shell(t, f, script, flags...); there(p) && enforced {
			t.Errorf("%q makes what is denied", script)
		}
		os.RemoveAll(p)
		os.RemoveAll(filepath.Join(ws, "fresh"))
		os.RemoveAll(filepath.Join(ws, "keys"))
	}
}

func there(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
