package asking

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// reading is the usual Options.Reading.
const reading = 700 * time.Millisecond

// Limits of a question at a terminal, in characters: a part that has scrolled
// away could be the one that matters.
const (
	maxRequest = 1000 // of data sent over the network
	maxCommand = 4000
)

// A talk is one question at one terminal.
type talk struct {
	frontend *frontend
	open     *open
	asked    int          // how many ask the same
	answer   *bawn.Answer // nil: none was given
}

// run shows the question and reads lines until one is an answer; Ctrl-C and
// Ctrl-D are a no. A line of how it ended stays.
func (t *talk) run(rw terminal.Conversation) error {
	if t.length() > t.limit() || !fits(rw, t.text()) {
		t.tooLong(rw)
		return nil
	}
	keys := &typed{from: rw, now: t.frontend.prompter.opts.Now}
	term := term.NewTerminal(keys, t.prompt())
	fmt.Fprint(term, t.text())
	if err := rw.Pause(t.frontend.prompter.opts.Reading); err != nil {
		return t.over(rw, err)
	}
	for t.answer == nil {
		line, err := t.read(term, keys)
		if err != nil {
			return t.over(rw, err)
		}
		t.take(term, keys, line)
	}
	t.note(rw, "your answer: "+outcome(*t.answer))
	return nil
}

// errNo says that the human has left with Ctrl-C or Ctrl-D.
var errNo = errors.New("no")

// read reads one typed line; pasted text is no answer.
func (t *talk) read(from *term.Terminal, keys *typed) (string, error) {
	for {
		line, err := from.ReadLine()
		switch pasted := keys.pasted(); {
		case err == nil && pasted:
			fmt.Fprint(from, "bawn: what is pasted is no answer; type it\n")
			continue
		case errors.Is(err, io.EOF):
			return "", errNo
		}
		return strings.TrimSpace(line), err
	}
}

// over ends the conversation, and says why.
func (t *talk) over(rw terminal.Conversation, err error) error {
	if errors.Is(err, errNo) {
		t.no("")
		t.note(rw, "your answer: "+outcome(*t.answer))
		return nil
	}
	text := "not answered"
	var elsewhere *elsewhereError
	if errors.As(err, &elsewhere) {
		text = elsewhere.Error()
	}
	t.note(rw, text)
	return err
}

// maxNoted is how much of an action stays on the guest's screen, in characters.
const maxNoted = 200

// noted is an action as it is named in a line that stays.
func noted(a bawn.Action) string {
	if a.Kind == bawn.Command {
		return cut(shown(a.Resource), maxNoted)
	}
	return cut(describe(a), maxNoted)
}

// note leaves a line on the guest's screen.
func (t *talk) note(rw terminal.Conversation, how string) {
	rw.Note("bawn: " + how + ": " + noted(t.open.Action))
}

func (t *talk) say(v bawn.Verdict, s bawn.Scope, why string) {
	t.answer = &bawn.Answer{Verdict: v, Scope: s, By: "terminal", At: t.frontend.prompter.opts.Now(), Why: why}
}

// take understands a line.
func (t *talk) take(out *term.Terminal, keys *typed, line string) {
	word, rest, _ := strings.Cut(line, " ")
	c, ok := t.choice(word)
	why := strings.TrimSpace(rest)
	switch {
	case line == "?":
		fmt.Fprint(out, t.details())
	case !ok && rest == "" && strings.EqualFold(word, "a"):
		fmt.Fprintf(out, "bawn: there is no \"always\": %s\n", shown(t.open.NoAlways))
	case !ok, c.Verdict == bawn.Allow && rest != "": // only a no has a reason
	case c.Scope == bawn.Always:
		t.rule(out, keys, c, why)
	default:
		t.say(c.Verdict, c.Scope, why)
	}
}

// words may be typed in place of a key.
var words = map[string]string{"yes": "y", "session": "s", "always": "a", "no": "n", "never": "N"}

