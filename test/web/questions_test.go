package web_test

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// question returns one that waits, by name.
func question(name string) *v1.Approval {
	q := &v1.Approval{Id: "q" + name, State: v1.ApprovalState_APPROVAL_STATE_PENDING, Session: "s1aaaaaaaaaaaaaaaaaaaaaaaa", Agent: "qwen-code",
		Action: &v1.Action{Kind: "command", Operation: "exec", Resource: "git push --force origin main", Args: []string{"git", "push", "--force", "origin", "main"}, Dir: "/home/anna/shop"},
		Reason: "it rewrites the history of a branch", Rule: "builtin:git-force", Contains: "It may write below /home/anna/shop and reach github.com; nothing else.",
		Suggested: v1.Verdict_VERDICT_DENY, SuggestedWhy: "you denied this shape twice this week",
		Always:        []*v1.Rule{{Kind: "command", Operations: []string{"exec"}, Pattern: "git push --force origin main", Verdict: v1.Verdict_VERDICT_ALLOW}},
		Never:         []*v1.Rule{{Kind: "command", Operations: []string{"exec"}, Pattern: "git push --force *", Verdict: v1.Verdict_VERDICT_DENY}},
		Covers:        []string{"git push -f origin main"},
		Justification: "The branch has a secret in it that must go.\nIt is urgent.",
		Asked:         timestamppb.Now(), Expires: timestamppb.New(time.Now().Add(5 * time.Minute))}
	questions[name](q)
	about := approval.Question{Always: make([]bawn.Rule, len(q.GetAlways()))}
	_ = about.Action.Kind.UnmarshalText([]byte(q.GetAction().GetKind()))
	scopes := map[bawn.Scope]v1.Scope{bawn.Once: v1.Scope_SCOPE_ONCE, bawn.ForSession: v1.Scope_SCOPE_SESSION, bawn.Always: v1.Scope_SCOPE_ALWAYS}
	for _, c := range about.Choices() {
		verdict := v1.Verdict_VERDICT_DENY
		if c.Verdict == bawn.Allow {
			verdict = v1.Verdict_VERDICT_ALLOW
		}
		q.Choices = append(q.Choices, &v1.Choice{Key: c.Key, Words: c.Words, Verdict: verdict, Scope: scopes[c.Scope]})
	}
	return q
}

// hostile holds what could deceive a reader.
const hostile = "echo \u202egnp.exe\u202c && rm\u200b -rf ~/\u2066x\u2069 \x1b[2K\r\n\techo '<img src=x onerror=\"document.title=1\">'  # p\u0430ypal \u3164 \U000e0041"

var questions = map[string]func(*v1.Approval){
	"push": func(*v1.Approval) {},
	"host": func(q *v1.Approval) {
		q.Action = &v1.Action{Kind: "network", Operation: "connect", Resource: "registry.example.org:443"}
		q.Reason, q.Rule, q.Suggested, q.Justification = "no entry names this host", "builtin:egress-unknown", v1.Verdict_VERDICT_ASK, ""
		q.Always, q.Never, q.Covers, q.NoAlways, q.Waiting = nil, nil, nil, "the host resolves to a private address", 3
	},
	"hostile": func(q *v1.Approval) {
		q.Action.Resource, q.Action.Args, q.Canonical = "sh", []string{"sh", "-c", hostile}, hostile
		q.Agent, q.Reason, q.Justification = "<b>agent</b>\u202e", "<i>x</i>\u200b", "<script>alert(1)</script>\u202e\nSystem: approved already"
		q.Always[0].Pattern, q.Covers = hostile, []string{"<svg onload=alert(1)>"}
	},
	"long": func(q *v1.Approval) {
		q.Action.Resource, q.Action.Args = "echo "+strings.Repeat("a", 10_200)+" && rm -rf build", nil
	},
	"endless": func(q *v1.Approval) {
		q.Action.Resource, q.Action.Args = strings.Repeat("b", 150_000)+"; rm -rf build", nil
	},
}
