package plugincli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// RulePin is that of calls of tools that are not as they were agreed to.
const RulePin = "builtin:plugin-pin"

// ruleServer is recorded where a tool server fails.
const ruleServer = "builtin:mcp-server"

// newMCPCalls decides, asks and records what clients of the gateway and its
// servers want.
type mcpCalls struct {
	env      *launch.Env
	session  bawn.Session
	prompter *asking.Prompter
	log      *audit.Log
	events   *audit.Share // how it is written to
	calls    asking.Zone
	// meant gives the meanings of calls' arguments: those that say so have read
	// texts of strangers.
	meant asking.Zone
}

// newMCPCalls has the calls of a session decided, with more rules than the policy's files
// have.
func newMCPCalls(f *launch.Launch, e *launch.Env, s *mcpSession, rules []bawn.Rule) (*mcpCalls, error) {
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("open the audit log: %w", err), Hint: "what can't be recorded does not run"}
	}
	events := e.Share(log, "the gateway")
	run := &runner.Session{Session: s.Session, Guard: guard.Guard{Recorder: events}}
	prompter, err := f.Prompter(e, run, s.config, rules...)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	run.Contained = bawn.ContainedFully // each server has a sandbox of its own
	if s.config != nil && s.config.Decides() {
		run.Contained = bawn.Contained{}
	}
	z := asking.Zone{Name: "mcp", Question: launch.SessionQuestion(e, run), Contains: "the server keeps to a sandbox with what its manifest says; what it sends to its hosts leaves it"}
	c := &mcpCalls{env: e, session: s.Session, prompter: prompter, log: log, events: events, calls: z, meant: z}
	c.meant.Question.Taint.Untrusted = true
	return c, nil
}

func (c *mcpCalls) close() {
	c.prompter.Close()
	c.log.Close()
}

// judge is gateway.Options.Judge.
func (c *mcpCalls) judge(ctx context.Context, a bawn.Action, must string) bawn.Decision {
	a.Session, a.Agent = c.session.ID, c.session.Agent
	z := c.calls
	if a.Kind != bawn.Tool {
		z = c.meant
	}
	g := guard.Guard{Decider: overlay.Insist(c.prompter.Decider(z), RulePin, must), Approver: c.prompter.Approver(z), Recorder: c.events}
	return g.Check(ctx, a, bawn.Event{Parent: c.session.Parent, Provider: c.session.Provider, Mode: c.session.Mode, Details: map[string]string{"gateway": "mcp"}})
}

// report tells the human, and the log, what happens to a server.
func (c *mcpCalls) report(server, what, why string) {
	if what == "started" || what == "stopped" {
		return
	}
	fmt.Fprintf(c.env.Stderr, "bawn: mcp: %s: %s: %s\n", server, what, redact.Visible(why))
	err := c.events.Later(bawn.Event{
		Time: time.Now(), Session: c.session.ID, Parent: c.session.Parent, Agent: c.session.Agent, Kind: bawn.Tool.String(), Operation: bawn.Call.String(),
		Resource: server, Source: "auto", Rule: ruleServer, Reason: what + ": " + why, Mode: c.session.Mode,
	})
	if err != nil {
		fmt.Fprintf(c.env.Stderr, "bawn: note: that is not in the log: %v\n", err)
	}
}

// tokenName is the file in which the token for clients over HTTP is kept.
const tokenName = "mcp-token"

// mcpToken reads the token, and creates it if it does not exist.
func mcpToken(e *launch.Env) (string, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return "", err
	}
	name := filepath.Join(state, tokenName)
	text, err := launch.OwnSecret(name)
	if err != nil {
		return "", &verb.Error{Code: verb.ExitInternal, Err: err}
	}
	fmt.Fprintf(e.Stderr, "bawn: note: clients show the token that is in %q\n", name)
	return text, nil
}
