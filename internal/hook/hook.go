// Package hook translates between what agents say to their hooks and what
// Bawn decides: JSON in, actions out; an outcome in, the answer that this agent
// understands out. It knows no policy and touches nothing.
//
// In nearly every agent a hook that fails, is late or gives an unreadable
// answer means "allow". So whatever can't be understood here becomes an answer
// that the agent takes for a no (Broken), and the caller's own failures do too.
package hook

import (
	"fmt"
	"time"

	"github.com/bawn-dev/bawn"
)

// MaxInput is how long a message of an agent may be, in bytes.
const MaxInput = 1 << 20

// OrDeny follows a call of bawn's hook in a POSIX shell line, where an event
// can veto. It denies if bawn is gone, was killed or crashed. To nearly every
// agent any exit code but 2 means that the call may go on, and to some even 2
// does where nothing was said.
const OrDeny = ` || { [ $? -eq 2 ] || echo "bawn hook gave no answer, so this is denied" >&2; exit 2; }`

// A Phase says what becomes of the answer to an event.
type Phase uint8

const (
	Unknown Phase = iota // denied
	Before               // the action waits for the answer, which may change it
	Approve              // the agent would ask its human now, and takes the answer instead
	Setting              // a file of the agent's settings has changed
	Seen                 // something has happened; the answer changes nothing
)

// A Call is one message of an agent.
type Call struct {
	Agent, Event, Tool string
	Phase              Phase
	Cwd                string // the agent's working directory, absolute
	Session, ID, Mode  string // as the agent says them; ID is the call's
	// Actions are those that the tool is about to take. None: the policy knows
	// no effect of it, and the agent's own rules apply.
	Actions []bawn.Action
	// Command is the one command line that an answer may replace, or "".
	Command string
	// Interactive says that the agent's own prompt could ask its human, if there
	// is one before it.
	Interactive bool
	// Later says that the actions are decided about where they happen, by Bawn
	// itself: here a denial counts and nothing else, and the agent's own rules go
	// on.
	Later bool
	// Why is the agent's stated purpose: untrusted.
	Why string

	input  input  // of the tool
	server string // whose tool it is, where the agent says so; else ""
}

// An Outcome is the decision. The zero Outcome denies.
type Outcome struct {
	Verdict   bawn.Verdict // Allow or Deny; Ask is the agent's own prompt, where it has one
	Reason    string       // for the model and the human
	Rewritten string       // what to run in place of Call.Command, or ""
}

// An Output is the output and exit code of the hook's process.
type Output struct {
	Stdout, Stderr []byte
	Code           int
}

// Abilities are those of an agent's hooks, as observed.
type Abilities struct {
	Veto    bool // a denial holds
	Rewrite bool // the command can be replaced
	Ask     bool // the agent's own prompt can be shown, where it is interactive
	// Patience is how long the agent waits where its settings say nothing; then
	// it goes on as if the hook had allowed.
	Patience time.Duration
}

// UnknownAgentError says that no agent of that name is known here.
type UnknownAgentError struct{ Agent string }

func (e *UnknownAgentError) Error() string {
	return fmt.Sprintf("no agent %q is known; want one of %q", e.Agent, Agents())
}

// ReadError says what could not be understood of a message.
type ReadError struct{ Agent, Why string }

func (e *ReadError) Error() string {
	return fmt.Sprintf("the message of %q can't be read: %s", e.Agent, e.Why)
}
