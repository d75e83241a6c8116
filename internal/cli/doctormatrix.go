package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// matrixWidth is the largest width of the table and of the text below it.
const matrixWidth = 80

// cells are the words of the table.
var cells = map[bawn.Strength]string{bawn.Enforced: "yes", bawn.Partly: "part", bawn.Unenforced: "no"}

// matrix is the table of attributes and providers, and below it why something
// is enforced in part or not at all. Attributes of needs are marked.
func (d *diagnosis) matrix(needs []string) string {
	var b strings.Builder
	b.WriteString("what each provider enforces here (* is asked for by a session that names none)\n\n")
	first := len("limits.memory *") + 2
	row := func(name string, cell func(doctor.Column) string) {
		line := fmt.Sprintf("%-*s", first, name)
		for _, c := range d.Providers {
			line += fmt.Sprintf("%-*s", len(c.Provider)+2, cell(c))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("", func(c doctor.Column) string { return c.Provider })
	for _, a := range sandbox.Attributes() {
		name := a
		if slices.Contains(needs, a) {
			name += " *"
		}
		row(name, func(c doctor.Column) string { return cells[c.Of(a).Strength] })
	}
	for _, c := range d.Providers {
		b.WriteString(reasons(c))
	}
	return b.String()
}

// reasons lists what one provider does not enforce in full, each reason once.
func reasons(c doctor.Column) string {
	type reason struct {
		strength       bawn.Strength
		detail, remedy string
	}
	var list []reason
	attributes := map[reason][]string{}
	for _, n := range c.Capabilities {
		if n.Strength == bawn.Enforced {
			continue
		}
		r := reason{n.Strength, launch.How(n), n.Remedy}
		if attributes[r] == nil {
			list = append(list, r)
		}
		attributes[r] = append(attributes[r], n.Attribute)
	}
	var b strings.Builder
	for _, r := range list {
		what := strings.Join(attributes[r], ", ")
		if len(attributes[r]) == len(c.Capabilities) {
			what = "everything"
		}
		if b.Len() == 0 {
			b.WriteString("\n" + c.Provider + "\n")
		}
		fold(&b, "  ", cells[r.strength]+": "+what)
		fold(&b, "      ", redact.Visible(r.detail))
		if r.remedy != "" { // in one line, to be copied
			b.WriteString("      → " + redact.Visible(r.remedy) + "\n")
		}
	}
	return b.String()
}

// lacks lists what one provider does not enforce in full, with its remedies: a line for
// each remedy.
func lacks(c doctor.Column) string {
	words := map[bawn.Strength]string{bawn.Partly: "in part", bawn.Unenforced: "not enforced"}
	type lack struct{ word, remedy string }
	var list []lack
	attributes := map[lack][]string{}
	for _, n := range c.Capabilities {
		l := lack{words[n.Strength], n.Remedy}
		if l.word == "" {
			continue
		}
		if attributes[l] == nil {
			list = append(list, l)
		}
		attributes[l] = append(attributes[l], n.Attribute)
	}
	var b strings.Builder
	for _, l := range list {
		fmt.Fprintf(&b, "%s: %s", l.word, strings.Join(attributes[l], ", "))
		if l.remedy != "" {
			b.WriteString(" → " + redact.Visible(l.remedy))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// fold writes text in lines of the matrix's width; further lines are indented
// like the first one's words. A word that is wider stays whole: it may have to
// be copied.
func fold(b *strings.Builder, lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	line := lead
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > matrixWidth {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(line + "\n")
}
