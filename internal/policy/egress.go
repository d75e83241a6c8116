package policy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// Rules of Egress. The name of an entry that decides follows after a colon.
const (
	RuleHosts   = "isolation:hosts"
	RuleHTTP    = "isolation:http"
	RuleGit     = "isolation:git"
	RuleClosed  = "isolation:closed"
	RuleAddress = "builtin:address"
	RuleTarget  = "builtin:host"
	RuleZone    = "isolation:models"
	RuleSealed  = "isolation:only"

	ruleUnknownHost = "builtin:host"
)

// Egress decides about the destinations of a session with the network "allowlist". Its
// actions are of the kind network and the operation connect. The resource of a connection
// is "host:port". A request on an opened host has "https://host/path", without the query,
// and the method as argument. Git has "https://host/repository.git" or
// "ssh://host/repository.git" with "fetch", or with "push" and the full names of the refs
// that are created or moved; over SSH also what SSHPlace returns. Deleting and forcing
// are not among these operations, and can't be asked about. The arguments of a request
// over HTTP end with what Carries returns.
//
// A rule that denies wins, from every source. The machine's managers and the project may
// also turn an entry's yes into a question. Then the session's entries decide, in every
// mode: their author has answered already. A request asks if the entries of its host do
// not list it, if it carries what the session was not given, or if it changes something
// with a lent secret (see boundary). A destination that no entry names is put to the
// policy. Addresses, international names and names of the loopback are denied instead,
// since a human can't judge them.
type Egress struct {
	Policy *Policy
	// Session is what all questions share; its Action is not used.
	Session Question
	// Rules are the session's entries; nil means none.
	Rules *netrule.Rules
	// Only says that only the entries open: everything else is denied without a
	// question, whatever the mode and other rules say.
	Only bool
	// Sealed is Only for a session whose needs were given exactly.
	Sealed bool
	// Unattended says that the session has no human to ask: unlisted requests and their
	// contents are denied by the rule that would have asked.
	Unattended bool
	// Admitted says that the connection of a request has been allowed: where no
	// entry speaks of the host, the request itself needs no further yes.
	Admitted bool
	// Own are the hosts at which the agent logs in by itself; nil means none.
	Own *netrule.Hosts
}

var _ bawn.Decider = Egress{}

// Decide never returns an error.
func (e Egress) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	if e.Policy == nil {
		return bawn.Denied("there is no policy", "builtin:no-policy"), nil
	}
	if !a.Valid() || a.Kind != bawn.Network || a.Operation != bawn.Connect {
		return bawn.Denied("only what goes over the network can be decided here", RuleUnknown), nil
	}
	t, err := readTarget(a)
	if err != nil {
		return bawn.Denied(err.Error(), RuleTarget), nil
	}
	q := e.Session
	q.Action = a
	return e.decide(&q, &t), nil
}

func (e Egress) decide(q *Question, t *target) bawn.Decision {
	say := e.entry(t)
	if say.rule == "" && e.Admitted && t.path != "" {
		say = saying{verdict: bawn.Allow, rule: RuleTarget, why: "the connection to the host was allowed"}
	}
	if say.rule == "" {
		return e.unnamed(q, t)
	}
	if say.verdict == bawn.Ask {
		say.verdict = boundary[q.Mode][t.unlisted()]
	}
	j := begin(t.String())
	j.set(stageEntry, say.verdict, say.rule, bawn.SessionSource, say.why)
	rules := e.Policy.rulesForHost(q, t.host, strconv.Itoa(int(t.port)))
	rules.tighten(j)
	e.cross(q, t, say.named, j)
	if j.verdict == bawn.Ask {
		e.asks(t, j)
	}
	if j.verdict == bawn.Ask || q.Mode > bawn.ModePermissive || q.Autonomy > bawn.AutonomyFull {
		q.limits(part{effect: NewHost, sends: true}, j)
	}
	if t.onlyOffers() {
		j.reach(Lookup(q.Mode, SecretWrite, q.Contained), t.lending, stageEntry, stageCarries)
	}
	if t.onlyLends() {
		j.reach(Lookup(q.Mode, SecretWrite, q.Contained), t.lending, stageCarries)
	}
	return combine([]*judgement{j})
}

