//go:build linux || darwin

package runner

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// Bounds of the second zone.
const (
	executorPatience = 20 * time.Second // until the executor is ready
	keyLife          = time.Hour        // of the key that signs tickets
)

// ExecutorArgument, as Bawn's only one, makes it the executor of the zone in
// which commands run. Nobody types it.
const ExecutorArgument = "@executor"

// RuleExecutorGone is recorded when the zone in which commands run has ended
// before its session.
const RuleExecutorGone = "builtin:executor-gone"

// RuleTogether is recorded where commands are not kept apart from what starts
// them (executor.Ready).
const RuleTogether = "builtin:executor-not-apart"

// A Split is the second zone of a session, in which the agent's commands run.
// The session's own plan is then that of the agent, and shows the session socket.
type Split struct {
	Plan      sandbox.Plan
	Isolation bawn.Isolation
	// Network reaches the network by name for the commands; nil where their
	// isolation has none.
	Network Network
	Place   *Place
	Socket  *net.UnixListener
	Program string // Bawn itself, as the zone sees it
	// Copy is the one mount of the copy on which both zones work, or nil.
	Copy *sandbox.SharedCopy
	// Zone is shared by the decisions and questions about commands.
	Zone asking.Zone
	// Requests are served at the session socket besides commands.
	Requests sessionsocket.Handlers
}

// Close closes the session socket and removes the place, after both zones. It may be called more than once,
// and for nil.
func (s *Split) Close() error {
	if s == nil {
		return nil
	}
	errs := []error{s.Copy.Close()}
	if s.Socket != nil {
		errs = append(errs, ignoreClosed(s.Socket.Close()))
		s.Socket = nil
	}
	if s.Place != nil {
		errs = append(errs, s.Place.Close())
		s.Place = nil
	}
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// execution is the running second zone.
type execution struct {
	session *Session
	guest   sandbox.Guest
	client  *executor.Client
	issuer  *ticket.Issuer
	log     *denials // of the zone
	plan    [32]byte
	done    sync.WaitGroup
	end     context.CancelFunc
	ctx     context.Context
}

// startExecution makes the zone and starts the executor in it. close ends what
// it has made, also after an error.
func startExecution(ctx context.Context, s *Session, log *denials) (x *execution, err error) {
	x = &execution{session: s, log: log, issuer: ticket.NewIssuer(time.Now)}
	x.ctx, x.end = context.WithCancel(ctx)
	if x.plan, err = digest(s.Split.Plan); err != nil {
		return x, err
	}
	if x.guest, err = s.Provider.Start(s.Split.Plan, log.add); err != nil {
		return x, fmt.Errorf("make the zone in which commands run: %w", err)
	}
	ours, theirs, err := ipc.Pair()
	if err != nil {
		return x, err
	}
	defer theirs.Close()
	if x.client, err = executor.New(ours); err != nil {
		return x, errors.Join(err, ours.Close())
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return x, err
	}
	defer null.Close()
	_, err = x.guest.Exec(sandbox.Command{Argv: []string{s.Split.Program, ExecutorArgument}, Env: []string{}, Stdio: [3]*os.File{theirs, null, null}, Last: true})
	if err != nil {
		return x, fmt.Errorf("start the executor: %w", err)
	}
	return x, x.greet()
}

// greet tells the executor whom to trust.
func (x *execution) greet() error {
	ctx, cancel := context.WithTimeout(x.ctx, executorPatience)
	defer cancel()
	ready, err := x.client.Start(ctx, executor.Start{Keys: x.issuer.Keys(), Session: x.session.ID, Plan: x.plan})
	if err == nil && !ready.Apart {
		err = x.recordTogether(ctx, ready)
	}
	if err != nil {
		return fmt.Errorf("start the executor: %w", err)
	}
	x.done.Go(x.rotate)
	return nil
}

// recordTogether records that commands can end what starts them. The human has
// been told before (executor.Partly).
func (x *execution) recordTogether(ctx context.Context, ready executor.Ready) error {
	e := x.session.event(inZone(map[string]string{"landlock_abi": strconv.Itoa(ready.LandlockABI)}, egress.Execution))
	e.Time, e.Kind, e.Operation, e.Resource = time.Now(), "session", "start", "executor"
	e.Requested, e.Resolved, e.Source, e.Rule = bawn.Allow, bawn.Allow, "auto", RuleTogether
	e.Reason = "commands can end the executor, and all commands of the session with it"
	return x.session.Guard.Recorder.Record(ctx, e)
}

// digest is what tickets say of the plan in which they hold.
func digest(p sandbox.Plan) ([32]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return [32]byte{}, fmt.Errorf("write the plan down: %w", err)
	}
	return sha256.Sum256(text), nil
}

