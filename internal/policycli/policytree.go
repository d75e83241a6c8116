package policycli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/importer"
	"github.com/bawn-dev/bawn/internal/policy/suggest"
	"github.com/bawn-dev/bawn/internal/verb"
)

// width is how many columns standard output has; 0 means that lines are not
// wrapped.
func width(e *launch.Env) int {
	fd := int(e.Stdout.Fd())
	if !term.IsTerminal(fd) {
		return 0
	}
	if n, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n, _, err := term.GetSize(fd); err == nil {
		return n
	}
	return 80
}

// A page is text of which long lines go on below where they began.
type page struct {
	strings.Builder
	width int
	stage int // how wide the names of steps are
}

// least is the narrowest column that text is wrapped into.
const least = 24

// line writes lead, and text behind it; what does not fit follows below the
// text's beginning. Both are made visible.
func (p *page) line(lead, text string) {
	p.WriteString(lead)
	hang := utf8.RuneCountInString(lead)
	room := p.width - hang
	for _, word := range p.lines(verb.Visible(text), room) {
		p.WriteString(word)
	}
	p.WriteByte('\n')
}

// lines splits text into what stands on a line and the breaks between.
func (p *page) lines(text string, room int) (out []string) {
	if p.width == 0 || room < least || utf8.RuneCountInString(text) <= room {
		return []string{text}
	}
	at := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && at+1+n > room:
			out, at = append(out, "\n"+strings.Repeat(" ", p.width-room), word), n
			continue
		case i > 0:
			out, at = append(out, " "), at+1
		}
		out, at = append(out, word), at+n
	}
	return out
}

// text is the explanation as a tree.
func (x *explanation) text(columns int) string {
	p := &page{width: columns}
	d, q := x.decision, x.question
	p.line(d.Verdict.String()+": ", d.Reason)
	p.line("  ", fmt.Sprintf("by %s (%s), in %s mode, %s autonomy, %s", d.Rule, d.Source, q.Mode, q.Autonomy, containment(q.Contained)))
	p.line("  ", "in "+q.Action.Dir+", workspace "+q.Workspace)
	p.tree(x.parts)
	p.canonical(&d, q.Action.Resource)
	p.WriteString("\n")
	if len(x.others) == 0 {
		p.line("", "no mode, autonomy or sandbox changes this")
	} else {
		p.line("", "it would be")
	}
	for _, o := range x.others {
		p.line(fmt.Sprintf("  %-5s  ", o.Verdict), o.Change)
	}
	p.advice(&x.advice)
	return p.String()
}

// tree writes the parts, each below what runs it.
func (p *page) tree(parts []policy.Part) {
	p.stage = len("protected path")
	for _, s := range slices.Concat(steps(parts)...) {
		p.stage = max(p.stage, len(s.Stage))
	}
	var above []string
	for i := range parts {
		part := &parts[i]
		var via []string
		if part.Command != nil {
			via = part.Command.Via
		}
		same := 0
		for same < min(len(via), len(above)) && via[same] == above[same] {
			same++
		}
		p.WriteString("\n")
		for depth := same; depth < len(via); depth++ {
			p.line(strings.Repeat("  ", depth)+"└ ", via[depth]+" runs")
		}
		p.part(strings.Repeat("  ", len(via)), part)
		above = via
	}
}

func steps(parts []policy.Part) (out [][]bawn.Step) {
	for _, part := range parts {
		out = append(out, part.Steps)
	}
	return out
}

// part writes one part with its steps.
func (p *page) part(indent string, part *policy.Part) {
	p.line(fmt.Sprintf("%s%-5s  ", indent, part.Verdict), suggest.Text(part))
	column := func(name, text string) { p.line(fmt.Sprintf("%s         %-*s  ", indent, p.stage, name), text) }
	if c := part.Command; c != nil && len(c.Words) > 0 {
		column("effect", part.Effect.String())
	}
	for _, s := range part.Steps {
		p.line(fmt.Sprintf("%s  %-5s  %-*s  ", indent, s.Verdict, p.stage, s.Stage), s.Why)
	}
	if len(part.Steps) > 1 {
		column("decided by", fmt.Sprintf("%s (%s)", part.Rule, part.Source))
	}
}

// canonical writes what would be executed, if that reads otherwise.
func (p *page) canonical(d *bawn.Decision, given string) {
	if d.Canonical != "" && d.Canonical != given {
		p.WriteString("\nwhat would be executed is\n")
		for text := range strings.Lines(d.Canonical) {
			p.line("  ", strings.TrimSuffix(text, "\n"))
		}
	}
	if len(d.Env) > 0 {
		p.WriteString("\n")
		p.line("", "with "+count1(len(d.Env), "variable", "variables")+" that pin git: no hook, monitor, pager or signing program of the repository (--json lists them)")
	}
}

// advice writes what rule would allow the action, or why none can.
func (p *page) advice(a *advice) {
	if t := a.text(); t != "" {
		p.WriteString("\n")
		p.line("", t)
	}
	var b strings.Builder
	for _, r := range a.rules {
		b.WriteString("\n")
		importer.WriteRule(&b, r)
	}
	for text := range strings.Lines(b.String()) {
		p.WriteString(strings.TrimRight("  "+text, " \n") + "\n")
	}
}
