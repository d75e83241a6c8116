package policy

import (
	"slices"

	"github.com/bawn-dev/bawn"
)

// The stages of a trace. A part begins with stagePart. A stage of "says" sets
// the part's verdict; every other can only lower it. The verdict of the whole
// is the strictest of its parts.
const (
	stagePart      = "part"
	stageDefault   = "autonomy"
	stageRule      = "rule"
	stageLearned   = "learned"
	stageClaim     = "uses"
	stageMode      = "mode"
	stageTighten   = "tighter rule"
	stageOpaque    = "opaque"
	stageDangerous = "dangerous"
	stageCrossing  = "crossing"
	stageProtected = "protected path"
	stageSecret    = "secret variable"
	stageEntry     = "isolation"
	stageCarries   = "request"
)

var says = map[string]bool{stageDefault: true, stageRule: true, stageLearned: true, stageEntry: true}

// Replay derives the verdict from a trace alone. A trace without a part is no
// trace, and denies.
func Replay(trace []bawn.Step) bawn.Verdict {
	whole, current, parts := bawn.Allow, bawn.Deny, 0
	for _, s := range trace {
		switch {
		case s.Stage == stagePart:
			if parts > 0 {
				whole = min(whole, current)
			}
			parts++
			current = s.Verdict
		case says[s.Stage]:
			current = s.Verdict
		default:
			current = min(current, s.Verdict)
		}
	}
	if parts == 0 {
		return bawn.Deny
	}
	return min(whole, current)
}

// Said is the verdict that a decision would have if nothing came of the mode
// where nobody has said anything: what rules, dangers and secrets say.
func Said(d bawn.Decision) bawn.Verdict {
	trace := slices.Clone(d.Trace)
	for i := range trace {
		if s := &trace[i]; s.Stage == stageDefault {
			s.Verdict = bawn.Allow
		}
	}
	return Replay(trace)
}

// A judgement collects the steps about one part.
type judgement struct {
	verdict bawn.Verdict
	rule    string
	source  bawn.Source
	reason  string
	steps   []bawn.Step
	effect  Effect
	fixed   bool // dangerous, opaque, protected: no learned rule may speak
	holds   string
	single  bool
	quiet   bool         // its steps are not wanted
	room    [4]bawn.Step // of steps, mostly
}

// begin opens a part. Until something speaks, it denies.
func begin(what string) *judgement {
	j := &judgement{reason: "nothing speaks for it", rule: "builtin:default", source: bawn.Builtin}
	j.steps = append(j.room[:0], bawn.Step{Stage: stagePart, Verdict: bawn.Deny, Why: what})
	return j
}

func (j *judgement) step(stage string, v bawn.Verdict, why string) {
	if !j.quiet {
		j.steps = append(j.steps, bawn.Step{Stage: stage, Verdict: v, Why: why})
	}
}

// set replaces the verdict.
func (j *judgement) set(stage string, v bawn.Verdict, rule string, source bawn.Source, why string) {
	j.step(stage, v, why)
	j.verdict, j.rule, j.source, j.reason = v, rule, source, why
}

// lower makes the verdict at most v. Of two alike the rule is named that a person
// wrote: those who take back what only Bawn denies go by it.
func (j *judgement) lower(stage string, v bawn.Verdict, rule string, source bawn.Source, why string) {
	j.step(stage, v, why)
	if v < j.verdict || v == j.verdict && j.source == bawn.Builtin && source != bawn.Builtin {
		j.verdict, j.rule, j.source, j.reason = v, rule, source, why
	}
}
