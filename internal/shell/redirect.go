package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects reads the redirections of a statement.
func (r *reader) redirects(list []*syntax.Redirect, st *state) []Redirect {
	var out []Redirect
	for _, x := range list {
		out = append(out, r.redirect(x, st))
	}
	return out
}

func (r *reader) redirect(x *syntax.Redirect, st *state) Redirect {
	out := Redirect{Op: x.Op.String()}
	if x.N != nil {
		out.Fd = x.N.Value
		if name, ok := strings.CutPrefix(out.Fd, "{"); ok {
			r.fillVariable(st, strings.TrimSuffix(name, "}"), Word{Vague: number}, x)
		}
	}
	switch x.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		out.Text = r.hereDoc(x, st)
	case syntax.WordHdoc:
		out.Text = r.single(x.Word, st)
		out.Text.Text += "\n"
	default:
		out.Target = r.target(x, st)
	}
	return out
}

// target is the file or descriptor of a redirection.
func (r *reader) target(x *syntax.Redirect, st *state) Word {
	words := r.fields(nil, x.Word, st)
	if len(words) != 1 {
		r.opaque("a redirection to more or less than one file", x)
		return Word{Vague: "several files", Split: true}
	}
	if t := words[0].Text; strings.HasPrefix(t, "/dev/tcp") || strings.HasPrefix(t, "/dev/udp") {
		r.opaque("a redirection to the network", x)
	}
	return words[0]
}

// hereDoc is the text of a here-document.
func (r *reader) hereDoc(x *syntax.Redirect, st *state) Word {
	if _, ok := pureName(x.Word); !ok {
		r.opaque("the end of a here-document is not plain", x)
		return Word{Vague: "a here-document"}
	}
	if x.Hdoc == nil {
		return Word{}
	}
	b := builder{r: r, st: st}
	for _, p := range x.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case !ok:
			b.part(p, true, false)
		case verbatim(x.Word):
			b.literal(lit.Value)
		default:
			b.literal(unescape(lit.Value, "$`\\"))
		}
	}
	w := b.word()
	if x.Op == syntax.DashHdoc {
		w.Text = untab(w.Text)
	}
	return w
}

// verbatim reports whether a here-document's delimiter is quoted, so that
// nothing in its text is expanded.
func verbatim(delimiter *syntax.Word) bool {
	for _, p := range delimiter.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.ContainsRune(lit.Value, '\\') {
			return true
		}
	}
	return false
}

func untab(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// input is what a command reads after its redirections.
func input(list []Redirect, in Stdin) Stdin {
	for _, x := range list {
		switch {
		case x.Fd != "" && x.Fd != "0", x.Fd == "" && !strings.HasPrefix(x.Op, "<"):
		case strings.HasPrefix(x.Op, "<<") && x.Text.Literal():
			in = Stdin{From: Text, Command: -1, Text: x.Text}
		case x.Op == "<&" && x.Target.Literal() && x.Target.Text == "0":
		default:
			in = Stdin{From: File, Command: -1}
		}
	}
	return in
}
