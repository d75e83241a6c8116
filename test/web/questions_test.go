package web_test

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

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
