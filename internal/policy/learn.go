package policy

import (
	"path"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shell"
)

// How sure a learned answer must be to apply by itself, and to be suggested:
// the same answer 5 of 5 times is 6/7 = 0.857, 3 of 3 is 0.8.
const (
	Sure    = 0.85
	Suggest = 0.70
)

// unlearnable are programs that run their input: an answer about one line does
// not apply to the next.
var unlearnable = shell.NewWordSet(`sh bash dash zsh ksh fish csh tcsh busybox env nice nohup timeout xargs parallel sudo doas su ssh
	python python3 python2 node deno bun perl ruby php lua awk gawk mawk sed find git make npx docker podman kubectl
	command exec eval time stdbuf setsid watch script strace gdb expect socat nc ncat curl wget`)

// removers are programs about which each answer is about the names that it was given.
var removers = shell.NewWordSet("rm rmdir unlink mv chmod chown")

// RunsAnything reports whether a program, named without a directory, runs its
// input: an interpreter, a shell, a wrapper, or a tool whose subcommands have
// little in common. A permission for it as a whole is one for anything.
func RunsAnything(program string) bool { return unlearnable.Has(program) }

// shapeOf generalises a command to the shape under which answers are remembered:
// its words, of which paths stand for their directory. Anything but a plain
// command has none.
func shapeOf(c *shell.Command) (string, bool) {
	if len(c.Words) == 0 || len(c.Via) > 0 || len(c.Redirects) > 0 || len(c.Assigns) > 0 || c.Runs || c.Builtin {
		return "", false
	}
	if name := c.Words[0].Text; unlearnable.Has(base(name)) || removers.Has(base(name)) || strings.Contains(name, "/") {
		return "", false
	}
	shape := make([]string, 0, len(c.Words))
	for i, w := range c.Words {
		text := w.Text
		switch {
		case !w.Literal() || strings.ContainsAny(text, " \t\n*~") || strings.Contains(text, "..") || strings.HasPrefix(text, "/"):
			return "", false
		case i > 0 && !strings.HasPrefix(text, "-") && strings.ContainsAny(text, "/."):
			text = path.Dir(path.Clean(text)) + "/*"
		}
		shape = append(shape, text)
	}
	return strings.Join(shape, " "), true
}

// Shapes returns the shapes under which the answer to a question could be
// remembered, none if any part of the action must be asked each time.
func (p *Policy) Shapes(q *Question) []string {
	if q.Action.Kind != bawn.Command || q.Taint.Any() {
		return nil
	}
	r := reading{p: p, q: q, line: q.read(p.known().secret)}
	if len(r.line.Opaque) > 0 {
		return nil
	}
	var out []string
	for i := range r.line.Commands {
		c := &r.line.Commands[i]
		j := r.command(c)
		if j.fixed {
			return nil
		}
		if j.verdict == bawn.Allow {
			continue
		}
		s, ok := shapeOf(c)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}
