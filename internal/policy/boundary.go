package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Rules about the contents of a request.
const (
	RuleLent    = "builtin:lent-secret"
	RuleForeign = "builtin:foreign-credential"
	RuleFound   = "builtin:workspace-secret"
	RuleBudget  = "builtin:secret-budget"
	RuleOffer   = "builtin:lend-secret"
)

// A crossing is a kind of data that leaves the sandbox in a request.
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

// Carried lists a request's contents besides its target: secrets by their names,
// credentials by where they stand.
type Carried struct {
	Lent    []string // secrets of the session's
	Foreign []string // credentials that the guest has added by itself
	Found   []string // values of the workspace's secrets
	Over    []string // secrets of which the session has used up its budget
	Offered []string // secrets that a yes would lend
}

// The prefixes of the arguments that list a request's contents.
const (
	carriesLent    = "lends="
	carriesForeign = "credential="
	carriesFound   = "holds="
	carriesOver    = "over-budget="
	carriesOffered = "lend="
)

// Carries returns the last arguments of a request.
func Carries(c Carried) []string { return c.args() }

func (c *Carried) args() (args []string) {
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

func (c *Carried) kinds() [5]kind {
	return [...]kind{{carriesLent, &c.Lent}, {carriesForeign, &c.Foreign}, {carriesFound, &c.Found}, {carriesOver, &c.Over}, {carriesOffered, &c.Offered}}
}

// Offers reports whether an argument names a secret that a yes would lend.
func Offers(arg string) bool { return strings.HasPrefix(arg, carriesOffered) }

// readCarries takes what Carries returned from the end of arguments.
func readCarries(args []string) (c Carried, rest []string) {
	for last := len(args) - 1; last > 0 && c.read(args[last]); last-- {
		args = args[:last]
	}
	return c, args
}

func (c *Carried) read(arg string) bool {
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

// cross lowers a judgement for a request's contents. named says that an entry
// lists the very method, or the push; its author has then answered for the
// secrets that are bound there.
func (e Egress) cross(q *Question, t *target, named bool, j *judgement) {
	modes := boundary[q.Mode]
	if e.Own != nil {
		if _, own := e.Own.Match(t.host, t.port); own { // the agent logs in there by itself
			t.Lent, t.Foreign, t.Over = nil, nil, nil
		}
	}
	if v := modes[t.lent()]; len(t.Lent) > 0 && v < allow && !named {
		j.lower(stageCarries, v, RuleLent, bawn.Builtin, fmt.Sprintf("%s with the secret %s, lent by this session", t.deed(), quoted(t.Lent)))
	}
	if len(t.Offered) > 0 {
		t.offered(modes[upload], j)
	}
	if len(t.Over) > 0 {
		j.lower(stageCarries, modes[upload], RuleBudget, bawn.Builtin, "the session has used up its budget of the secret "+quoted(t.Over))
	}
	if len(t.Foreign) > 0 {
		j.lower(stageCarries, modes[upload], RuleForeign, bawn.Builtin, fmt.Sprintf("the request to %s carries a credential that this session was not given (%s)", t.address(), quoted(t.Foreign)))
	}
	if len(t.Found) > 0 {
		j.lower(stageCarries, modes[upload], RuleFound, bawn.Builtin, fmt.Sprintf("the request to %s carries a secret of the workspace (%s)", t.address(), quoted(t.Found)))
	}
}

// offered asks for a secret that the session was not lent. If an entry asks anyway,
// the question names the secret.
func (t *target) offered(v bawn.Verdict, j *judgement) {
	why := fmt.Sprintf("%s, which takes your secret %s: this session was not lent it, and a yes lends it for this", t.deed(), quoted(t.Offered))
	entry := j.source == bawn.SessionSource && j.verdict == v
	if j.lower(stageCarries, v, RuleOffer, bawn.Builtin, why); entry {
		j.rule, j.source, j.reason = RuleOffer, bawn.Builtin, why
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
	return t.mutates() && len(t.Lent) > 0 && len(t.Offered)+len(t.Foreign)+len(t.Found)+len(t.Over) == 0
}

// onlyOffers is onlyLends for a secret that a yes would lend.
func (t *target) onlyOffers() bool {
	return len(t.Offered) > 0 && len(t.Lent)+len(t.Foreign)+len(t.Found)+len(t.Over) == 0
}

// lending is the scope of a yes to a secret: the secret and the operation. A push of
// which the refs are known only later is the same as with them.
func (t *target) lending() string {
	secrets := quoted(slices.Concat(t.Lent, t.Offered))
	if t.verb == gitPush && len(t.Offered) > 0 {
		return fmt.Sprintf("pushing to %q at %s with the secret %s, not by force", t.path, t.address(), secrets)
	}
	return fmt.Sprintf("%s %q at %s with the secret %s", strings.Join(append([]string{t.verb}, t.refs...), " "), Operation(t.verb, t.path), t.address(), secrets)
}

// deed describes a request in words.
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
