package relaycli

import (
	"fmt"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/redact"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// A row is a question in its JSON form.
type row struct {
	ID            string         `json:"id"`
	State         approval.State `json:"state"`
	Session       string         `json:"session"`
	Parent        string         `json:"parent,omitempty"`
	Agent         string         `json:"agent,omitempty"`
	Kind          string         `json:"kind"`
	Operation     string         `json:"operation"`
	Resource      string         `json:"resource"`
	Args          []string       `json:"args,omitempty"`
	Dir           string         `json:"dir,omitempty"`
	Canonical     string         `json:"canonical,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	Rule          string         `json:"rule,omitempty"`
	Contains      string         `json:"contains,omitempty"`
	Suggested     string         `json:"suggested,omitempty"`
	Always        []string       `json:"always,omitempty"`
	Never         []string       `json:"never,omitempty"`
	Covers        []string       `json:"covers,omitempty"`
	NoAlways      string         `json:"no_always,omitempty"`
	Reach         string         `json:"a_yes_is_for,omitempty"`
	Program       string         `json:"program,omitempty"`       // the guest's words, as the next
	Justification string         `json:"justification,omitempty"` // the agent's own words
	Asked         time.Time      `json:"asked"`
	Expires       time.Time      `json:"expires"`
	Waiting       int32          `json:"waiting"`
	Answer        *answerRow     `json:"answer,omitempty"`
}

type answerRow struct {
	Verdict string    `json:"verdict"`
	Scope   string    `json:"scope"`
	By      string    `json:"by"`
	Why     string    `json:"why,omitempty"`
	At      time.Time `json:"at"`
}

func newRow(r *bawnv1.Approval) row {
	a := r.GetAction()
	out := row{
		ID: r.GetId(), State: states[r.GetState()], Session: r.GetSession(), Parent: r.GetParent(), Agent: r.GetAgent(), Kind: a.GetKind(), Operation: a.GetOperation(), Resource: a.GetResource(), Args: a.GetArgs(),
		Dir: a.GetDir(), Canonical: r.GetCanonical(), Reason: r.GetReason(), Rule: r.GetRule(), Contains: r.GetContains(), Always: ruleTexts(r.GetAlways()), Never: ruleTexts(r.GetNever()),
		Covers: r.GetCovers(), NoAlways: r.GetNoAlways(), Reach: r.GetReach(), Program: r.GetProgram(), Justification: r.GetJustification(), Asked: r.GetAsked().AsTime(), Expires: r.GetExpires().AsTime(), Waiting: r.GetWaiting(),
	}
	if r.GetSuggestedWhy() != "" && r.GetSuggested() != bawnv1.Verdict_VERDICT_ASK {
		out.Suggested = verdictText(r.GetSuggested())
	}
	if answer := r.GetAnswer(); answer != nil {
		out.Answer = &answerRow{verdictText(answer.GetVerdict()), scopeText(answer.GetScope()), answer.GetBy(), answer.GetWhy(), answer.GetAt().AsTime()}
	}
	return out
}

var states = map[bawnv1.ApprovalState]approval.State{
	bawnv1.ApprovalState_APPROVAL_STATE_PENDING: approval.Pending, bawnv1.ApprovalState_APPROVAL_STATE_ANSWERED: approval.Answered,
	bawnv1.ApprovalState_APPROVAL_STATE_EXPIRED: approval.Expired, bawnv1.ApprovalState_APPROVAL_STATE_WITHDRAWN: approval.Withdrawn,
}

// verdictText is the word for a verdict. An unknown verdict denies.
func verdictText(v bawnv1.Verdict) string {
	switch v {
	case bawnv1.Verdict_VERDICT_ALLOW:
		return bawn.Allow.String()
	case bawnv1.Verdict_VERDICT_ASK:
		return bawn.Ask.String()
	}
	return bawn.Deny.String()
}

func scopeText(s bawnv1.Scope) string {
	switch s {
	case bawnv1.Scope_SCOPE_SESSION:
		return approval.ScopeName(bawn.ForSession)
	case bawnv1.Scope_SCOPE_ALWAYS:
		return approval.ScopeName(bawn.Always)
	}
	return approval.ScopeName(bawn.Once)
}

func ruleTexts(rules []*bawnv1.Rule) (out []string) {
	for _, r := range rules {
		out = append(out, ruleText(r))
	}
	return out
}

func ruleText(r *bawnv1.Rule) string {
	ops := ""
	if len(r.GetOperations()) > 0 {
		ops = fmt.Sprintf("%v ", r.GetOperations())
	}
	return verdictText(r.GetVerdict()) + " " + r.GetKind() + " " + ops + r.GetPattern()
}

// short is the beginning of an ID that a list shows.
func short(id string) string { return id[:min(len(id), 8)] }

// maxWhat is how much of a question a list shows, in runes: all of most.
const maxWhat = 300

// what is a question on one line, shortened for a list.
func what(r *bawnv1.Approval) string {
	text := ""
	for _, l := range r.GetLines() {
		switch {
		case l.GetExact() && (text == "" || l.GetLabel() == ""): // a further line of the same
			text += l.GetText()
		case l.GetExact() && r.GetAction().GetKind() == bawn.Tool.String(): // its arguments
			text += " " + l.GetText()
		}
	}
	if text == "" {
		text = redact.Visible(r.GetAction().GetResource())
	}
	if r := []rune(text); len(r) > maxWhat {
		text = string(r[:maxWhat]) + " …"
	}
	return text
}

// outcome says in words what became of a question.
func outcome(r *bawnv1.Approval) string {
	answer := r.GetAnswer()
	if answer == nil {
		return string(states[r.GetState()])
	}
	word := "denied"
	if answer.GetVerdict() == bawnv1.Verdict_VERDICT_ALLOW {
		word = "allowed"
	}
	word += " " + scopeText(answer.GetScope()) + " by " + redact.Visible(answer.GetBy())
	if answer.GetWhy() != "" {
		word += " (" + redact.Visible(answer.GetWhy()) + ")"
	}
	return word
}

// answered is outcome for the person who answered, with what still waits.
func answered(m *bawnv1.ApprovalServiceAnswerResponse) string {
	r := m.GetApproval()
	switch {
	case !m.GetFirst():
		return "too late, " + outcome(r)
	case r.GetMore() == 0:
		return outcome(r)
	}
	return fmt.Sprintf("%s; %d more %s (%s)", outcome(r), r.GetMore(), map[bool]string{true: "waits", false: "wait"}[r.GetMore() == 1], short(r.GetNext()))
}

// summary is a question on one line, with how many ask it.
func summary(r *bawnv1.Approval) string {
	if r.GetWaiting() > 1 {
		return fmt.Sprintf("(%d ask for it) %s", r.GetWaiting(), what(r))
	}
	return what(r)
}

// left is how long a question still stands.
func left(r *bawnv1.Approval, now time.Time) string {
	d := r.GetExpires().AsTime().Sub(now).Round(time.Second)
	switch {
	case d <= 0:
		return "0s"
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= 10*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return d.String()
}
