package p10_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends a command that hangs.
const patience = 40 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == showWord {
		if err := show(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testhome.Main("p10", m.Run))
}

var check = testhome.Check

type result = testhome.Result

// An account is the home of a user, with a project and a relay that
// serves.
type account struct {
	*testing.T
	*testhome.Account
	places string // where runtime, state and config are
	port   string // of the page
	relay  int    // its process
}

// policy lets the guest be run, and has what touches a file asked.
const policy = `[[rule]]
kind = "command"
pattern = "%s *"
verdict = "allow"
reason = "mine"
[[rule]]
id = "ask-touch"
kind = "command"
pattern = "touch *"
verdict = "ask"
[[rule]]
id = "no-mkdir"
kind = "command"
pattern = "mkdir *"
verdict = "deny"
`

// newAccount has Bawn's own places in the home directory, or in the workspace.
func newAccount(t *testing.T, inWorkspace bool) *account {
	t.Helper()
	r := &account{T: t, Account: testhome.NewAccount(t, patience)}
	r.places = r.Home
	if inWorkspace {
		r.places = filepath.Join(r.Work, "places")
	}
	for _, dir := range []string{r.places + "/run", r.places + "/state", r.places + "/config/bawn"} {
		check(t, os.MkdirAll(dir, 0o700))
	}
	check(t, os.WriteFile(r.places+"/config/bawn/policy.toml", fmt.Appendf(nil, policy, strings.Join(r.Guest(), " ")), 0o600))
	return r
}

// environ is that of the account's user; elsewhere that of one who keeps Bawn's
// places somewhere else.
func (r *account) environ(places string) []string {
	return []string{
		"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/bin:/bin", "LANG=C.UTF-8", "USER=dev", "TERM=xterm", "SHELL=/bin/sh",
		"XDG_RUNTIME_DIR=" + places + "/run", "XDG_STATE_HOME=" + places + "/state", "XDG_CONFIG_HOME=" + places + "/config",
	}
}

// elsewhere returns a directory for Bawn's files that is not the usual one.
func (r *account) elsewhere() string {
	dir := filepath.Join(r.Home, "elsewhere")
	for _, name := range []string{"run", "state", "config/bawn"} {
		check(r, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	text, err := os.ReadFile(r.places + "/config/bawn/policy.toml")
	check(r, err)
	check(r, os.WriteFile(dir+"/config/bawn/policy.toml", text, 0o600))
	return dir
}

// run starts one of the programs, without a terminal.
func (r *account) run(places string, argv ...string) result {
	r.Helper()
	in := *r.Account
	in.Env = r.environ(places)
	return in.Run(r, argv...)
}

var served = regexp.MustCompile(`the web page is served" address=https://localhost:(\d+)`)

// serve starts the relay, with its page.
func (r *account) serve() {
	r.Helper()
	log, err := os.Create(filepath.Join(r.Home, "relay.log"))
	check(r, err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(r.Bin, "bawn"), "serve", "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Env, cmd.Stderr = "/", r.environ(r.places), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	check(r, cmd.Start())
	r.relay = cmd.Process.Pid
	r.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r.until("the relay", func() bool {
		text, err := os.ReadFile(log.Name())
		found := served.FindSubmatch(text)
		if found != nil {
			r.port = string(found[1])
		}
		return err == nil && found != nil && r.run(r.places, "bawn", "approvals").Code == 0
	})
}

func (r *account) until(what string, holds func() bool) {
	r.Helper()
	defer func() {
		if r.Failed() {
			log, _ := os.ReadFile(filepath.Join(r.Home, "relay.log"))
			r.Logf("the relay: %s", log)
		}
	}()
	testenv.Until(r, what, holds)
}

// A victim is a session of two zones in the background, which waits for its
// human: nobody else may have it make the file.
type victim struct {
	id, question string
	host         int
	place        string // in the registry
	file         string
}

func (r *account) victim() victim {
	r.Helper()
	v := victim{file: filepath.Join(r.Work, "asked")}
	got := r.run(r.places, "bawn", "run", "--split", "--detach", "--net", "none", "--", "/bin/sh", "-c", "touch asked; sleep 300")
	v.id = strings.TrimSpace(got.Out)
	if got.Code != 0 || v.id == "" {
		r.Fatalf("the victim: %+v", got)
	}
	v.place = filepath.Join(r.places, "run/bawn/sessions", v.id)
	r.Cleanup(func() { r.run(r.places, "bawn", "kill", "--signal", "KILL", v.id) })
	r.until("the victim's question", func() bool {
		out := r.run(r.places, "bawn", "approvals", "--json").Out
		var q struct{ ID, Resource string }
		if json.NewDecoder(strings.NewReader(out)).Decode(&q) != nil {
			return false
		}
		v.question = q.ID
		return true
	})
	text, err := os.ReadFile(filepath.Join(v.place, "session.json"))
	check(r, err)
	var e struct{ PID int }
	check(r, json.Unmarshal(text, &e))
	v.host = e.PID
	return v
}

// terminal is where a host sits.
func (v *victim) terminal(r *account) string {
	to, err := os.Readlink("/proc/" + strconv.Itoa(v.host) + "/fd/0")
	check(r, err)
	return to
}

// A record is what stands in an audit log.
type record struct {
	Event struct{ Resource, Rule, Resolved string }
}

// recorded counts what the log says of a rule and a resource.
func (r *account) recorded(places, rule, resource string) int {
	r.Helper()
	out := r.run(places, "bawn", "audit", "query", "--json", "--limit", "0").Out
	n := 0
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var e record
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return n
		} else if err != nil {
			r.Fatalf("%v in %s", err, out)
		}
		if e.Event.Rule == rule && e.Event.Resolved == "deny" && strings.Contains(e.Event.Resource, resource) {
			n++
		}
	}
}
