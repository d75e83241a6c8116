package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A setup holds the facts that are known before anything is planned.
type setup struct {
	*Launch
	env            *Env
	dir, workspace string
	config         *config.Config
	Known          *Known         // the agent, where it is one
	defined        *config.Config // the definition's request; nil without one
	asked          bawn.Session   // without a provider
	homes          func() homes   // of the machine
}

// setUp reads the configuration, recognises the agent, and says what session is asked
// for.
func (l *Launch) setUp(e *Env) (*setup, error) {
	u := &setup{Launch: l, env: e, homes: sync.OnceValue(func() homes { return findHomes(e.Getenv, e.Getenv("HOME")) })}
	go u.homes() // nothing else waits for it now
	var err error
	if u.dir, err = l.directory(e); err != nil {
		return nil, err
	}
	u.workspace = settings.WorkspaceOf(u.dir, e.Getenv("HOME"))
	if err := u.configure(); err != nil {
		return nil, err
	}
	cfg := u.config
	if l.Parent == nil { // a guest is not told of files that it does not see
		if err := cfg.Check(layout.CredentialNames); err != nil {
			return nil, settings.ConfigError(err)
		}
	}
	l.noteUnset(e)
	u.asked = bawn.Session{
		ID: NewSessionID(), Agent: cfg.Agent, Mode: cfg.Mode, Autonomy: cfg.Autonomy, Isolation: cfg.Isolation(u.workspace), Started: time.Now(),
	}
	if err := l.withoutRelay(e, cfg, &u.asked.Isolation); err != nil {
		return nil, err
	}
	if u.asked.Agent == "" {
		u.asked.Agent = u.Known.name(filepath.Base(l.Argv[0]))
	}
	return u, u.define()
}

// canAsk reports whether there is a terminal at which somebody could answer, or questions
// wait until there is one.
func (u *setup) canAsk() bool {
	if u.Parent != nil {
		return u.Parent.CanAsk
	}
	return terminal.Present([3]*os.File{u.env.Stdin, u.env.Stdout, u.env.Stderr}) || u.config.WhileAway() == "wait"
}

func (l *Launch) directory(e *Env) (string, error) {
	switch {
	case l.Parent != nil:
		dir, err := l.Parent.Directory(cmp.Or(l.Dir, e.Dir))
		return dir, refused(err)
	case l.Dir == "":
		if err := unplanted(e, "working directory", namedDir(e)); err != nil {
			return "", err
		}
		return settings.RealDir(e.Dir)
	}
	if err := unplanted(e, "--cwd", l.Dir); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(l.Dir)
	if err != nil {
		return "", verb.Usage("name a directory that exists", "--cwd %q: %v", l.Dir, err)
	}
	return real, nil
}
