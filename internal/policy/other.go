package policy

import (
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
)

// decidePath judges what a file tool wants to do.
func (p *Policy) decidePath(q *Question) bawn.Decision {
	name, err := fspath.Clean(q.Action.Resource, q.Action.Dir, q.Home)
	if err != nil {
		return bawn.Denied(err.Error(), RulePath)
	}
	name = throughProc(name)
	k, u := part{effect: Read, reader: true}, use{verb: reads, path: name}
	switch q.Action.Operation {
	case bawn.Read:
	case bawn.Write, bawn.Create:
		k, u.verb = part{effect: Change}, writes
	case bawn.Delete:
		k, u.verb = part{effect: q.destroys()}, deletes
	case bawn.Exec:
		k, u.verb = part{effect: Change}, executes
	default:
		return bawn.Denied("a file can only be read, written, created, deleted or executed", "builtin:operation")
	}
	j := begin(q.Action.Operation.String() + " " + name)
	v, why := q.base(k)
	j.set(stageDefault, v, "builtin:default", bawn.Builtin, why)
	rules := p.rulesFor(q, q.Action.Operation, use{path: name})
	rules.decide(j)
	if u.verb != reads && rules.all == nil && !q.inWorkspace(name) && !scratch(name) {
		j.lower(stageClaim, bawn.Ask, RulePath, bawn.Builtin, "outside the workspace")
	}
	p.eachName(u, func(at string) {
		if pr, ok := p.known().protectedBy(q, q.Action.Operation, at, false); ok {
			j.lower(stageProtected, bawn.Deny, "builtin:protected:"+pr.pattern, bawn.Builtin, pr.remedy())
		}
	})
	q.limits(k, j)
	j.reach(Lookup(q.Mode, k.effect, q.Contained), q.destroying, stageDefault)
	return combine([]*judgement{j})
}

// decideHost judges a connection.
func (p *Policy) decideHost(q *Question) bawn.Decision {
	if q.Action.Operation != bawn.Connect {
		return bawn.Denied("a host can only be connected to", "builtin:operation")
	}
	j := begin("connect " + q.Action.Resource)
	j.set(stageDefault, bawn.Allow, "builtin:host", bawn.Builtin, "the host decides")
	p.useHost(q, j, q.Action.Resource)
	q.limits(part{effect: NewHost, sends: true}, j)
	return combine([]*judgement{j})
}

// decideTool judges a call of a tool. Nothing is known of what a tool does, and it may
// run outside of the sandbox, so it counts as one that publishes until a rule names it.
func (p *Policy) decideTool(q *Question) bawn.Decision {
	if q.Action.Operation != bawn.Call {
		return bawn.Denied("a tool can only be called", "builtin:operation")
	}
	j := begin("call " + q.Action.Resource)
	k := part{effect: Publish, sends: true}
	v, why := q.base(k)
	j.set(stageDefault, v, "builtin:tool", bawn.Builtin, why)
	lists := [2][]*rule{p.table.tools[q.Action.Resource], p.table.tools[""]}
	rules := winner(q, lists, bawn.Call, func(r *rule) bool { return r.matchesTool(q.Action.Resource) })
	rules.decide(j)
	if strings.ContainsFunc(q.Action.Resource, func(c rune) bool { return c < ' ' || c > '~' }) {
		j.lower(stageOpaque, bawn.Deny, "builtin:tool", bawn.Builtin, "the tool's name has unusual characters")
	}
	q.limits(k, j)
	return combine([]*judgement{j})
}

// What a server asks of the agent or its human, as rules name it: SERVER/@sampling.
const (
	AskSampling    = "@sampling"    // for an answer of the agent's model
	AskElicitation = "@elicitation" // for an answer of the human in front of the agent
	AskRoots       = "@roots"       // for the directories that the agent works on
)

// matchesTool reports whether a rule is about a tool, SERVER/TOOL. A rule that allows
// tools by a wildcard does not allow a server to ask the agent or its human; one that
// ends in the name of that question does.
func (r *rule) matchesTool(tool string) bool {
	_, name, _ := strings.Cut(tool, "/")
	if r.Verdict == bawn.Allow && (name == AskSampling || name == AskElicitation || name == AskRoots) && !strings.HasSuffix(r.Pattern, name) {
		return false
	}
	return wild(r.Pattern, tool)
}
