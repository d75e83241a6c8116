package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Rules about what a request carries.
const (
	RuleLent    = "builtin:lent-secret"
	RuleForeign = "builtin:foreign-credential"
	RuleFound   = "builtin:workspace-secret"
	RuleBudget  = "builtin:secret-budget"
)

// A crossing sorts what leaves the sandbox in a request (SPEC §2a).
type crossing uint8

const (
	readUnlisted crossing = iota // a request that reads, at a host of which entries list others
	upload                       // one that changes something there, a credential of the guest's own, a value of the workspace's secrets
	lentRead                     // a secret of the session's in a request that reads
	lentWrite                    // and in one that changes something
)

// boundary holds a mode's verdicts in the order of the crossings. A mode that it
// does not hold denies.
var boundary = map[bawn.Mode][4]bawn.Verdict{
	//                    unlisted upload lent: read write
	bawn.ModePlan:       {deny, deny, deny, deny},
	bawn.ModeStrict:     {ask, ask, ask, ask},
	bawn.ModeSafe:       {ask, ask, allow, ask},
	bawn.ModeNormal:     {ask, ask, allow, ask},
	bawn.ModeAuto:       {ask, ask, allow, ask},
	bawn.ModePermissive: {ask, ask, allow, ask},
}

// carries is what a request has in it besides what it asks for.
type carries struct {
	lends   []string // secrets of the session's
	foreign []string // credentials of the guest's own
	found   []string // values of the workspace's secrets
	over    []string // secrets of which the session has used up its budget
}

// The beginnings of the arguments that say what a request carries.
const (
	carriesLent    = "lends="
	carriesForeign = "credential="
	carriesFound   = "holds="
	carriesOver    = "over-budget="
)

// Carries returns what the arguments of a request end with: the secrets that are
// put in, the credentials that the guest has added by itself, the values of the
// workspace's secrets, and the secrets of which too much was used.
func Carries(lent, foreign, found, over []string) []string {
	return (&carries{lends: lent, foreign: foreign, found: found, over: over}).args()
}

func (c *carries) args() (args []string) {
	for _, k := range c.kinds() {
		for _, v := range *k.list {
			args = append(args, k.prefix+v)
		}
	}
	return args
}

type kind struct {
	prefix string
	list   *[]string
}

func (c *carries) kinds() [4]kind {
	return [...]kind{{carriesLent, &c.lends}, {carriesForeign, &c.foreign}, {carriesFound, &c.found}, {carriesOver, &c.over}}
}

// readCarries takes what Carries returned from the end of arguments.
func readCarries(args []string) (c carries, rest []string) {
	for last := len(args) - 1; last > 0 && c.read(args[last]); last-- {
		args = args[:last]
	}
	return c, args
}

func (c *carries) read(arg string) bool {
	for _, k := range c.kinds() {
		if v, ok := strings.CutPrefix(arg, k.prefix); ok {
			*k.list = slices.Insert(*k.list, 0, v)
			return true
		}
	}
	return false
}

// mutates reports whether a request may change something at the host.
func (t *target) mutates() bool {
	return t.verb != "GET" && t.verb != "HEAD" && t.verb != "OPTIONS" && t.verb != gitFetch
}

// unlisted is the crossing of a request that no entry lists.
func (t *target) unlisted() crossing {
	if t.mutates() {
		return upload
	}
	return readUnlisted
}

// cross lowers a judgement for what a request carries. named says that an entry
// lists the very method, or the push: then its author has answered for the
// secrets that are bound there.
func (e Egress) cross(q *Question, t *target, named bool, j *judgement) {
	modes := boundary[q.Mode]
	if e.Own != nil {
		if _, own := e.Own.Match(t.host, t.port); own { // the agent logs in there by itself
			t.lends, t.foreign, t.over = nil, nil, nil
		}
	}
	if v := modes[t.lent()]; len(t.lends) > 0 && v < allow && !named {
		j.lower(stageCarries, v, RuleLent, bawn.Builtin, fmt.Sprintf("%s with the secret %s, lent by this session", t.deed(), quoted(t.lends)))
	}
	if len(t.over) > 0 {
		j.lower(stageCarries, modes[upload], RuleBudget, bawn.Builtin, "the session has used up its budget of the secret "+quoted(t.over))
	}
	if len(t.foreign) > 0 {
		j.lower(stageCarries, modes[upload], RuleForeign, bawn.Builtin, fmt.Sprintf("the request to %s carries a credential that this session was not given (%s)", t.address(), quoted(t.foreign)))
	}
	if len(t.found) > 0 {
		j.lower(stageCarries, modes[upload], RuleFound, bawn.Builtin, fmt.Sprintf("the request to %s carries a secret of the workspace (%s)", t.address(), quoted(t.found)))
	}
}

// lent is the crossing of a secret in the request.
func (t *target) lent() crossing {
	if t.mutates() {
		return lentWrite
	}
	return lentRead
}

// onlyLends reports whether a request changes something with lent secrets, and carries
// nothing else that asks.
func (t *target) onlyLends() bool {
	return t.mutates() && len(t.lends) > 0 && len(t.foreign)+len(t.found)+len(t.over) == 0
}

// lending is what a yes to a lent secret holds for: the secret and the operation.
func (t *target) lending() string {
	return fmt.Sprintf("%s %q at %s with the secret %s", strings.Join(append([]string{t.verb}, t.refs...), " "), t.path, t.address(), quoted(t.lends))
}

// deed says what a request does, in words.
func (t *target) deed() string {
	if t.mutates() {
		return "it changes something at " + t.address()
	}
	return "it reads from " + t.address()
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}
