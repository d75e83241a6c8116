package tree_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends a command that hangs.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2:]))
	}
	os.Exit(testhome.Main("tree", m.Run))
}

var check = testhome.Check

type result = testhome.Result

// An account is the home of a user, with a project and a key that no
// guest may read and a place beside the project that none may write.
type account struct {
	*testhome.Account
	other string
}

const key = "PRIVATE-KEY-0123456789"

func newAccount(t *testing.T, features ...string) *account {
	t.Helper()
	r := &account{Account: testhome.NewAccount(t, patience, features...)}
	r.other = filepath.Join(r.Home, "other")
	r.Env = []string{
		"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=dumb", "SHELL=/bin/sh",
		"HOSTS_OWN=the-hosts-own", "OPENAI_API_KEY=" + modelKey,
	}
	for _, dir := range []string{r.other, filepath.Join(r.Work, ".git")} {
		check(t, os.MkdirAll(dir, 0o700))
	}
	r.Put(t, ".ssh/id", key, 0o600)
	return r
}

// put writes a file of the project.
func (r *account) put(t *testing.T, name, text string) {
	t.Helper()
	r.Put(t, filepath.Join(r.Work, name), text, 0o755)
}

// bawn is a command line of `bawn run`.
func (r *account) bawn(flags []string, argv ...string) []string {
	return append(append([]string{filepath.Join(r.Bin, "bawn"), "run"}, flags...), append([]string{"--"}, argv...)...)
}

// modelKey is what nobody but the agent of a split session may hold.
const modelKey = "sk-model-0123456789abcdef"

// start starts a command; its end is waited for by what is returned.
func (r *account) start(t testing.TB, argv ...string) func() result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	cmd := r.Command(ctx, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	check(t, cmd.Start())
	end := sync.OnceValue(func() result {
		defer cancel()
		_ = cmd.Wait() // the code says it
		return result{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
	})
	t.Cleanup(func() { cancel(); end() })
	return end
}

// A session is one of those that run.
type session struct {
	ID, Parent, Agent string
	PID               int
}

func (r *account) sessions(t *testing.T) []session {
	t.Helper()
	var list []session
	got := r.Run(t, filepath.Join(r.Bin, "bawn"), "ps", "--json")
	if err := json.Unmarshal([]byte(got.Out), &list); err != nil {
		t.Errorf("%v: %s%s", err, got.Out, got.Err)
	}
	return list
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// sh runs a line of shell as a guest, under flags.
func (r *account) sh(t testing.TB, flags []string, line string) result {
	t.Helper()
	return r.Run(t, r.bawn(flags, "/bin/sh", "-c", line)...)
}

// child runs a line of shell in a session below one that the human has started
// with other flags.
func (r *account) child(t testing.TB, parent, flags []string, line string) result {
	t.Helper()
	return r.Run(t, r.bawn(parent, r.bawn(flags, "/bin/sh", "-c", line)...)...)
}

// said wants a guest that could, or could not.
func said(t *testing.T, what string, r result, can bool) {
	t.Helper()
	word := map[bool]string{true: "yes", false: "no"}[can]
	if !strings.Contains(r.Out, word) || strings.Contains(r.Out, map[bool]string{true: "no", false: "yes"}[can]) {
		t.Errorf("%s: it could: %t, want %t: %d %q\n%s", what, !can, can, r.Code, r.Out, r.Err)
	}
}
