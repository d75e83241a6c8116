// Package hookcli holds "bawn hook" and "bawn init": agents that ask before they act,
// and their settings that have them ask.
package hookcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/shim"
	"github.com/bawn-dev/bawn/internal/verb"
)

// NewHook makes `bawn hook`, which agents call.
// NewHook makes "bawn hook".
func NewHook(e *launch.Env) *cobra.Command {
	var timeout time.Duration
	var stay bool
	c := &cobra.Command{
		Use:   "hook AGENT",
		Short: "Answer an agent's hook: it is called by agents",
		Long: `Answer one message of an agent to its hook, from standard input, in that
agent's own protocol. "bawn init" writes it into the settings of agents.

In a session the session's host decides, asks its human and records. Outside of
one it is decided here: by the policy, by the agent's own prompt where it has
one, or by "bawn approve"; and an allowed command is replaced by one that runs
it in a sandbox, where the agent takes another command from its hook.

What can't be read, decided or recorded is denied, and so is what is not
answered before the agent stops waiting.`,
		Example: `  bawn hook claude <message.json
  bawn hook codex --timeout 10m`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: hook.Agents(),
		RunE: func(_ *cobra.Command, args []string) error {
			lean()
			signal.Ignore(syscall.SIGPIPE) // it would end the hook with a code that means "go on"
			h := &hooking{env: e, began: time.Now(), timeout: timeout, stay: stay}
			if len(args) != 1 {
				return h.write(hook.Broken(agentAmong(e.Args), fmt.Errorf("%d agents are named; want one of %q", len(args), hook.Agents())))
			}
			h.agent = args[0]
			return h.write(h.output())
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "how long the agent waits, as its settings say (default: what is known of the agent)")
	c.Flags().BoolVar(&stay, "no-sandbox", false, "outside of a session, leave allowed commands where they are: most are asked about then")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { // no error may pass for "allow"
		return (&hooking{env: e}).write(hook.Broken(agentAmong(e.Args), err))
	})
	return c
}

// memoryOfHook is how many bytes a hook may hold before its garbage is
// collected. It ends after one answer: collecting would only cost time.
const memoryOfHook = 128 << 20

// lean leaves the garbage of a short life where it is.
func lean() {
	debug.SetMemoryLimit(memoryOfHook)
	debug.SetGCPercent(-1)
}

// agentAmong finds the agent among the words of a command line that can't be read.
func agentAmong(args []string) string {
	for _, a := range args {
		if slices.Contains(hook.Agents(), a) {
			return a
		}
	}
	return ""
}

// A hooking is one call of a hook.
type hooking struct {
	env     *launch.Env
	agent   string
	began   time.Time
	timeout time.Duration // of the agent, or 0
	stay    bool          // commands stay where they are
}

// write answers. Where nothing can be written, the exit code says no.
func (h *hooking) write(out hook.Output) error {
	_, _ = h.env.Stderr.Write(out.Stderr) // the answer does not depend on it
	if _, err := h.env.Stdout.Write(out.Stdout); err != nil || len(out.Stdout) > 0 && nowhere(h.env.Stdout) {
		return verb.Status(verb.ExitUsage)
	}
	return verb.Status(out.Code)
}

// nowhere reports whether nobody reads the output: a closed standard output is
// /dev/null, by Go's runtime.
func nowhere(f *os.File) bool {
	to, err := f.Stat()
	null, none := os.Stat(os.DevNull)
	return err != nil || none == nil && os.SameFile(to, null)
}

// Bounds of the margin between the last moment for an answer and the agent's
// own time-out, after which it would go on.
const (
	leastMargin = 2 * time.Second
	lateGrace   = 500 * time.Millisecond // for the answer that says so to be made
)

// until is the last moment at which a decision is waited for.
func (h *hooking) until() time.Time {
	waits := cmp.Or(h.timeout, hook.Supports(h.agent).Patience)
	margin := max(leastMargin, waits/10)
	return h.began.Add(max(waits-margin, waits/2))
}

var errLate = errors.New("it was not decided before the agent stops waiting; try it again, and have your human answer at \"bawn approvals\"")