// asks denies a question that this session may not ask.
func (e Egress) asks(t *target, j *judgement) {
	switch {
	case e.Only:
		j.lower(stageMode, bawn.Deny, RuleZone, bawn.Builtin, t.address()+": nobody is asked for the zone in which the agent itself runs")
	case e.Sealed:
		j.lower(stageMode, bawn.Deny, RuleSealed, bawn.Builtin, t.address()+": this session reaches what it was given and nothing else")
	case e.Unattended && j.source != bawn.Managed && j.source != bawn.Project:
		j.lower(stageMode, bawn.Deny, j.rule, j.source, j.reason)
	}
}

// tighten applies stricter rules than an entry: anybody's denial, and the rules
// of those who may only tighten.
func (w *verdicts) tighten(j *judgement) {
	if w.all != nil && w.all.Verdict == bawn.Deny {
		j.lower(stageTighten, w.all.Verdict, w.all.ID, w.all.Source, w.all.why())
	}
	if w.managed != nil {
		j.lower(stageTighten, w.managed.Verdict, w.managed.ID, w.managed.Source, w.managed.why())
	}
	if w.project != nil {
		j.lower(stageTighten, w.project.Verdict, w.project.ID, w.project.Source, w.project.why())
	}
}

// unnamed judges what no entry speaks of.
func (e Egress) unnamed(q *Question, t *target) bawn.Decision {
	j := begin(t.String())
	why := ""
	switch {
	case e.Only:
		return bawn.Denied(t.address()+": the zone in which the agent itself runs reaches its model's API and nothing else; its commands run in the other", RuleZone)
	case e.Sealed:
		return bawn.Denied(t.address()+": this session reaches what it was given and nothing else", RuleSealed)
	case t.class == hostname.Loopback:
		why = "it is the loopback; isolation.host_ports opens services of this machine"
	case looksLikeAddress(t.host):
		why = "an address is reached only if an entry of isolation.hosts names it"
	case strings.HasPrefix(t.host, "xn--") || strings.Contains(t.host, ".xn--"):
		why = "an international name can look like another; it is reached only if an entry of isolation.hosts holds it as it is"
	default:
		e.Policy.judgeHost(q, j, t.host, strconv.Itoa(int(t.port)))
		if j.rule == ruleUnknownHost {
			j.lower(stageMode, boundary[q.Mode][readUnlisted], ruleUnknownHost, bawn.Builtin, "no rule names the host "+t.host)
		}
		q.limits(part{effect: NewHost, sends: true}, j)
		return combine([]*judgement{j})
	}
	j.set(stageDefault, bawn.Deny, RuleAddress, bawn.Builtin, t.address()+": "+why)
	return combine([]*judgement{j})
}

// looksLikeAddress: the last label of a name does not begin with a digit.
func looksLikeAddress(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last[0] >= '0' && last[0] <= '9' || strings.Contains(host, ":")
}

// A saying is the entries' verdict on a target; without a rule there is no
// verdict.
type saying struct {
	verdict   bawn.Verdict
	rule, why string
	named     bool // the entry names the very method, or the push
}

func permits[T fmt.Stringer](rule string, e T) saying {
	return saying{verdict: bawn.Allow, rule: rule + ":" + e.String(), why: "the session lists " + strconv.Quote(e.String())}
}

// lists is permits for an entry that names operations, and not only hosts.
func lists[T fmt.Stringer](rule string, e T, named bool) saying {
	s := permits(rule, e)
	s.named = named
	return s
}

// unlisted is the judgement of a request that none of the host's entries lists:
// it asks.
func unlisted(rule, format string, args ...any) saying {
	return saying{verdict: bawn.Ask, rule: rule, why: fmt.Sprintf(format, args...)}
}