// choice is the answer of a key, whose case counts for "N" alone.
func (t *talk) choice(word string) (approval.Choice, bool) {
	key := word
	if k, ok := words[strings.ToLower(word)]; ok {
		key = k
	} else if word != "N" {
		key = strings.ToLower(word)
	}
	all := t.open.Choices()
	if key == "s" && all[0].Scope == bawn.ForSession {
		key = "y"
	}
	if i := slices.IndexFunc(all, func(c approval.Choice) bool { return c.Key == key }); i >= 0 {
		return all[i], true
	}
	return approval.Choice{}, false
}

// no is the answer of somebody who leaves.
func (t *talk) no(why string) {
	c, _ := t.choice("n")
	t.say(bawn.Deny, c.Scope, why)
}

// rule shows what an answer "always" or "never" would keep, and wants a yes to
// exactly that.
func (t *talk) rule(out *term.Terminal, keys *typed, c approval.Choice, why string) {
	v, rules := c.Verdict, t.open.Always
	if v == bawn.Deny {
		rules = t.open.Never
	}
	var b strings.Builder
	if len(rules) == 0 {
		b.WriteString("bawn: no rule can say it; it would be denied for this session\n")
	}
	for _, r := range rules {
		fmt.Fprintf(&b, "bawn: kept as a rule: %s %s\n", v, shown(ruleText(r)))
	}
	if v == bawn.Allow {
		for _, c := range t.open.Covers {
			fmt.Fprintf(&b, "bawn: it also covers: %s\n", shown(c))
		}
	}
	if !fits(keys.from, b.String()) {
		fmt.Fprint(out, "bawn: too long to be shown here at once; see \"bawn approvals\"\n")
		return
	}
	fmt.Fprint(out, b.String())
	out.SetPrompt("bawn: keep it? [yes/no] ")
	defer out.SetPrompt(t.prompt())
	if err := keys.from.Pause(t.frontend.prompter.opts.Reading); err != nil {
		return // the next read says the same
	}
	line, err := t.read(out, keys)
	if err == nil && strings.EqualFold(line, "yes") {
		t.say(v, bawn.Always, why)
	}
}

func ruleText(r bawn.Rule) string {
	ops := ""
	if len(r.Operations) > 0 {
		ops = fmt.Sprintf("%v ", r.Operations)
	}
	return r.Kind.String() + " " + ops + r.Pattern
}

func shown(s string) string { return redact.Visible(s) }

func (t *talk) prompt() string {
	keys, how := []string{}, "once"
	for _, c := range t.open.Choices() {
		keys = append(keys, c.Key)
		if c.Key == "y" && c.Scope == bawn.ForSession {
			how = "for this session"
		}
	}
	return "bawn: allow it " + how + "? [" + strings.Join(append(keys, "?"), "/") + "] "
}

// text is the question in short.
func (t *talk) text() string {
	var b strings.Builder
	q := &t.open.Question
	if what := describe(q.Action); q.Action.Kind == bawn.Network {
		fmt.Fprintf(&b, "bawn: the guest wants to %s\n", what)
		b.WriteString(lines(approval.Render(*q), func(l approval.Line) bool { return l.Untrusted }))
	} else {
		fmt.Fprintf(&b, "bawn: the guest wants to %s\n", wants(q.Action))
		b.WriteString(lines(approval.Render(*q), func(l approval.Line) bool { return l.Exact || l.Untrusted }))
	}
	if t.asked > 1 {
		fmt.Fprintf(&b, "bawn: %d ask for it", t.asked)
		if c, _ := t.choice("y"); c.Scope == bawn.Once {
			b.WriteString("; \"once\" is for one of them")
		}
		b.WriteString("\n")
	}
	left := q.Expires.Sub(t.frontend.prompter.opts.Now()).Round(time.Second)
	fmt.Fprintf(&b, "bawn: %s (%s); it waits, and without an answer it is denied in %v\n", begins(shown(q.Reason)), begins(shown(q.Rule)), left)
	if reach := q.Reach(); reach != "" {
		fmt.Fprintf(&b, "bawn: a yes is for %s\n", begins(shown(reach)))
	}
	if q.SuggestedWhy != "" && q.Suggested != bawn.Ask {
		fmt.Fprintf(&b, "bawn: suggested: %s, %s\n", q.Suggested, shown(q.SuggestedWhy))
	}
	return b.String() + "bawn: " + approval.Legend(q.Choices(), "? more") + "\n"
}

