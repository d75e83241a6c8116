// Package egress holds the words with which `bawn run` and the relay of its
// session's network speak to each other. The relay is a process of its own
// (bawnd egress): code that starts slowly, and secrets, stay out of the program
// that supervises the sandbox.
//
// They share a socket (unix(7), a stream) on which each line is one Message of
// JSON. First bawn says Hello, and a relay of another release refuses. Then bawn
// sends the Config. The relay answers Ready with what has to be placed in the
// guest, so that bawn can plan the sandbox, and Placed once all of it is
// written. It makes the sandbox and sends its listening sockets over a second
// socket; the relay serves. From then on the relay asks and tells, and bawn
// answers. When either side goes, so does the other.
package egress

import (
	"context"
	"net"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/dotenv"
)

// The zones of a split session.
const (
	Reasoning = "reasoning" // the agent
	Execution = "execution" // what it executes
)

// PassphraseFD names the variable that says on which descriptor the passphrase of the vault
// can be read.
const PassphraseFD = "BAWN_PASSPHRASE_FD"

// PassphraseAt is that descriptor in the relay's process, beside those of its messages and
// of the guest's sockets.
const PassphraseAt = 5

// A Config describes a session to its relay.
type Config struct {
	Session   string        `json:"session"`
	Parent    string        `json:"parent,omitempty"`
	Agent     string        `json:"agent"`
	Provider  string        `json:"provider"`
	Mode      bawn.Mode     `json:"mode"`
	Autonomy  bawn.Autonomy `json:"autonomy"`
	Workspace string        `json:"workspace"`
	Dir       string        `json:"dir"`
	Home      string        `json:"home"`
	System    string        `json:"system"` // as runtime.GOOS
	Egress    bawn.Egress   `json:"egress"`
	Ask       time.Duration `json:"ask"`     // how long a connection waits for an answer
	CanAsk    bool          `json:"can_ask"` // somebody is there to be asked
	Rules     []bawn.Rule   `json:"rules"`   // of the policy files
	Watch     []Watched     `json:"watch"`   // those files; where one has changed, the relay asks for the rules anew
	AuditDir  string        `json:"audit_dir"`
	// Prompt says that a human sits at the terminal that controls bawn run, and
	// may be asked there for the vault's passphrase. At that of a session that a
	// guest has started sits the guest.
	Prompt bool `json:"prompt"`
	// Zone is the part of a split session whose network this is, for the log:
	// "reasoning" or "execution". "" for a session that is not split.
	Zone string `json:"zone,omitempty"`
	// Models are the hosts of the APIs of models, in a split session. The zone
	// "reasoning" is lent only the secrets that are bound to one of them, and
	// reaches nothing that Egress does not name. Every other zone is lent all
	// other secrets.
	Models []string `json:"models,omitempty"`
	// Masks are the placeholders that the guest sees in files of the workspace.
	Masks []dotenv.Mask `json:"masks,omitempty"`
	// Own are the hosts at which the session's agent logs in by itself, in the forms
	// of isolation.hosts.
	Own []string `json:"own,omitempty"`
	// Quiet are closed hosts whose refusal is not reported: the agent sends its
	// telemetry there.
	Quiet []string `json:"quiet,omitempty"`
	// Place is a directory that does not exist yet. The relay makes it, keeps
	// the guest's files in it, and removes it at its end.
	Place string `json:"place"`
}

// A Watched is a file of rules, with its state before the rules were read.
type Watched struct {
	Path  string           `json:"path"`
	Stamp atomicfile.Stamp `json:"stamp"`
}

// Rules are those in force.
type Rules struct {
	Rules    []bawn.Rule `json:"rules"`
	Settling bool        `json:"settling,omitempty"` // they are others soon, without a change of the files
	Failed   string      `json:"failed,omitempty"`   // why they can't be had: nothing is decided then
}

// A File is one file or directory of the host that the guest finds elsewhere.
type File struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Ready lists the relay's needs in the guest.
type Ready struct {
	Files   []File   `json:"files,omitempty"`
	Sockets []string `json:"sockets,omitempty"` // targets of Files to which the guest connects
	Env     []string `json:"env,omitempty"`     // NAME=value
	Notes   []string `json:"notes,omitempty"`   // for the human, before the start
}

// A Question is one connection or request that a human should decide.
type Question struct {
	ID     uint64      `json:"id"`
	Action bawn.Action `json:"action"`
	Reason string      `json:"reason"`
	Rule   string      `json:"rule"`
	Until  time.Time   `json:"until"` // then it is denied
	Holds  string      `json:"holds,omitempty"`
	Single bool        `json:"single,omitempty"` // this and Holds as in bawn.Decision
	// From is the address of the guest's end of the connection, as netip.AddrPort
	// writes it; "" where it is not known.
	From string `json:"from,omitempty"`
}

// clientKey is under which a context has the address of a connection's client.
type clientKey struct{}

// WithClient returns a context that says from where a guest's connection comes.
func WithClient(ctx context.Context, from net.Addr) context.Context {
	return context.WithValue(ctx, clientKey{}, from)
}

// ClientOf returns that address, or "" if the context has none.
func ClientOf(ctx context.Context) string {
	if from, ok := ctx.Value(clientKey{}).(net.Addr); ok && from != nil {
		return from.String()
	}
	return ""
}

// An Answer is the human's answer to the question with the same ID.
type Answer struct {
	ID     uint64      `json:"id"`
	Answer bawn.Answer `json:"answer"`
}

// A Denial is something the relay refused, so that its human can be told.
type Denial struct {
	Operation bawn.Operation `json:"operation"`
	Resource  string         `json:"resource"`
	Rule      string         `json:"rule"`
	Reason    string         `json:"reason"`
	Remedy    string         `json:"remedy"`
}

// RuleFailed is the Rule of a Denial where nobody refused: the host can't be reached.
const RuleFailed = "builtin:egress-failed"

// A Message is one line. Exactly one of its fields is set.
type Message struct {
	Hello    *Hello    `json:"hello,omitempty"`    // to the relay, first
	Config   *Config   `json:"config,omitempty"`   // to the relay
	Ready    *Ready    `json:"ready,omitempty"`    // from the relay, in answer
	Placed   bool      `json:"placed,omitempty"`   // from the relay: everything that Ready names is written
	Serving  bool      `json:"serving,omitempty"`  // from the relay: it has the sockets
	Ask      *Question `json:"ask,omitempty"`      // from the relay
	Withdraw uint64    `json:"withdraw,omitempty"` // from the relay: nobody waits for this answer any more
	Answer   *Answer   `json:"answer,omitempty"`   // to the relay
	Stale    bool      `json:"stale,omitempty"`    // from the relay: a file of rules has changed
	Rules    *Rules    `json:"rules,omitempty"`    // to the relay, in answer
	Denial   *Denial   `json:"denial,omitempty"`   // from the relay
	Failed   string    `json:"failed,omitempty"`   // from the relay: it can't go on, and why
}
