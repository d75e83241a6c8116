package mcp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends a command that hangs.
const patience = 40 * time.Second

// Words that make the test binary what runs inside.
const (
	guestWord  = testhome.GuestWord
	serverWord = "@server"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == guestWord {
		os.Exit(guest(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == serverWord {
		os.Exit(serve(os.Args[2], os.Args[3:]))
	}
	os.Exit(testhome.Main("mcp", func() int { return testMain(m) }))
}

func testMain(m *testing.M) int {
	code := m.Run()
	endRelays()
	if err := engine.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// endRelays ends those that questions have started, which would otherwise wait
// for more of them.
func endRelays() {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		program, _ := os.Readlink(link) // it may have ended
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err == nil && program == filepath.Join(testhome.Bin(), "bawnd") {
			_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
		}
	}
}

var check = testhome.Check

// An account is the home of a user, with a project and plugins.
type account struct {
	home, work, bin string
	in              *testhome.Account
}

func newAccount(t *testing.T, features ...string) *account {
	t.Helper()
	in := testhome.NewAccount(t, patience, features...)
	in.Env = []string{
		"HOME=" + in.Home, "PATH=" + in.Bin + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=dumb", "SHELL=/bin/sh", "HOSTS_OWN=the-hosts-own",
	}
	r := &account{home: in.Home, work: in.Work, bin: in.Bin, in: in}
	check(t, os.MkdirAll(filepath.Join(r.work, ".git"), 0o700))
	return r
}

// put writes a file, whose name is the home's or absolute.
func (r *account) put(t testing.TB, name, text string) {
	t.Helper()
	r.in.Put(t, name, text, 0o600)
}

// plugin adds a plugin by its manifest, as the human's own editor would, and
// returns the command line that starts it with other arguments for the guest.
func (r *account) plugin(t testing.TB, name, manifest string, words ...string) []string {
	t.Helper()
	r.put(t, ".config/bawn/plugins/"+name+".toml", manifest)
	m, err := plugin.Parse(name, name, []byte(manifest))
	check(t, err)
	dirs, err := plugin.DirsOf(func(name string) string { return map[string]string{"HOME": r.home}[name] })
	check(t, err)
	at, err := dirs.Place(name, r.work)
	check(t, err)
	argv := append([]string{filepath.Join(r.bin, "bawn"), "run"}, m.RunFlags(at)...)
	return append(append(argv, "--"), r.in.Guest(words...)...)
}

// manifest is one that runs the test binary, which it can see wherever it is.
func (r *account) manifest(rest string) string {
	return fmt.Sprintf("run.command = [%q]\n", r.bin+"/guest") + strings.ReplaceAll(rest, "BIN", r.bin)
}

func (r *account) command(ctx context.Context, argv ...string) *exec.Cmd {
	return r.in.Command(ctx, argv...)
}

// result is how a command ended.
type result struct {
	out, err string
	code     int
}

// run starts a command as the account's user would, without a terminal.
func (r *account) run(t testing.TB, argv ...string) result {
	t.Helper()
	got := r.in.Run(t, argv...)
	return result{out: got.Out, err: got.Err, code: got.Code}
}

// bawn runs the program with a verb.
func (r *account) bawn(t testing.TB, args ...string) result {
	t.Helper()
	return r.run(t, append([]string{filepath.Join(r.bin, "bawn")}, args...)...)
}
