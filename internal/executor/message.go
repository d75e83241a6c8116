package executor

import (
	"errors"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// A Start is the first thing the executor hears, once.
type Start struct {
	Keys    []ticket.Key
	Session string
	Plan    [32]byte // SHA-256 of the plan of the sandbox it is in
}

// A Do is one command. Everything but ID, Ticket, Terminal, Control, Led, Behind and
// Statement is part of the ticket's digest.
type Do struct {
	ID     uint64 // chosen by Client
	Ticket []byte
	Argv   []string // executed as it is; Argv[0] is looked up by Env's PATH
	Dir    string   // absolute and clean
	Env    []string // all of it
	// Stdio says which of the command's descriptors 0, 1 and 2 travel along. A
	// closed one is /dev/null in the command.
	Stdio [3]bool
	// Terminal makes descriptor Control the command's controlling terminal.
	Terminal bool
	Control  int `json:",omitempty"` // 0, 1 or 2
	// Led has the terminal's session led by a small process that outlives the
	// command: only then can the command be stopped from the keyboard, and given
	// the foreground again. It goes without Statement.
	Led bool `json:",omitempty"`
	// Behind has a led command start in its terminal's background, where it stops
	// when it reads, until Process.Foreground.
	Behind     bool `json:",omitempty"`
	Background bool
	// Limits may state OpenFiles, FileSizeMB and Timeout. Limits of the zone as
	// a whole (memory, CPU, processes, /tmp) are not the executor's: a command
	// that states one is refused.
	Limits Limits
	// Statement says that Argv is of StatementArgv: a State comes back.
	Statement bool
}

// Limits are bawn.Resources with their time in the wire form too.
type Limits bawn.Resources

// Digest returns the digest that a ticket for d must have, or why there can be
// none (ticket.Digest). Standard input is live if it travels along.
func (d *Do) Digest(session string, plan [32]byte) ([32]byte, error) {
	return ticket.Digest(ticket.Meaning{
		Argv: d.Argv, Dir: d.Dir, Env: d.Env, Stdin: ticket.Stdin{Live: d.Stdio[0]}, Background: d.Background,
		Limits: bawn.Resources(d.Limits), Session: session, Plan: plan,
	})
}

// An order is a message of the host. Exactly one member is set.
type order struct {
	Start  *Start       `json:",omitempty"`
	Trust  []ticket.Key `json:",omitempty"`
	Do     *wireDo      `json:",omitempty"`
	Signal *signal      `json:",omitempty"`
	Socket int          `json:",omitempty"` // of this family
	// Foreground gives a led command its terminal's foreground.
	Foreground uint64 `json:",omitempty"`
}

// Valid returns an error unless exactly one member is set.
func (o *order) Valid() error {
	return one("the order", o.Start != nil, o.Trust != nil, o.Do != nil, o.Signal != nil, o.Socket != 0, o.Foreground != 0)
}

// A wireDo carries the time of its limits, which bawn.Resources writes for
// humans.
type wireDo struct {
	Do
	Timeout time.Duration
}

type signal struct {
	ID     uint64
	Signal int
}

// A Ready is the executor's answer to Start.
type Ready struct {
	LandlockABI int
	// Apart says that no command can signal, trace or read the executor. It is
	// false below Landlock ABI 6, and where commands have CAP_SYS_PTRACE.
	Apart bool
}

// A report is a message of the executor. Exactly one member is set.
type report struct {
	Ready   *Ready   `json:",omitempty"`
	Started uint64   `json:",omitempty"`
	Changed *changed `json:",omitempty"`
	Refused *refused `json:",omitempty"`
	Socket  *made    `json:",omitempty"`
}

// A made answers the order for a socket, which travels along unless there is an
// errno.
type made struct{ Errno int }

// Valid returns an error unless exactly one member is set.
func (r *report) Valid() error {
	return one("the report", r.Ready != nil, r.Started != 0, r.Changed != nil, r.Refused != nil, r.Socket != nil)
}

type changed struct {
	ID     uint64
	Status uint32        // as wait(2) has it
	State  *intent.State `json:",omitempty"` // of a statement, with its end
}

type refused struct {
	ID        uint64
	Rule, Why string
	Errno     int `json:",omitempty"` // with RuleStart
}

func one(what string, set ...bool) error {
	n := 0
	for _, is := range set {
		if is {
			n++
		}
	}
	if n != 1 {
		return errors.New(what + " does not say exactly one thing")
	}
	return nil
}
