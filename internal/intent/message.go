package intent

import (
	"errors"
	"fmt"
	"time"
)

// A Hello is the guest's first message. Exactly one of its members is set.
type Hello struct {
	Exec    *Exec    `json:",omitempty"`
	Run     *Run     `json:",omitempty"`
	Request *Request `json:",omitempty"`
	Judge   *Judge   `json:",omitempty"`
	Tools   *Tools   `json:",omitempty"`
	Why     *Why     `json:",omitempty"`
}

// Valid returns an error unless exactly one member is set.
func (h *Hello) Valid() error {
	return one("the first message", h.Exec != nil, h.Run != nil, h.Request != nil, h.Judge != nil, h.Tools != nil, h.Why != nil)
}

// An Exec asks for one command to be run.
type Exec struct {
	Argv []string
	Dir  string   // absolute
	Env  []string // NAME=value
	// Stdio says which of the descriptors 0, 1 and 2 are open: those travel
	// with the message, in this order.
	Stdio      [3]bool
	Terminal   bool // descriptor 0 is a terminal
	Rows, Cols uint16
	// Statement says that this is one statement of a shell that reads its
	// input: its directory and exported variables come back.
	Statement bool
}

// Files is how many descriptors travel along.
func (e *Exec) Files() int { return count(e.Stdio) }

// A Run asks for a session below the guest's own.
type Run struct {
	Args       []string // of `bawn run`
	Dir        string
	Env        []string
	Stdio      [3]bool // as in Exec
	Terminal   bool
	Rows, Cols uint16
}

// Files is how many descriptors travel along.
func (r *Run) Files() int { return count(r.Stdio) }

// A Request asks a human for a change of the session's rights.
type Request struct {
	Want []string // for example "--allow", "example.org"
	Why  string   // the agent's own words: untrusted
	Dir  string   // where a command would run, absolute
}

// A Why asks for the session's last refusals, or for the rule that hides a
// place.
type Why struct {
	Last int    // at most as many; 0 is all that is kept
	Path string `json:",omitempty"` // of the guest, absolute and clean; "" for the last refusals
}

// Reasons are the answer to a Why, the newest last.
type Reasons struct{ List []Reason }

// A Reason is one refusal: of what, by which rule, why, and what would allow it.
type Reason struct {
	At        time.Time `json:"at"`
	Times     int       `json:"times"` // that it was refused
	Kind      string    `json:"kind"`
	Operation string    `json:"operation"`
	Resource  string    `json:"resource"`
	Rule      string    `json:"rule"`
	Reason    string    `json:"reason"`
	Remedy    string    `json:"remedy,omitempty"`
}

// A Tools asks for the servers of the Model Context Protocol that the human has
// installed: their gateway, outside, speaks over descriptors 0 and 1.
type Tools struct {
	Servers []string // none: all of them
	Dir     string
	Stdio   [3]bool // as in Exec
}

// Files is how many descriptors travel along.
func (t *Tools) Files() int { return count(t.Stdio) }

// A Judge asks for the verdict about something that an agent is about to do by
// itself, or reports what it has done. Nothing is executed: the answer is a
// Verdict on all of the actions.
type Judge struct {
	Agent   string // as a hook is called for it, "claude"; untrusted
	Tool    string // the agent's name for its tool; untrusted
	Dir     string // where, absolute
	Why     string // the agent's own words: untrusted
	Actions []Act  // 1 to MaxActs
	Mayask  bool   // a human may be asked; otherwise what would ask is denied
	// Ahead says that the same will be judged again when it is executed, which a
	// yes for once is to hold for.
	Ahead bool `json:",omitempty"`
	// Contained accepts a command that is merely not known to be harmless,
	// because a sandbox holds it. The starter of every command sets it, where
	// nobody was asked to decide each.
	Contained bool `json:",omitempty"`
	// Seen is set if the agent only reports what it has done: the name of the
	// event. It is recorded, and the verdict says whether that worked.
	Seen string `json:",omitempty"`
}

// MaxActs is how many actions one Judge may have.
const MaxActs = 64

// An Act is one action in the words of package bawn.
type Act struct {
	Kind, Operation, Resource string
	Args                      []string `json:",omitempty"`
}

// Remedies of a denial: what an agent may do about it, and what it does if nobody has
// answered, since trying again would not help.
const (
	AnotherWay = "do it another way, or ask the human for it"
	Meanwhile  = "go on with what does not need it, and say at the end what is left to do"
)

// A Verdict is what becomes of a Judge: "allow" or "deny". The denied action
// has a remedy. Where the one action was a command line that is allowed, only
// Canonical may be executed, with Env set.
type Verdict struct {
	Verdict, Rule, Reason, Remedy, Canonical string
	Env                                      []string `json:",omitempty"`
}

// An Update is a later message of the guest. Exactly one of Signal, the size
// and Exec is set.
type Update struct {
	Signal     int `json:",omitempty"`
	Rows, Cols uint16
	Exec       *Exec `json:",omitempty"` // the shell's next statement
}

// Valid returns an error unless exactly one thing is said.
func (u *Update) Valid() error {
	return one("the update", u.Signal != 0, u.Rows != 0 || u.Cols != 0, u.Exec != nil)
}

// A Reply is a message of the session socket. Exactly one member is set, but for a
// State, which comes along with the Exit of its statement.
type Reply struct {
	Started bool           `json:",omitempty"`
	Denied  *Refusal       `json:",omitempty"`
	Stopped int            `json:",omitempty"` // by this signal
	Exit    *Exit          `json:",omitempty"`
	State   *State         `json:",omitempty"`
	Answer  *RequestAnswer `json:",omitempty"`
	Verdict *Verdict       `json:",omitempty"`
	Why     *Reasons       `json:",omitempty"`
}

// Valid returns an error unless the reply says one thing.
func (r *Reply) Valid() error {
	if r.State != nil && r.Exit == nil {
		return errors.New("the reply has a state and no exit; want both of one statement")
	}
	return one("the reply", r.Started, r.Denied != nil, r.Stopped != 0, r.Exit != nil, r.Answer != nil, r.Verdict != nil, r.Why != nil)
}

// An Exit is the end of a command. The zero Exit is success.
type Exit struct {
	Code   int
	Signal int // that ended it, or 0
}

// A State is the state that a statement leaves to its shell.
type State struct {
	Dir   string   // absolute
	Env   []string // what is exported, NAME=value
	Ended bool     // the shell has ended itself; Dir and Env are empty
}

// A Refusal says why something did not happen and how to ask for it.
type Refusal struct {
	By      string // "bawn"
	Rule    string
	Reason  string
	Remedy  string
	Session string
	Ask     string // the `bawn request` line
}

// A RequestAnswer is what became of a Request.
type RequestAnswer struct {
	Granted bool
	Why     string
}

func one(what string, set ...bool) error {
	n := 0
	for _, is := range set {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%s says %d things; want exactly one", what, n)
	}
	return nil
}

func count(list [3]bool) int {
	n := 0
	for _, is := range list {
		if is {
			n++
		}
	}
	return n
}
