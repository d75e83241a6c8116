// Package launch puts a session together from its spec and starts it: configuration,
// agent, provider, places, git, network, session socket, and the sessions that its guest starts.
//
// Launch is the request. Launch.setUp collects the known facts before anything is planned
// (setup). The planner makes a Planned of it, and Planned.run starts that.
package launch

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A Launch is the session that is asked for.
type Launch struct {
	session.Spec
	Plan   bool                   // it is only shown
	onCopy bool                   // once that is known
	rules  *settings.CurrentRules // nil before they are needed
}

// SessionVariable tells a program inside which session it is in.
const SessionVariable = "BAWN_SESSION"

// lasting is how old a session is that will be there for longer.
const lasting = 150 * time.Millisecond

// settled is when the memory that the start has used is given back: the collector would
// not run for minutes, and takes longer than most of a start's parts.
const settled = 2 * time.Second

// Run starts the session, or shows it, and returns when it has ended.
func (l *Launch) Run(e *Env) error {
	// Bawn waits, mostly. With more processors the runtime would wake another
	// thread for each goroutine that could run, which costs more than it runs:
	// supervised calls take a quarter longer. At the start and in sessions that
	// end at once, two processors are of use, and the change stops all threads.
	defer time.AfterFunc(lasting, func() { runtime.GOMAXPROCS(1) }).Stop()
	defer time.AfterFunc(settled, debug.FreeOSMemory).Stop()
	if l.ordinary() {
		e.preforked = native.Prefork()
		defer e.preforked.Abandon()
	}
	p, err := l.Prepare(e)
	if err != nil {
		return nested(e, e.Elsewhere(err))
	}
	defer p.Discard()
	if !l.Plan {
		return nested(e, p.run())
	}
	defer p.Session.Close()
	if err := p.show(); err != nil || !l.JSON {
		return err
	}
	End{}.Write(e)
	return nil
}

// Prepare puts everything together that the session needs, and starts nothing of the
// guest. The caller ends it with Discard.
func (l *Launch) Prepare(e *Env) (*Planned, error) {
	relays := &relays{launch: l, env: e}
	relays.begin()
	defer relays.abandon()
	u, err := l.setUp(e)
	if err != nil {
		return nil, err
	}
	p := &planner{Planned: &Planned{setup: u}, relays: relays}
	if err := p.plan(); err != nil {
		p.Discard()
		return nil, err
	}
	return p.Planned, nil
}

// ordinary reports whether the session will probably be one in a native sandbox
// with a network of its own.
func (l *Launch) ordinary() bool {
	return !l.Plan && l.Parent == nil && (l.Provider == nil || is(l.Provider, layout.NativeName)) && !is(l.Net, bawn.NetworkFull.String())
}

// is reports whether a flag was given with this value.
func is(flag *string, value string) bool { return flag != nil && *flag == value }

// note tells the human something before the start.
func (l *Launch) note(e *Env, text string) {
	if !l.Quiet && !l.JSON {
		fmt.Fprintf(e.Stderr, "bawn: note: %s\n", redact.Visible(text))
	}
}

// noteUnset reports variables that --env names and that are not set.
func (l *Launch) noteUnset(e *Env) {
	for _, name := range l.Env {
		if strings.ContainsAny(name, "=*") || slices.ContainsFunc(l.environ(e), func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			continue
		}
		l.note(e, "--env "+name+" passes nothing on: the variable is not set here")
	}
}

// environ is the environment from which the isolation chooses.
func (l *Launch) environ(e *Env) []string {
	if l.Parent != nil {
		return l.Parent.Environ
	}
	return e.Environ
}

// NewSessionID returns 26 random characters.
func NewSessionID() string { return strings.ToLower(rand.Text()) }

// MakeStateDir makes the directories of the log and of what runs before the plan
// is made, so that there is something to hide.
func MakeStateDir(e *Env) error {
	dir, err := settings.AuditDir(&e.World)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the directory of the audit log: %w", err), Hint: "what can't be recorded does not run; mend the directory or set XDG_STATE_HOME"}
	}
	if err := os.MkdirAll(settings.RuntimeDir(&e.World, filepath.Dir(dir)), 0o700); err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make the directory of sessions: %w", err), Hint: "mend the directory or unset XDG_RUNTIME_DIR"}
	}
	return nil
}

// OwnDirs are Bawn's own places, which no guest sees.
func OwnDirs(e *Env) []string {
	var dirs []string
	if d, err := settings.StateDir(&e.World); err == nil {
		dirs = append(dirs, d)
		if run := settings.RuntimeDir(&e.World, d); !fspath.Below(run, d) { // a place that is covered within another opens that
			dirs = append(dirs, run)
		}
	}
	return append(dirs, filepath.Join(settings.BaseDir(&e.World, "XDG_CONFIG_HOME", ".config"), "bawn"), filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn"),
		filepath.Join(settings.BaseDir(&e.World, "XDG_DATA_HOME", ".local/share"), "bawn"))
}
