package testhome

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

var homes string // of all tests, where no sandbox has a file system of its own

// Main runs the tests of a package with a directory for their accounts, which is
// removed in the end, and returns the exit code. Its name says whose it is, and
// is short, as the paths of sockets are.
func Main(name string, run func() int) int {
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		parent = home
	}
	dir, err := os.MkdirTemp(parent, "bawn-"+name+"-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer testenv.RemoveAll(dir)
	homes = dir
	return run()
}

// Bin is the directory of the programs in all accounts.
func Bin() string { return filepath.Join(homes, "bin") }

// programs are those of all accounts: bawn, bawnd, and "guest", which is the test
// binary.
var programs = sync.OnceValue(func() error {
	if err := Programs(Bin(), "cmd/bawn", "cmd/bawnd"); err != nil {
		return err
	}
	return do([]string{"cp", "--", fmt.Sprintf("/proc/%d/exe", os.Getpid()), filepath.Join(Bin(), "guest")})
})

// Check ends a test for an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An Account is the home of a user, with a project.
type Account struct {
	Home, Work, Bin string
	Env             []string      // of the owner's commands
	Patience        time.Duration // ends a command that hangs
}

// NewAccount makes one that is empty, in a package whose tests Main runs, and needs
// what a session does, and features. Its owner's environment is the caller's to
// say.
func NewAccount(t *testing.T, patience time.Duration, features ...string) *Account {
	t.Helper()
	testenv.Need(t, append([]string{"go", "userns", "landlock", "seccomp", "notify"}, features...)...)
	Check(t, programs())
	home, err := os.MkdirTemp(homes, "home-")
	Check(t, err)
	t.Cleanup(func() { // a relay that was started on demand may still write
		testenv.Until(t, "the removal of "+home, func() bool { return testenv.RemoveAll(home) == nil })
	})
	r := &Account{Home: home, Work: filepath.Join(home, "src/project"), Bin: Bin(), Patience: patience}
	Check(t, os.MkdirAll(r.Work, 0o755))
	return r
}

// Put writes a file, whose name is the home's or absolute.
func (r *Account) Put(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.Home, name)
	}
	Check(t, os.MkdirAll(filepath.Dir(name), 0o700))
	Check(t, os.WriteFile(name, []byte(text), mode))
}

// Decide has each command of a session decided by its text, as outside of a sandbox.
func (r *Account) Decide(t testing.TB) {
	t.Helper()
	dir := filepath.Join(r.Home, ".config/bawn")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[policy]\ncontained = \"decide\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Rule adds a rule to the owner's policy.
func (r *Account) Rule(t testing.TB, verdict, kind, pattern string) {
	t.Helper()
	file := filepath.Join(r.Home, ".config/bawn/policy.toml")
	old, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		Check(t, err)
	}
	r.Put(t, file, fmt.Sprintf("%s[[rule]]\nkind = %q\npattern = %q\nverdict = %q\nreason = \"mine\"\n", old, kind, pattern, verdict), 0o600)
}

// GuestWord is the first argument of a test binary that is to play the guest.
const GuestWord = "@guest"

// Guest is a command line of the test binary as a guest.
func (r *Account) Guest(words ...string) []string {
	return append([]string{filepath.Join(r.Bin, "guest"), GuestWord}, words...)
}

// Command is one that the account's user would start, without a terminal. Those
// of the account's programs need no directory. It dies with the test.
func (r *Account) Command(ctx context.Context, argv ...string) *exec.Cmd {
	if slices.Contains([]string{"bawn", "bawnd", "guest"}, argv[0]) {
		argv = append([]string{filepath.Join(r.Bin, argv[0])}, argv[1:]...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.Work, r.Env, r.Patience // for who still holds its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// A Result is how a command ended, and what it wrote.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs a command to its end. One that can't be started, or takes longer than
// the account's patience, fails the test.
func (r *Account) Run(t testing.TB, argv ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), r.Patience) // also when the test cleans up
	defer cancel()
	cmd := r.Command(ctx, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Errorf("%.300q: %v\n%s%s", argv, err, &out, &errs)
	}
	return Result{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// Until waits for what is to come, and ends the test where it does not.
func Until(t testing.TB, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
