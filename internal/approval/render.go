package approval

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
)

// A Line is one line of a question as a human sees it. Text is of one line,
// valid UTF-8 and printable as it stands, whatever a guest has put in.
type Line struct {
	Label     string // its label; "" continues the line before
	Text      string
	Untrusted bool // words of the guest's, which prove nothing
	Exact     bool // what would happen, to the last character
}

// Labels of lines.
const (
	LabelSession   = "session"
	LabelWants     = "wants to"
	LabelAction    = "exactly"
	LabelStarted   = "written as"
	LabelArgument  = "argument"
	LabelDir       = "in"
	LabelProgram   = "program"
	LabelReason    = "asked because"
	LabelRule      = "rule"
	LabelContains  = "contained"
	LabelSuggested = "suggestion"
	LabelHolds     = "a yes is for"
	LabelAlways    = "always would"
	LabelNever     = "never would"
	LabelCovers    = "also covers"
	LabelNoAlways  = "no always"
	LabelSays      = "the agent says, unproven"
	LabelHidden    = "note"
	LabelExpires   = "denied at"
)

// A page collects lines.
type page struct {
	lines   []Line
	escaped int // characters that are not shown as they are
}

// Render returns what a human is shown. Nothing is left out or cut. A character
// that would not be seen as it is becomes an escape, and a line at the end
// counts these.
func Render(q Question) []Line {
	var p page
	p.who(&q)
	p.what(&q)
	p.put(Line{Label: LabelProgram, Untrusted: true}, q.Program)
	p.add(LabelReason, q.Reason)
	p.add(LabelRule, q.Rule)
	p.add(LabelContains, q.Contains)
	if q.Suggested != bawn.Ask {
		p.add(LabelSuggested, strings.TrimSuffix(q.Suggested.String()+": "+q.SuggestedWhy, ": "))
	}
	p.add(LabelHolds, q.Reach())
	p.always(&q)
	p.put(Line{Label: LabelSays, Untrusted: true}, q.Justification)
	if p.escaped > 0 {
		p.lines = append(p.lines, Line{Label: LabelHidden, Text: fmt.Sprintf("%d of the characters above can't be shown as they are; \u00b7 stands for a space, \u23ce for the end of a line, the others are written as \\t or \\x1b", p.escaped)})
	}
	p.add(LabelExpires, q.Expires.UTC().Format(time.DateTime)+" UTC, unless it is answered; until then the guest waits")
	return p.lines
}

// Reach says what a yes is for, or "" if it is only for the action for as long as the
// human says.
func (q *Question) Reach() string {
	switch {
	case q.Single:
		return "this one time, whatever comes again"
	case q.Holds != "":
		return q.Holds + ", in this session"
	}
	return ""
}

func (p *page) who(q *Question) {
	who := q.Session
	if q.Agent != "" {
		who += " of " + q.Agent
	}
	if q.Parent != "" {
		who += ", a child of " + q.Parent
	}
	p.add(LabelSession, who)
}

// wants says in words what kinds and operations are.
func wants(a bawn.Action) string {
	switch a.Kind {
	case bawn.Command:
		return "run a command"
	case bawn.Network:
		return a.Operation.String() + " over the network"
	case bawn.Tool:
		if a.Operation == bawn.Read { // what steers the agent
			return "follow skills or definitions"
		}
		return a.Operation.String() + " a tool"
	}
	return a.Operation.String() + " in the " + a.Kind.String()
}

// what shows the action: of a command the text that would run and, where it is
// another, the text that was asked for.
func (p *page) what(q *Question) {
	a := q.Action
	p.add(LabelWants, wants(a))
	exact := q.Canonical
	if exact == "" {
		exact = a.Resource
	}
	p.put(Line{Label: LabelAction, Exact: true}, exact)
	if exact != a.Resource {
		p.put(Line{Label: LabelStarted, Untrusted: true}, a.Resource)
	}
	for i, arg := range a.Args {
		p.put(Line{Label: fmt.Sprintf("%s %d", LabelArgument, i), Exact: true}, quoted(arg))
	}
	p.put(Line{Label: LabelDir}, a.Dir)
}

// quoted shows an empty argument.
func quoted(arg string) string {
	if arg == "" {
		return `""`
	}
	return arg
}

func (p *page) always(q *Question) {
	for _, r := range q.Always {
		p.add(LabelAlways, rule(r))
	}
	for _, r := range q.Never {
		p.add(LabelNever, rule(r))
	}
	for _, c := range q.Covers {
		p.put(Line{Label: LabelCovers}, c)
	}
	p.add(LabelNoAlways, q.NoAlways)
}

func rule(r bawn.Rule) string {
	ops := make([]string, len(r.Operations))
	for i, op := range r.Operations {
		ops[i] = op.String()
	}
	if len(ops) == 0 {
		ops = []string{"every operation"}
	}
	return fmt.Sprintf("%s %s (%s): %s", r.Verdict, r.Kind, strings.Join(ops, ", "), r.Pattern)
}

func (p *page) add(label, text string) { p.put(Line{Label: label}, text) }

// put adds a text, a line for each of its own. Nothing is added for "".
func (p *page) put(l Line, text string) {
	for text != "" {
		one, rest, more := strings.Cut(text, "\n")
		l.Text = p.visible(one)
		if more {
			l.Text += "\u23ce"
			p.escaped++
		}
		p.lines = append(p.lines, l)
		l.Label, text = "", rest
	}
}

// visible escapes what a reader would not see or would mistake: what
// redact.Visible escapes, spaces at an end or in a row, and the signs that
// stand for a space and a line's end.
func (p *page) visible(s string) string {
	var b strings.Builder
	for i, n := 0, 0; i < len(s); i += n {
		r, size := utf8.DecodeRuneInString(s[i:])
		n = size
		switch {
		case r == ' ' && (i == 0 || i+1 == len(s) || s[i-1] == ' ' || s[i+1] == ' '):
			b.WriteString("\u00b7")
		case r == '\u00b7', r == '\u23ce':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			shown := redact.Visible(s[i : i+n])
			b.WriteString(shown)
			if shown == s[i:i+n] {
				continue
			}
		}
		p.escaped++
	}
	return b.String()
}