// rotate gives the executor a new key now and then.
func (x *execution) rotate() {
	tick := time.NewTicker(keyLife)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if x.client.Trust(x.issuer.Rotate()) != nil {
				return // it is gone
			}
		case <-x.ctx.Done():
			return
		}
	}
}

// serve opens the zone's network, about which a asks, and the session socket of the agent,
// whose refusals go to agent.
func (x *execution) serve(a *asker, prompter *asking.Prompter, agent *denials) error {
	s := x.session
	if s.Split.Network != nil {
		sockets := x.guest.Network()
		if sockets == nil {
			return errors.New("BUG(bawn): the plan of the second zone made no sockets for the relay")
		}
		if err := s.Split.Network.Serve(sockets.Files(), remote.Handlers{Ask: a.ask, Withdraw: a.withdraw, Denied: x.log.told}); err != nil {
			return fmt.Errorf("give the zone in which commands run its network: %w", err)
		}
	}
	h := s.Split.Requests
	h.Session, h.Exec, h.Refused = s.ID, x.intents(prompter).Exec, agent.atSocket
	x.done.Go(func() {
		_ = sessionsocket.Serve(x.ctx, s.Split.Socket, h) // ends with ctx; until then it goes on
	})
	return nil
}

// close ends the zone and everything in it.
func (x *execution) close() {
	if x == nil {
		return
	}
	x.end()
	if x.client != nil {
		_ = x.client.Close() // its guest is ended anyway
	}
	if x.guest != nil {
		_ = x.guest.Close()
	}
	x.done.Wait()
	x.issuer.Close()
}

// gone is closed when the zone has ended by itself; it is nil without an execution
// zone.
func (x *execution) gone() <-chan struct{} {
	if x == nil {
		return nil
	}
	return x.client.Done()
}

// hits are the limits that commands ran into.
func (x *execution) hits() []sandbox.Hit {
	if x == nil {
		return nil
	}
	return x.guest.Hits()
}

// lost says that the zone has ended before the session has: nothing that the
// agent wants executed is executed any more.
func (x *execution) lost() {
	x.log.add(sandbox.Denial{
		Kind: bawn.Command, Operation: bawn.Exec, Resource: "*", Rule: RuleExecutorGone, Reason: "the zone in which commands run has ended",
		Remedy: "end the session and start it anew",
	})
}

// intents serve the agent's commands.
func (x *execution) intents(prompter *asking.Prompter) *sessionsocket.Intents {
	s := x.session
	reasoning, commands := s.Plan.Environ(), s.Split.Plan.Environ()
	return &sessionsocket.Intents{
		Session: s.Session, Guard: x.guard(prompter), Event: s.event(nil), Issuer: x.issuer, Executor: x.client, Plan: x.plan,
		Environ:  sessionsocket.Environ{Reasoning: reasoning, Execution: commands, Never: withheld(reasoning, commands)},
		Terminal: x.guest.OpenTerminal, Ask: askAhead,
	}
}

// askAhead is how an agent asks for what nobody was there to allow, where that
// is one plain command: a yes holds for the very words. A refusal by a rule or
// a human can't be lifted by asking.
func askAhead(a bawn.Action, d bawn.Decision) string {
	if d.Rule != guard.RuleApproval || a.Args != nil || len(a.Resource) > 500 || strings.ContainsAny(a.Resource, "\n'\"`$&|;<>(){}*?[]#~\\!=") {
		return ""
	}
	return "bawn request -- " + a.Resource
}

// shortestKey is how long a value must be to be looked for in others.
const shortestKey = 12

// withheld says what may not leave the agent's zone: variables that only the
// agent was started with, such as its keys and their placeholders, under any
// name, and those of agents and models.
func withheld(reasoning, commands []string) func(name, value string) bool {
	names, values := map[string]bool{}, []string{}
	for _, kv := range reasoning {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains(commands, kv) {
			continue
		}
		if names[name] = true; len(value) >= shortestKey {
			values = append(values, value)
		}
	}
	return func(name, value string) bool {
		return names[name] || session.OfModel(name) || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(value, v) })
	}
}

// guard decides, asks and records the agent's commands.
func (x *execution) guard(prompter *asking.Prompter) guard.Guard {
	s := x.session
	return s.Refusals.Of(guard.Guard{Decider: prompter.Decider(s.Split.Zone), Approver: prompter.Approver(s.Split.Zone), Recorder: s.Guard.Recorder, Now: s.Guard.Now})
}

// inZone adds to an event's details which zone it is about.
func inZone(details map[string]string, zone string) map[string]string {
	if zone == "" {
		return details
	}
	all := map[string]string{"zone": zone}
	maps.Copy(all, details)
	return all
}
