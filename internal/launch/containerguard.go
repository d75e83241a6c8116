package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// ContainerGuard decides, asks and records what containers do.
func ContainerGuard(f *Launch, e *Env, cfg *config.Config, s *runner.Session) (check func(context.Context, bawn.Action) bawn.Decision, end func(), err error) {
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return nil, nil, err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return nil, nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run"}
	}
	s.Guard.Recorder = e.Share(log, "the proxy")
	prompter, err := f.Prompter(e, s, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	zone, err := containerZone(e, s, s.Isolation)
	if err != nil {
		prompter.Close()
		return nil, nil, errors.Join(err, log.Close())
	}
	g := guard.Guard{Decider: prompter.Decider(zone), Approver: prompter.Approver(zone), Recorder: s.Guard.Recorder}
	event := bawn.Event{Provider: s.Session.Provider, Mode: s.Mode}
	check = func(ctx context.Context, a bawn.Action) bawn.Decision { return g.Check(ctx, a, event) }
	return check, func() { prompter.Close(); log.Close() }, nil
}
