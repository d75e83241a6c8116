package split_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends a command that hangs.
const patience = time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2:]))
	}
	os.Exit(testhome.Main("split", m.Run))
}

var check = testhome.Check

type result = testhome.Result

// An account is the home of a user, with a project.
type account struct{ *testhome.Account }

func newAccount(t *testing.T, features ...string) *account {
	t.Helper()
	r := &account{testhome.NewAccount(t, patience, append(features, "git")...)}
	r.Env = []string{
		"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=dumb", "SHELL=/bin/bash",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a", "OPENAI_API_KEY=" + modelKey,
	}
	r.Rule(t, "allow", "command", strings.Join(r.Guest("*"), " ")) // a program that no policy knows
	return r
}

// line is a command line of the test binary, as a line of shell.
func (r *account) line(words ...string) string { return strings.Join(r.Guest(words...), " ") }

// modelKey is what nobody but the agent may hold.
const modelKey = "sk-model-0123456789abcdef"

// split runs the guest's words in the zone of an agent.
func (r *account) split(t testing.TB, flags []string, words ...string) result {
	t.Helper()
	argv := append([]string{filepath.Join(r.Bin, "bawn"), "run", "--split", "--mode", "permissive", "--env", "OPENAI_API_KEY"}, flags...)
	return r.Run(t, append(append(argv, "--"), r.Guest(words...)...)...)
}

// host starts a server on this machine's loopback, and returns its port.
func host(t *testing.T, says string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, says) }))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	check(t, err)
	return at.Port()
}
