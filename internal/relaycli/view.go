package relaycli

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/redact"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// Styles say nothing that the text does not.
var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	exact = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	words = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// View draws the screen: the list, the question that is selected, and the keys.
func (m *screen) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "bawn approvals"
	return v
}

// lines are all of the screen, as many as it is high at most.
func (m *screen) lines() []string {
	if m.width == 0 || m.height == 0 {
		return nil
	}
	out := append([]string{bold.Render(m.cut(m.title()))}, m.rows()...)
	out = append(out, faint.Render(strings.Repeat("─", m.width)))
	out = append(out, m.details()...)
	for len(out) < m.height-m.footHeight() {
		out = append(out, "")
	}
	out = append(out, m.foot()...)
	return out[:min(len(out), m.height)]
}

func (m *screen) title() string {
	title := fmt.Sprintf("bawn approvals: %d pending", len(m.list))
	if m.gone {
		title += ", the relay is gone"
	}
	return title
}

// listHeight is how many rows the list has.
func (m *screen) listHeight() int { return min(max(1, len(m.list)), max(2, m.height/4)) }

func (m *screen) rows() (out []string) {
	if len(m.list) == 0 {
		return []string{m.cut("  nothing is pending")}
	}
	n := m.listHeight()
	from := max(0, min(m.index()-n/2, len(m.list)-n))
	for _, r := range m.list[from : from+n] {
		mark := "  "
		if r.GetId() == m.selected {
			mark = "▸ "
		}
		line := m.cut(mark + fmt.Sprintf("%-6s ", left(r, m.env.Now())) + redact.Visible(r.GetAgent()) + "  " + summary(r))
		if r.GetId() == m.selected {
			line = bold.Render(line)
		}
		out = append(out, line)
	}
	return out
}

// room is how many lines the details have.
func (m *screen) room() int { return max(1, m.height-2-m.listHeight()-m.footHeight()) }

// footHeight is how many lines status and keys take.
func (m *screen) footHeight() int { return 1 + len(m.wrap(m.keys(), 0)) }

// details are the lines of the question that fit. It notes when all that a
// human must have read has been there.
func (m *screen) details() []string {
	all, need := m.question()
	room := m.room()
	m.offset = max(0, min(m.offset, len(all)-room))
	end := min(m.offset+room, len(all))
	out := all[m.offset:end]
	shown := end
	if end < len(all) && len(out) > 1 {
		shown--
		out = append(out[:len(out)-1:len(out)-1], faint.Render(m.cut(fmt.Sprintf("  … %d more lines: space goes on", len(all)-shown))))
	}
	if shown >= need {
		m.read = true
	}
	return out
}

// column is how wide the labels are, where there is room for them.
const column = 15

// question is what must be read before an answer, and how many lines of it must
// have been shown: up to the end of the effect.
func (m *screen) question() (out []string, need int) {
	r := m.current()
	if r == nil {
		return nil, 0
	}
	if m.confirm != nil {
		out = m.consequences(r)
		return out, len(out)
	}
	if r.GetWaiting() > 1 {
		out = m.line(&bawnv1.Line{Label: "asked by", Text: fmt.Sprintf("%d; \"once\" is for one of them", r.GetWaiting())})
	}
	for _, l := range r.GetLines() {
		out = append(out, m.line(l)...)
		if l.GetExact() {
			need = len(out)
		}
	}
	return out, need
}

// line is one line of a question, as many of the screen's as it takes.
func (m *screen) line(l *bawnv1.Line) (out []string) {
	style, mark := lipgloss.NewStyle(), "  "
	switch {
	case l.GetExact():
		style, mark = exact, "| "
	case l.GetUntrusted():
		style, mark = words, "? "
	}
	lead := ""
	if m.width >= 4*column {
		lead = strings.Repeat(" ", column)
	}
	parts := m.wrap(redact.Visible(l.GetText()), len(lead)+len(mark))
	switch {
	case l.GetLabel() != "" && lipgloss.Width(l.GetLabel()) < len(lead):
		out = append(out, faint.Render(l.GetLabel()+lead[lipgloss.Width(l.GetLabel()):])+mark+style.Render(parts[0]))
		parts = parts[1:]
	case l.GetLabel() != "":
		out = append(out, faint.Render(m.cut(l.GetLabel()+":")))
	}
	for _, part := range parts {
		out = append(out, lead+mark+style.Render(part))
	}
	return out
}

// consequences are what an answer for good keeps.
func (m *screen) consequences(r *bawnv1.Approval) (out []string) {
	say := func(lead, text string) {
		out = append(out, faint.Render(m.cut(lead)))
		for _, part := range m.wrap(redact.Visible(text), 2) {
			out = append(out, "| "+part)
		}
	}
	rules := r.GetAlways()
	if m.confirm.GetVerdict() == bawnv1.Verdict_VERDICT_DENY {
		rules = r.GetNever()
	}
	for _, rule := range rules {
		say("this rule would be kept:", ruleText(rule))
	}
	if len(rules) == 0 {
		say("no rule can say it:", "it would be denied for this session")
	}
	if m.confirm.GetVerdict() == bawnv1.Verdict_VERDICT_ALLOW {
		for _, c := range r.GetCovers() {
			say("it also covers:", c)
		}
	}
	return out
}

func (m *screen) keys() string {
	switch r := m.current(); {
	case m.why != nil:
		return "why not? " + redact.Visible(*m.why) + "▏  enter sends, esc leaves"
	case m.confirm != nil:
		return "keep it? y yes, any other key no"
	case r == nil:
		return "q quit"
	default:
		return approval.Legend(choices(r), "r no, with a reason", "↑↓ move", "space more", "q quit")
	}
}

func choices(r *bawnv1.Approval) (out []approval.Choice) {
	for _, c := range r.GetChoices() {
		out = append(out, approval.Choice{Key: redact.Visible(c.GetKey()), Words: redact.Visible(c.GetWords())})
	}
	return out
}

func (m *screen) foot() []string {
	out := []string{bold.Render(m.cut(redact.Visible(m.status)))}
	for _, line := range m.wrap(m.keys(), 0) {
		out = append(out, faint.Render(line))
	}
	return out
}

// cut shortens text to the screen's width.
func (m *screen) cut(s string) string {
	if lipgloss.Width(s) <= m.width {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if lipgloss.Width(b.String()+string(r)) > m.width-1 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// wrap breaks text where the screen ends, and loses no character of it.
func (m *screen) wrap(s string, indent int) (out []string) {
	room := max(8, m.width-indent)
	var line strings.Builder
	n := 0
	for _, r := range s {
		w := lipgloss.Width(string(r))
		if n+w > room {
			out = append(out, line.String())
			line.Reset()
			n = 0
		}
		line.WriteRune(r)
		n += w
	}
	return append(out, line.String())
}
