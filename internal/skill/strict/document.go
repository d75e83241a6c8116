package strict

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/skill"
)

// A Document is one text as it was read. It may be used only where Faults is
// empty.
type Document struct {
	Name, Description string
	Notices           []string
	Faults            []*skill.Fault
}

// Parse reads one text of a role. File is its name below the item, for faults
// and for where its links lead; name is the one that a skill must have.
func Parse(role Role, file, name string, text []byte) Document {
	p := &parser{role: role, file: file, name: name}
	p.parse(text)
	d := &p.document
	slices.SortStableFunc(d.Faults, func(a, b *skill.Fault) int { return a.Line - b.Line })
	d.Faults = d.Faults[:min(len(d.Faults), skill.MaxFaults)]
	return *d
}

type parser struct {
	role       Role
	file, name string
	document   Document
	comments   int // bytes that a rendered page does not show
}

func (p *parser) fault(line int, format string, args ...any) {
	p.document.Faults = append(p.document.Faults, &skill.Fault{File: p.file, Line: line, Problem: fmt.Sprintf(format, args...)})
}

func (p *parser) notice(format string, args ...any) {
	p.document.Notices = append(p.document.Notices, fmt.Sprintf(format, args...))
}

// parse stops where what follows could not be trusted to be read as its reader
// reads it.
func (p *parser) parse(text []byte) {
	if p.role == 0 || p.role > RoleInstructions {
		p.fault(0, "nobody says what this text is for")
		return
	}
	if len(text) > skill.MaxText {
		p.fault(0, "%d bytes; want at most %d: split it", len(text), skill.MaxText)
		return
	}
	if hidden := skill.Hidden(p.file, text); len(hidden) > 0 {
		p.document.Faults = hidden
		return
	}
	p.raw(text)
	if !markdown(strings.ToLower(path.Base(p.file))) {
		p.escapes(text)
	}
	if p.role == RoleInstructions || p.role == RoleSettings || len(p.document.Faults) > 0 {
		return
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	front, body, first := split(text)
	if first == 0 && front != nil {
		p.fault(1, "the front matter has no end; want a line of --- below it")
		return
	}
	p.front(front)
	p.markdown(body, first)
}

// raw refuses what agents look for in the text as it stands, whatever it is in
// Markdown.
func (p *parser) raw(text []byte) {
	if p.role == RoleInstructions {
		return
	}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		switch s := string(l); {
		case len(l) > skill.MaxLine:
			p.fault(line, "a line of %d bytes; want at most %d: break it", len(l), skill.MaxLine)
		case strings.Contains(s, "!`"), strings.Contains(s, "```!"), strings.Contains(s, "~~~!"):
			p.fault(line, "a command that the agent runs while it reads (!`…`); let the text say what to run")
		case p.role == RoleSettings && (strings.Contains(s, "!{") || strings.Contains(s, "@{")):
			p.fault(line, "a command or a file that the agent puts in while it reads (!{…}, @{…}); let the text say what to run or to read")
		}
	}
}

// split takes the front matter off. front is nil for a text without one. first is
// the number of lines before the body, and 0 if the front matter does not end.
func split(text []byte) (front, body []byte, first int) {
	const mark = "---\n"
	if !bytes.HasPrefix(text, []byte(mark)) {
		return nil, text, 0
	}
	first = 1
	for at := len(mark); at < len(text); {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		first++
		if string(bytes.TrimRight(text[at:end], " \t\n")) == "---" {
			return text[len(mark):at], text[end:], first
		}
		at = end
	}
	return []byte{}, nil, 0
}
