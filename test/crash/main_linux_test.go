package crash_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends what hangs.
const patience = 40 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2], os.Args[3:]))
	}
	os.Exit(testhome.Main("crash", m.Run))
}

var check = testhome.Check

// An account is the home of a user, with a project.
type account struct {
	t *testing.T
	*testhome.Account
	state, cache string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	r := &account{t: t, Account: testhome.NewAccount(t, patience)}
	r.state, r.cache = filepath.Join(r.Home, ".local/state/bawn"), filepath.Join(r.Home, ".cache/bawn")
	check(t, os.MkdirAll(filepath.Join(r.Work, effectsName), 0o755))
	r.Env = []string{"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
	return r
}

// runtime is where sockets and the registry are.
func (r *account) runtime() string { return filepath.Join(r.state, "run") }

// run runs a command to its end, which must be a good one, and returns what it
// prints.
func (r *account) run(argv ...string) string {
	r.t.Helper()
	got := r.Run(r.t, argv...)
	if got.Code != 0 {
		r.t.Fatalf("%q: %+v", argv, got)
	}
	return got.Out
}

// until waits for what is to come.
func (r *account) until(what string, holds func() bool) {
	r.t.Helper()
	testhome.Until(r.t, patience, what, holds)
}

// An effect is what a command of a guest has left: when.
type effect struct{ at []time.Time }

// effects are those of all commands, by the command's own name.
func (r *account) effects() map[string]effect {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.Work, effectsName, "*"))
	check(r.t, err)
	all := map[string]effect{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		check(r.t, err)
		for line := range strings.Lines(string(text)) {
			id, nanos, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseInt(nanos, 10, 64)
			check(r.t, err)
			e := all[id]
			e.at = append(e.at, time.Unix(0, n))
			all[id] = e
		}
	}
	return all
}

// decisions are the events about commands, by the command's own name, and how
// many records the log has. The log must verify.
func (r *account) decisions() map[string][]bawn.Event {
	r.t.Helper()
	dir := filepath.Join(r.state, "audit")
	report, err := audit.Verify(dir)
	if err != nil || report.Fault != nil {
		r.t.Errorf("the log: %v, %v", err, report.Fault)
	}
	all := map[string][]bawn.Event{}
	for e, err := range audit.Query(dir, audit.Filter{Kind: bawn.Command.String()}) {
		check(r.t, err)
		if _, id, ok := strings.Cut(e.Event.Resource, " "+markWord+" "); ok {
			all[id] = append(all[id], e.Event)
		}
	}
	return all
}

// recorded compares one command's effect with what the log says of it: no
// effect without exactly one permission, which was there first.
func (r *account) recorded(id string, e effect, events []bawn.Event) {
	r.t.Helper()
	var allowed []bawn.Event
	for _, ev := range events {
		if ev.Resolved == bawn.Allow {
			allowed = append(allowed, ev)
		}
	}
	switch {
	case len(e.at) > 1:
		r.t.Errorf("%s was executed %d times", id, len(e.at))
	case len(e.at) == 1 && len(allowed) != 1:
		r.t.Errorf("%s was executed, and the log has %d permissions for it: %v", id, len(allowed), events)
	case len(e.at) == 1 && allowed[0].Time.Add(time.Duration(allowed[0].DurationMS)*time.Millisecond).After(e.at[0]):
		r.t.Errorf("%s was executed at %v, before it was allowed: %v", id, e.at[0], allowed[0])
	}
}