// The assumed size of a terminal that does not tell it, and the rows that typed
// text takes.
const (
	usualRows, usualCols = 24, 80
	promptRows           = 2
)

// fits reports whether a text is to be seen as a whole, with the prompt below.
func fits(rw terminal.Conversation, text string) bool {
	rows, cols := rw.Size()
	if rows == 0 || cols == 0 {
		rows, cols = usualRows, usualCols
	}
	need := promptRows
	for line := range strings.Lines(text) {
		width := 0
		for _, r := range strings.TrimSuffix(line, "\n") {
			width++
			if r >= utf8.RuneSelf {
				width++ // some take two columns
			}
		}
		need += max(1, (width+cols-1)/cols)
	}
	return need <= rows
}

// details has everything known of the question, and the possible answers.
func (t *talk) details() string {
	return lines(approval.Render(t.open.Question), func(approval.Line) bool { return true }) +
		"bawn: " + approval.Legend(t.open.Choices()) + "; always and never keep a rule that is shown first; n WHY and N WHY tell the guest why\n"
}

// lines writes lines behind a margin of Bawn's own, so that none of a guest's
// begins as Bawn's do.
func lines(all []approval.Line, wanted func(approval.Line) bool) string {
	var b strings.Builder
	label := "" // of the lines that go on
	for _, l := range all {
		if l.Label != "" {
			label = l.Label
		}
		if !wanted(l) {
			continue
		}
		mark := ": "
		if l.Untrusted {
			mark = "? "
		} else if l.Exact {
			mark = "| "
		}
		fmt.Fprintf(&b, "  %s%s%s\n", label, mark, l.Text)
	}
	return b.String()
}

func wants(a bawn.Action) string {
	switch a.Kind {
	case bawn.Command:
		return "run a command"
	case bawn.Tool:
		if a.Operation == bawn.Read {
			return "follow skills or definitions"
		}
		return a.Operation.String() + " a tool"
	}
	return a.Operation.String() + " what lies outside"
}

func (t *talk) limit() int {
	if t.open.Action.Kind == bawn.Network {
		return maxRequest
	}
	return maxCommand
}

// length is how much of a guest's text a human would have to read.
func (t *talk) length() (n int) {
	network := t.open.Action.Kind == bawn.Network
	if network {
		n = utf8.RuneCountInString(describe(t.open.Action))
	}
	for _, l := range approval.Render(t.open.Question) {
		if l.Exact && !network || l.Untrusted {
			n += utf8.RuneCountInString(l.Text)
		}
	}
	return n
}

// tooLong leaves a question that does not fit on the screen to other frontends, and
// denies it if no other frontend can be reached.
func (t *talk) tooLong(rw terminal.Conversation) {
	if t.frontend.prompter.reachable() {
		t.note(rw, `too long to be shown here at once; see "bawn approvals"`)
		return
	}
	t.note(rw, "denied, since it is too long to be shown")
	t.no("it is too long to be shown to a human")
}

// describe is an action as the human reads it: on one line, without what could
// pass for a line of Bawn's own.
func describe(a bawn.Action) string {
	text := a.Operation.String() + " "
	switch {
	case len(a.Args) > 0:
		text = shown(strings.Join(a.Args, " ")) + " "
	case a.Operation == bawn.Connect:
		text = "connect to "
	}
	if a.Kind == bawn.Command && slices.Equal(strings.Fields(a.Resource), strings.Fields(strings.Join(a.Args, " "))) {
		return strings.TrimSpace(text)
	}
	return text + strings.ReplaceAll(shown(a.Resource), " ", `\x20`)
}

// begins is the beginning of a long text.
func begins(s string) string { return cut(s, maxRequest) }

// cut is at most n characters of a text.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "\u2026"
	}
	return s
}
