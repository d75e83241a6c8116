package relaycli

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// maxWhy bounds the reason of a no, in characters.
const maxWhy = 300

// key takes one key. Pasted text comes as another message, and key ignores it.
func (m *screen) key(k tea.KeyPressMsg) tea.Cmd {
	now := m.env.Now()
	apart := alone
	if m.early {
		apart = pause
	}
	m.pressed, m.early, m.typed = m.pressed+1, now.Sub(m.typed) < apart, now
	switch {
	case k.String() == "ctrl+c":
		return tea.Quit
	case m.why != nil:
		return m.write(k)
	}
	switch k.String() {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "space", "pgdown":
		m.offset += max(1, m.room()-1)
	case "pgup", "b":
		m.offset = max(0, m.offset-max(1, m.room()-1))
	default:
		return m.answer(k.String())
	}
	return nil
}

// answer takes a key that answers.
func (m *screen) answer(key string) tea.Cmd {
	r := m.current()
	if r == nil || m.busy || !strings.Contains("ysanNr", key) || len(key) != 1 {
		m.confirm = nil
		return nil
	}
	switch early := m.env.Now().Sub(m.since) < reading; {
	case early:
		m.status = "read it first: a key counts after a moment"
		return nil
	case m.gone:
		m.status = "the relay is gone; it is looked for"
		return nil
	case key != "n" && key != "r" && !m.read:
		m.status = "read it to its end first: space goes on"
		return nil
	}
	if m.confirm != nil {
		return m.confirmed(key)
	}
	return m.say(key, r)
}

// confirmed takes the answer to "keep it?".
func (m *screen) confirmed(key string) tea.Cmd {
	a := m.confirm
	if key == "y" && a.GetVerdict() == bawnv1.Verdict_VERDICT_ALLOW {
		return m.allow(a)
	}
	if key == "y" {
		return m.send(a)
	}
	m.confirm = nil
	return nil
}

// say gives the answer of a key, as the question offers it.
func (m *screen) say(key string, r *bawnv1.Approval) tea.Cmd {
	if key == "r" {
		m.why = new(string)
		return nil
	}
	all := r.GetChoices()
	i := slices.IndexFunc(all, func(c *bawnv1.Choice) bool { return c.GetKey() == key })
	switch {
	case i < 0 && key == "a":
		m.status = "there is no always: " + r.GetNoAlways()
		return nil
	case i < 0:
		m.status = "it is not offered: " + r.GetReach()
		return nil
	}
	a := &reply{Verdict: all[i].GetVerdict(), Scope: all[i].GetScope()}
	switch {
	case a.GetScope() == bawnv1.Scope_SCOPE_ALWAYS:
		m.ask(a)
	case a.GetVerdict() == bawnv1.Verdict_VERDICT_ALLOW:
		return m.allow(a)
	default:
		return m.send(a)
	}
	return nil
}

// ask shows what an answer for good would keep; it has to be read like the
// question.
func (m *screen) ask(a *reply) {
	m.confirm, m.since, m.read, m.offset = a, m.env.Now(), false, 0
}

// write takes a key of the reason of a no.
func (m *screen) write(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		r := m.current()
		return m.send(&reply{Verdict: bawnv1.Verdict_VERDICT_DENY, Scope: usual([]*bawnv1.Approval{r}, r.GetId(), bawnv1.Verdict_VERDICT_DENY), Why: *m.why})
	case "esc":
		m.why = nil
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(*m.why)
		*m.why = (*m.why)[:len(*m.why)-n]
	default:
		if utf8.RuneCountInString(*m.why+k.Text) <= maxWhy {
			*m.why += k.Text
		}
	}
	return nil
}