// output decides. In any case there is an answer in time.
func (h *hooking) output() hook.Output {
	ctx, cancel := context.WithDeadline(context.Background(), h.until())
	defer cancel()
	answer := make(chan hook.Output, 1)
	go func() {
		out := hook.Broken(h.agent, errors.New("the hook ended without a decision")) // stands if it is left by runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				out = hook.Broken(h.agent, fmt.Errorf("the hook failed: %v", p))
			}
			answer <- out
		}()
		out = h.decide(ctx)
	}()
	select {
	case out := <-answer:
		return out
	case <-ctx.Done():
	}
	select {
	case out := <-answer:
		return out
	case <-time.After(lateGrace):
		return hook.Broken(h.agent, errLate)
	}
}

// decide reads the message and answers it.
func (h *hooking) decide(ctx context.Context) hook.Output {
	message, err := io.ReadAll(io.LimitReader(h.env.Stdin, hook.MaxInput+1))
	if err != nil {
		return hook.Broken(h.agent, err)
	}
	c, err := hook.Read(h.agent, message)
	if err != nil {
		return hook.Broken(h.agent, err)
	}
	if c.Phase != hook.Seen && len(c.Actions) == 0 {
		return hook.Answer(c, hook.Outcome{Verdict: bawn.Allow})
	}
	if h.env.Guest() {
		return h.inside(ctx, c)
	}
	return h.outside(ctx, c)
}

// message is the call as a session socket is asked about it.
func message(c *hook.Call) intent.Judge {
	m := intent.Judge{Agent: c.Agent, Tool: c.Tool, Dir: c.Cwd, Why: c.Why, Mayask: true, Ahead: true}
	if c.Phase == hook.Seen {
		m.Seen = c.Event
		m.Dir = cmp.Or(m.Dir, "/")
	}
	for _, a := range c.Actions {
		m.Dir = a.Dir // of all of them
		m.Actions = append(m.Actions, intent.Act{Kind: a.Kind.String(), Operation: a.Operation.String(), Resource: a.Resource, Args: a.Args})
	}
	return m
}

// inside asks the session. The sandbox around both holds whatever it says.
func (h *hooking) inside(ctx context.Context, c hook.Call) hook.Output {
	v, err := shim.Judge(ctx, message(&c))
	switch {
	case err != nil && ctx.Err() != nil:
		return h.answer(c, hook.Outcome{Reason: "bawn: denied: " + errLate.Error()})
	case err != nil && c.Phase != hook.Seen:
		return hook.Broken(h.agent, err)
	}
	o := hook.Outcome{Reason: reasonOf(&v)}
	if v.Verdict == bawn.Allow.String() {
		o.Verdict = bawn.Allow
	}
	if o.Verdict == bawn.Allow && c.Command != "" && v.Canonical != c.Command {
		o.Rewritten = v.Canonical
	}
	return h.answer(c, o)
}

// failed is the answer where nothing could be decided or recorded: of past
// events only the human's log would have told.
func (h *hooking) failed(c hook.Call, err error) hook.Output {
	if launch.Inside(h.env) != "" {
		err = fmt.Errorf("this session has no socket at which a hook could ask; use another provider, or none of bawn's hooks in it: %w", err)
	}
	if c.Phase != hook.Seen {
		return hook.Broken(h.agent, err)
	}
	out := hook.Answer(c, hook.Outcome{})
	out.Stderr = []byte("bawn: not recorded: " + err.Error() + "\n")
	return out
}

func (h *hooking) answer(c hook.Call, o hook.Outcome) hook.Output {
	o.Reason = redact.Visible(o.Reason)
	return hook.Answer(c, o)
}

// reasonOf tells the model a reason that it can act on.
func reasonOf(v *intent.Verdict) string {
	text := "bawn: " + map[bool]string{true: "allowed", false: "denied"}[v.Verdict == bawn.Allow.String()] + ": " + cmp.Or(strings.TrimPrefix(v.Reason, v.Rule+": "), "no reason was given")
	if v.Rule != "" {
		text += " (rule " + v.Rule + ")"
	}
	if v.Remedy != "" {
		text += "; " + v.Remedy
	}
	return text
}
