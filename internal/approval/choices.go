package approval

import (
	"strings"

	"github.com/bawn-dev/bawn"
)

// A Choice is one answer that a question offers. Its key is the same at every frontend.
type Choice struct {
	Key     string
	Words   string
	Verdict bawn.Verdict
	Scope   bawn.Scope
}

// Choices are the answers that a question offers, in the order in which they are shown.
func (q *Question) Choices() []Choice {
	yes := Choice{"y", "yes, once", bawn.Allow, bawn.Once}
	no := Choice{"n", "no", bawn.Deny, bawn.Once}
	if q.Action.Kind == bawn.Network && !q.pushes() { // a program connects again and again
		no.Scope = bawn.ForSession
	}
	session := Choice{"s", "for this session", bawn.Allow, bawn.ForSession}
	var out []Choice
	switch {
	case q.Single:
		out = append(out, yes)
	case q.Holds != "" || q.Action.Kind == bawn.Network && !q.pushes():
		yes.Words, yes.Scope = "yes, for this session", bawn.ForSession
		out = append(out, yes)
	default:
		out = append(out, yes, session)
	}
	if len(q.Always) > 0 {
		out = append(out, Choice{"a", "always", bawn.Allow, bawn.Always})
	}
	return append(out, no, Choice{"N", "never", bawn.Deny, bawn.Always})
}

// Legend says what each key means, on one line; more are keys of the frontend's own.
func Legend(choices []Choice, more ...string) string {
	words := make([]string, 0, len(choices)+len(more))
	for _, c := range choices {
		words = append(words, c.Key+" "+c.Words)
	}
	return strings.Join(append(words, more...), "; ")
}

// pushes reports whether a connection is asked about because it moves refs: the next push
// of the same refs has other commits.
func (q *Question) pushes() bool {
	return q.Action.Kind == bawn.Network && len(q.Action.Args) > 1 && q.Action.Args[0] == "push"
}
