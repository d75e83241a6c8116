package vaultcli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bawn-dev/bawn/internal/verb"
)

// program is that of the scripts: "bawn secret …" as bawnd runs it.
func program() {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "secret" {
		args = args[1:]
	} else if len(args) > 1 && args[1] == "secret" { // __complete secret …
		args = append(args[:1:1], args[2:]...)
	}
	os.Exit(Main(args, &Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir}}))
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bawn": program})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home") // the script's own files stay outside
			e.Setenv("HOME", home)
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			for _, name := range []string{"identity", "pass"} { // what the archive has is 0644
				if err := os.Chmod(filepath.Join(e.WorkDir, name), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"nowhere": nowhere},
	})
}

// nowhere wants that no file below the home directory has the text, in the
// script's own files least of all.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	found := ""
	ts.Check(filepath.WalkDir(ts.Getenv("HOME"), func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), args[0]) {
			found = path
		}
		return err
	}))
	if (found == "") == neg {
		ts.Fatalf("nowhere %q: found in %q", args[0], found)
	}
}

// TestAsksOnTheTerminal types a value and a passphrase: neither is shown, and
// a mistake keeps nothing.
func TestAsksOnTheTerminal(t *testing.T) {
	home, args := t.TempDir(), []string{"key"}
	run := func(typed ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Path, cmd.Args = mustBawn(t), append([]string{"bawn", "secret", "set", "--store", "file"}, args...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		f, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		shown := ""
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			shown += string(buf[:n])
			if err != nil {
				return shown, cmd.Wait()
			}
			if len(typed) > 0 && strings.HasSuffix(shown, ": ") {
				if typed[0] == "^C" {
					_ = cmd.Process.Signal(syscall.SIGINT)
				} else if _, err := f.WriteString(typed[0] + "\n"); err != nil {
					t.Fatal(err)
				}
				typed = typed[1:]
			}
		}
	}
	if shown, err := run("typed-value", "typed-valeu"); err == nil || !strings.Contains(shown, "not twice the same") || strings.Contains(shown, "typed-val") {
		t.Errorf("a mistake: %v\n%s", err, shown)
	}
	if shown, err := run("typed-value", "^C"); err == nil || !strings.Contains(shown, "interrupted") {
		t.Errorf("interrupted: %v\n%s", err, shown)
	}
	if _, err := os.Stat(filepath.Join(home, ".config/bawn/secrets.json")); err == nil {
		t.Error("a value that was not confirmed made an index")
	}
	shown, err := run("typed-value", "typed-value", "typed-passphrase", "typed-passphrase")
	if err != nil || strings.Contains(shown, "typed-") {
		t.Errorf("%v\n%s", err, shown)
	}
	text, err := os.ReadFile(filepath.Join(home, ".config/bawn/secrets.json"))
	if err != nil || !strings.Contains(string(text), `"name": "key"`) {
		t.Errorf("%s, %v", text, err)
	}
	args = []string{"cloud", "--aws"}
	for secret, want := range map[string]bool{"typed-secret-of-a-key": true, "typed-short": false} {
		shown, err := run("TYPEDIDOFAKEY1234567", secret, "", "typed-passphrase")
		if (err == nil) != want || strings.Contains(strings.ToLower(shown), "typed") || !want && !strings.Contains(shown, "no access key") {
			t.Errorf("%v\n%s", err, shown)
		}
	}
}

// mustBawn is the program that testscript put into PATH.
func mustBawn(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bawn")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
