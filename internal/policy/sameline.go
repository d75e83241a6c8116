package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/grammar"
)

// dataFiles are endings of files that nothing executes.
var dataFiles = []string{".txt", ".log", ".out", ".csv", ".tsv", ".md", ".err", ".diff", ".patch", ".bak", ".orig"}

// sameLine asks where a line runs what it has just written, or follows a link
// it has just made: nobody has looked at that yet.
func (r *reading) sameLine(c *shell.Command, k part, j *judgement) {
	runs := k.wild == runsRepository
	if runs && len(r.planted) > 0 {
		j.lower(stagePlanted, bawn.Ask, "builtin:same-line", bawn.Builtin, "it may run "+r.planted[0]+", which the same line writes")
		j.fixed = true
	}
	if name, ok := r.executes(texts(c.Words), k); ok {
		j.lower(stagePlanted, bawn.Ask, "builtin:same-line", bawn.Builtin, "it may run "+name+", which the same line writes")
		j.fixed = true
	}
	if c.Loop && (c.Background || len(c.Words) == 1 && endless[c.Words[0].Text]) {
		j.lower("loop", bawn.Ask, "builtin:loop", bawn.Builtin, "a loop may run without end, or start programs without waiting for them")
		j.fixed = true
	}
	if r.linked && k.class != ReadOnly || r.leads && readsFiles(c) {
		j.lower(stagePlanted, bawn.Ask, "builtin:same-line", bawn.Builtin, "it may follow a link that the same line makes")
		j.fixed = true
	}
	r.remember(c, k)
}

// input asks where a calculator gets what nobody has seen, or a command: some
// take "!" for one.
func (r *reading) input(c *shell.Command, j *judgement) {
	if len(c.Words) == 0 || base(c.Words[0].Text) != "bc" || c.Unproven != "" {
		return
	}
	if in := c.Stdin; in.From != shell.Text || !in.Text.Literal() || strings.Contains(in.Text.Text, "!") {
		j.lower("input", bawn.Ask, "builtin:input", bawn.Builtin, "what it is to compute is not known")
		j.fixed = true
	}
}

// endless are conditions of loops that never change.
var endless = map[string]bool{"true": true, ":": true, "false": true}

// remember notes what a command leaves for those after it.
func (r *reading) remember(c *shell.Command, k part) {
	if len(c.Words) > 0 && c.Unproven == "" {
		name := base(c.Words[0].Text)
		r.linked = r.linked || name == "ln"
		r.leads = r.leads || name == "ln" && r.leadsOut(c)
		switch {
		case moves[name]:
			r.plant(c, grammar.Write, grammar.WriteTree, grammar.Move)
		case k.wild != runsRepository && !packs[name]:
			r.plant(c, grammar.Write, grammar.WriteTree)
		}
	}
	for _, rd := range c.Redirects {
		if rd.Writes() && !devices[rd.Target.Text] {
			r.written(rd.Target.Text)
		}
	}
}

// moves are programs that put files, or links to them, where they were not;
// packs are those of which nothing that they write is ever run.
var (
	moves = map[string]bool{"ln": true, "cp": true, "mv": true, "install": true, "rsync": true}
	packs = map[string]bool{"mkdir": true, "touch": true, "chmod": true, "rmdir": true, "gzip": true, "xz": true, "zip": true}
)

func (r *reading) plant(c *shell.Command, verbs ...grammar.Verb) {
	for _, cl := range c.Meaning.Claims {
		if slices.Contains(verbs, cl.Verb) {
			r.written(cl.Value.Text)
		}
	}
}

func (r *reading) written(name string) {
	if !slices.Contains(dataFiles, path.Ext(name)) {
		r.planted = append(r.planted, name)
	}
	r.data = append(r.data, path.Base(name))
}
