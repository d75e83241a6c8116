//go:build linux || darwin

package shim

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// own are the verbs that a guest calls for its session. They use the session socket of
// their caller's zone, which commands of the other zone can't reach.
var own = shell.NewWordSet("request run why")

// Own returns the arguments of bawn where all that a shell is called for is one
// plain `bawn request …`, `bawn run …` or `bawn why …`. Such a line is no command to be
// executed elsewhere. Its errors go where its output does if it says 2>&1.
func Own(argv []string) (args []string, together bool) {
	call, err := invocation.Parse(argv)
	if err != nil || call.Source != invocation.Text || call.Odd || len(call.Params) > 0 {
		return nil, false
	}
	if args := hookOf(call.Text); args != nil {
		return args, false
	}
	line := shell.Read(call.Text, shell.Context{})
	if len(line.Opaque) > 0 || len(line.Commands) != 1 {
		return nil, false
	}
	c := line.Commands[0]
	if len(c.Words) < 2 || len(c.Assigns) > 0 || len(c.Via) > 0 || c.Background || c.Loop || len(c.Redirects) > 1 {
		return nil, false
	}
	if len(c.Redirects) == 1 {
		r := c.Redirects[0]
		if together = r.Fd == "2" && r.Op == ">&" && r.Target.Literal() && r.Target.Text == "1"; !together {
			return nil, false
		}
	}
	for _, w := range c.Words {
		if !w.Literal() {
			return nil, false
		}
		args = append(args, w.Text)
	}
	if args[0] != "bawn" || !own.Has(args[1]) {
		return nil, false
	}
	return args[1:], together
}

// hookOf returns the arguments of bawn where a text is a call of its hook: that
// speaks to the session socket itself, and no command of the other zone could.
func hookOf(text string) []string {
	if !strings.Contains(text, " hook ") {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	_, args := ownHook(file, text)
	return args
}

// Shell is the shell that argv calls, as Main is, unless all that it is called
// for is bawn's own: then it returns the arguments of that, and no code.
func Shell(argv, environ []string) (own []string, code int) {
	args, together := Own(argv)
	if args == nil || together && dup(1, 2) != nil {
		return nil, Main(argv, environ)
	}
	return args, 0
}
