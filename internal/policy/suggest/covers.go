package suggest

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/policy"
)

// A neighbour is a question close to one that is asked.
type neighbour struct {
	text string
	q    policy.Question
}

// elsewhere is a project that is not the question's.
const elsewhere = "/another/project"

// covers finds out which other lines the found rules decide as wanted, and the
// rules in force do not. The examples are not all there is.
func (s *suggester) covers(now *policy.Policy) (out []string) {
	then, err := s.with(s.found)
	if err != nil {
		return nil
	}
	for _, n := range s.neighbours() {
		if s.in.Decide(then, &n.q).Verdict == s.want && s.in.Decide(now, &n.q).Verdict != s.want {
			out = append(out, n.text)
		}
	}
	if len(s.found) > 0 && s.want == bawn.Allow && s.in.Question.Action.Kind == bawn.Network {
		out = append(out, "whatever is sent there and comes from there")
	}
	return out
}

func (s *suggester) neighbours() (out []neighbour) {
	add := func(text string, change func(*policy.Question)) {
		q := s.in.Question
		change(&q)
		out = append(out, neighbour{text, q})
	}
	switch s.in.Question.Action.Kind {
	case bawn.Command:
		s.commands(add)
	case bawn.Network:
		s.hosts(add)
	case bawn.Filesystem:
		s.files(add)
	}
	add("the same in another project", func(q *policy.Question) {
		q.Workspace, q.Action.Dir = elsewhere, elsewhere
	})
	if s.in.Question.Contained != (bawn.Contained{}) {
		add("the same where no sandbox contains it", func(q *policy.Question) { q.Contained = bawn.Contained{} })
	}
	for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
		if m < s.in.Question.Mode {
			add("the same in "+m.String()+" mode", func(q *policy.Question) { q.Mode, q.Autonomy = m, policy.AutonomyOf(m) })
		}
	}
	return out
}

func (s *suggester) commands(add func(string, func(*policy.Question))) {
	for _, r := range s.found {
		if r.Kind != bawn.Command {
			continue
		}
		words := strings.Fields(r.Pattern)
		for _, more := range []string{"more", "--more"} {
			s.words(add, append(slices.Clone(words), more))
		}
		if len(words) > 1 {
			s.words(add, words[:len(words)-1])
		}
		s.words(add, slices.Concat([]string{"sudo"}, words))
		if s.want == bawn.Deny && !strings.Contains(words[0], "/") {
			s.words(add, slices.Concat([]string{"/usr/bin/" + words[0]}, words[1:]))
		}
		if len(s.found) > 1 || !s.plain() {
			s.words(add, words)
		}
	}
}

// plain reports whether the question is one simple command without a shell's
// doing.
func (s *suggester) plain() bool {
	a := &s.in.Question.Action
	if len(a.Args) > 0 {
		return slices.Equal(a.Args, strings.Fields(strings.Join(a.Args, " ")))
	}
	return len(s.found) == 1 && strings.Join(strings.Fields(a.Resource), " ") == s.found[0].Pattern
}

func (s *suggester) words(add func(string, func(*policy.Question)), argv []string) {
	text := strings.Join(argv, " ")
	add(text, func(q *policy.Question) { q.Action.Args, q.Action.Resource = argv, text })
}

func (s *suggester) hosts(add func(string, func(*policy.Question))) {
	host, _, port, err := hostname.Split(s.in.Question.Action.Resource)
	if err != nil || port == "" || address(host) {
		return
	}
	other := map[string]string{"443": "80"}[port]
	if other == "" {
		other = "443"
	}
	for _, resource := range []string{host + ":" + other, "sub." + host + ":" + port} {
		add(resource, func(q *policy.Question) { q.Action.Resource, q.Action.Args = resource, nil })
	}
}

func (s *suggester) files(add func(string, func(*policy.Question))) {
	a := &s.in.Question.Action
	for op := bawn.Read; op <= bawn.Exec; op++ {
		if op != a.Operation {
			add(op.String()+" "+a.Resource, func(q *policy.Question) { q.Action.Operation = op })
		}
	}
	add(a.Operation.String()+" "+path.Join(a.Resource, "below"), func(q *policy.Question) { q.Action.Resource = path.Join(a.Resource, "below") })
}
