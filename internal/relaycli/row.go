package relaycli

import (
	"fmt"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/redact"
)

// A row is a question as JSON has it.
type row struct {
	ID            string         `json:"id"`
	State         approval.State `json:"state"`
	Session       string         `json:"session"`
	Parent        string         `json:"parent,omitempty"`
	Agent         string         `json:"agent,omitempty"`
	Kind          bawn.Kind      `json:"kind"`
	Operation     bawn.Operation `json:"operation"`
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
	Justification string         `json:"justification,omitempty"` // the agent's own words
	Asked         time.Time      `json:"asked"`
	Expires       time.Time      `json:"expires"`
	Waiting       int            `json:"waiting"`
	Answer        *answerRow     `json:"answer,omitempty"`
}

type answerRow struct {
	Verdict bawn.Verdict `json:"verdict"`
	Scope   string       `json:"scope"`
	By      string       `json:"by"`
	Why     string       `json:"why,omitempty"`
	At      time.Time    `json:"at"`
}

func newRow(r approval.Record) row {
	a := r.Action
	out := row{
		ID: r.ID, State: r.State, Session: r.Session, Parent: r.Parent, Agent: r.Agent, Kind: a.Kind, Operation: a.Operation, Resource: a.Resource, Args: a.Args,
		Dir: a.Dir, Canonical: r.Canonical, Reason: r.Reason, Rule: r.Rule, Contains: r.Contains, Always: ruleTexts(r.Always), Never: ruleTexts(r.Never),
		Covers: r.Covers, NoAlways: r.NoAlways, Justification: r.Justification, Asked: r.Asked, Expires: r.Expires, Waiting: r.Waiting,
	}
	if r.SuggestedWhy != "" && r.Suggested != bawn.Ask {
		out.Suggested = r.Suggested.String()
	}
	if r.State == approval.Answered {
		out.Answer = &answerRow{r.Answer.Verdict, approval.ScopeName(r.Answer.Scope), r.Answer.By, r.Answer.Why, r.Answer.At}
	}
	return out
}

func ruleTexts(rules []bawn.Rule) (out []string) {
	for _, r := range rules {
		out = append(out, ruleText(r))
	}
	return out
}

func ruleText(r bawn.Rule) string {
	ops := ""
	if len(r.Operations) > 0 {
		ops = fmt.Sprintf("%v ", r.Operations)
	}
	return r.Verdict.String() + " " + r.Kind.String() + " " + ops + r.Pattern
}

// maxWhat is how much of a question a list shows, in runes: all of most.
const maxWhat = 300

// what is a question on one line, as much of it as a list shows.
func what(q approval.Question) string {
	text := ""
	for _, l := range approval.Render(q) {
		switch {
		case l.Exact && (text == "" || l.Label == ""): // a further line of the same
			text += l.Text
		case l.Exact && q.Action.Kind == bawn.Tool: // what it is called with
			text += " " + l.Text
		}
	}
	if text == "" {
		text = redact.Visible(q.Action.Resource)
	}
	if r := []rune(text); len(r) > maxWhat {
		text = string(r[:maxWhat]) + " …"
	}
	return text
}

// outcome is what has become of a question, in words.
func outcome(r approval.Record) string {
	if r.State != approval.Answered {
		return string(r.State)
	}
	word := "denied"
	if r.Answer.Verdict == bawn.Allow {
		word = "allowed"
	}
	word += " " + approval.ScopeName(r.Answer.Scope) + " by " + redact.Visible(r.Answer.By)
	if r.Answer.Why != "" {
		word += " (" + redact.Visible(r.Answer.Why) + ")"
	}
	return word
}

// outcomeAnd is outcome for who gave the answer: it says whom it is not for.
func outcomeAnd(r approval.Record) string {
	if r.More == 0 {
		return outcome(r)
	}
	return fmt.Sprintf("%s; %d more %s (%s)", outcome(r), r.More, map[bool]string{true: "waits", false: "wait"}[r.More == 1], r.Next[:min(len(r.Next), 8)])
}

// summary is a question on one line, with how many ask it.
func summary(r approval.Record) string {
	if r.Waiting > 1 {
		return fmt.Sprintf("(%d ask for it) %s", r.Waiting, what(r.Question))
	}
	return what(r.Question)
}

// left is how long a question still stands.
func left(q approval.Question, now time.Time) string {
	d := q.Expires.Sub(now).Round(time.Second)
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
