package policy

import (
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Risks below askFrom are taken in auto mode.
const askFrom = 50

// A risk is one reason for caution with its weight, from 0 to 100.
type risk struct {
	what   string
	weight int
}

// risks lists what speaks against a part. The weights are chosen so that one
// grave reason, or two light ones, ask; their sum is the score.
func (q *Question) risks(p part) (found []risk) {
	add := func(is bool, what string, weight int) {
		if is {
			found = append(found, risk{what, weight})
		}
	}
	add(p.effect == Change, "changes the project", 10)
	add(p.effect > Destroy, "reaches a service", 15)
	add(p.effect == Destroy || p.effect == Force, "can't be undone", 60)
	add(!p.effect.Contains(q.Contained) && p.effect != Read, "no sandbox contains it", 20)
	add(q.Taint.Untrusted && p.effect != Read, "the session has read untrusted content", 20)
	add(q.Taint.Private && p.sends, "the session has read private data", 25)
	add(q.Taint.Untrusted && p.sends, "it can send data out", 20)
	return found
}

// byRisk decides in auto mode by the sum of the risks, all of which are in
// the trace.
func (q *Question) byRisk(p part) (bawn.Verdict, string) {
	score, parts := 0, []string{}
	for _, r := range q.risks(p) {
		score += r.weight
		parts = append(parts, r.what+" +"+strconv.Itoa(r.weight))
	}
	why := "auto mode: risk " + strconv.Itoa(score) + " of " + strconv.Itoa(askFrom)
	if len(parts) > 0 {
		why += " (" + strings.Join(parts, ", ") + ")"
	}
	if score >= askFrom {
		return bawn.Ask, why
	}
	return bawn.Allow, why
}