// shut is the judgement of a request that is refused without a question.
func shut(rule, format string, args ...any) saying {
	return saying{verdict: bawn.Deny, rule: rule, why: fmt.Sprintf(format, args...)}
}

// entry looks for what decides. Where HTTP entries speak of a host they decide
// on its requests, and where git entries do, on the operations of git.
func (e Egress) entry(t *target) saying {
	http, git := slices.Collect(e.Rules.HTTP(t.host, t.port)), slices.Collect(e.Rules.Git(t.host, t.port))
	host, open := e.host(t)
	switch {
	case t.git() && len(git) > 0:
		return gitSays(git, t)
	case t.path != "" && len(git) > 0 && t.isGitService():
		return shut(RuleGit, "%q is git's; entries of isolation.git decide on it, and this is not one of its operations", t.path)
	case t.path != "" && !t.git() && len(http) > 0:
		return httpSays(http, t)
	case t.git() && len(http) > 0:
		return unlisted(RuleHTTP, "%s takes only the requests that isolation.http lists, and no entry of isolation.git names it", t.host)
	case open:
		return permits(RuleHosts, host)
	case t.path == "" && len(http) > 0:
		return permits(RuleHTTP, http[0])
	case t.path == "" && len(git) > 0:
		return permits(RuleGit, git[0])
	case len(git) > 0:
		return unlisted(RuleGit, "%s is open for git only: %q", t.host, git[0])
	case e.Rules.Closed(t.host, t.port):
		return shut(RuleClosed, "%s is closed to this session: the session that started it reaches less of it, or this one asked for less", t.address())
	}
	return saying{}
}

func (e Egress) host(t *target) (netrule.Host, bool) {
	return e.Rules.Host(t.host, t.port)
}

func httpSays(entries []netrule.HTTP, t *target) saying {
	for _, e := range entries {
		if e.Permits(t.verb, t.path) {
			return lists(RuleHTTP, e, t.mutates() && !e.AnyMethod(t.path))
		}
	}
	return unlisted(RuleHTTP, "no entry of isolation.http lists %s %q for %s; the nearest is %q", t.verb, t.path, t.host, nearest(entries, t.path))
}

func gitSays(entries []netrule.Git, t *target) saying {
	repo, ok := netrule.Repository(t.path)
	if !ok {
		return shut(RuleGit, "%q names no repository", t.path)
	}
	if t.verb == gitFetch {
		return gitSay(entries, t, repo, "", func(g netrule.Git) bool { return g.Fetches(t.host, t.port, repo) })
	}
	say := saying{}
	for _, ref := range t.refs {
		say = gitSay(entries, t, repo, ref, func(g netrule.Git) bool { return g.Pushes(t.host, t.port, repo, ref) })
		if say.verdict < bawn.Allow {
			break
		}
	}
	return say
}

func gitSay(entries []netrule.Git, t *target, repo, ref string, permitted func(netrule.Git) bool) saying {
	if i := slices.IndexFunc(entries, permitted); i >= 0 {
		return lists(RuleGit, entries[i], t.verb == gitPush)
	}
	what := fmt.Sprintf("%s %q", t.verb, repo)
	if t.verb == gitPush {
		what += fmt.Sprintf(" %q", ref)
	}
	return unlisted(RuleGit, "no entry of isolation.git lists %s for %s; the nearest is %q", what, t.host, nearest(entries, repo))
}

// nearest returns the entry of which one part begins most like a path.
func nearest[T fmt.Stringer](entries []T, path string) string {
	best, most := entries[0].String(), 0
	for _, e := range entries {
		for part := range strings.FieldsSeq(e.String()) {
			if n := shared(part, path); n > most {
				best, most = e.String(), n
			}
		}
	}
	return best
}

// shared counts the bytes with which both texts begin.
func shared(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
