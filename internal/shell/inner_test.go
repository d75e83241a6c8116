package shell

import (
	"errors"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/bawn-dev/bawn/internal/shell/grammar"
)

// TestOtherMeanings shows what is read of meanings that the data files give
// rarely or not at all.
func TestOtherMeanings(t *testing.T) {
	word := func(s string) grammar.Word { return grammar.Word{Text: s} }
	tests := []struct {
		name    string
		meaning grammar.Meaning
		want    string
	}{
		{"no command", grammar.Meaning{Nested: []grammar.Nested{{}}}, ""},
		{"xargs alone", grammar.Meaning{Nested: []grammar.Nested{{Stdin: true}}}, "    echo | <what standard input says>… | via x | reads file -1\n"},
		{"replaced by something", grammar.Meaning{Nested: []grammar.Nested{{Args: []grammar.Word{word("a"), word("-{}")}, Replace: "{}"}}},
			"    a | \"-\"<what it is replaced by> | via x\n"},
		{"elsewhere", grammar.Meaning{
			Claims: []grammar.Claim{{Verb: grammar.Enter, Value: word("c"), Dir: []grammar.Word{word("b")}}},
			Nested: []grammar.Nested{{Args: []grammar.Word{word("a")}}},
		}, "    a | via x | in [\"/w/b/c\"]\n"},
		{"unknown environment", grammar.Meaning{Nested: []grammar.Nested{{IsScript: true, Script: word("echo $HOME $TMPDIR $A")}}},
			"    echo | <set or removed by x>… | <set or removed by x>… | <set or removed by x>… | via x -c\n"},
		{"another shell", grammar.Meaning{Nested: []grammar.Nested{{Args: []grammar.Word{{Text: "a", Vague: "b"}}}}}, ""},
	}
	defer func() { meaningOf = grammar.Parse }()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			meaningOf = func(words []grammar.Word) (grammar.Meaning, error) {
				if words[0].Text == "x" {
					return tt.meaning, nil
				}
				return grammar.Meaning{}, nil
			}
			l := Read("x y", testContext)
			l.Commands = l.Commands[1:]
			l.Opaque = nil
			if got := describe(l); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestOtherShells shows that what only trees of other shells hold is refused.
func TestOtherShells(t *testing.T) {
	r := newReader("", testContext)
	if r.treacherous(&syntax.ParamExp{Param: &syntax.Lit{Value: "x"}, Width: true}) == "" {
		t.Error("a width of mksh is accepted")
	}
	r.stmt(&syntax.Stmt{Coprocess: true, Cmd: &syntax.Block{}}, r.start())
	if len(r.line.Opaque) != 1 {
		t.Errorf("a coprocess of mksh gives %+v", r.line.Opaque)
	}
	if r.arithm(&syntax.FlagsArithm{}, &state{}) {
		t.Error("arithmetic of zsh is accepted")
	}
}

// TestUnstable shows that a tree is refused that does not read as it prints.
func TestUnstable(t *testing.T) {
	for _, text := range []string{"a)", "a  b"} {
		call := &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}}}}
		f := &syntax.File{Stmts: []*syntax.Stmt{{Cmd: call}}}
		if got, err := canonical(f, "", Bash); !errors.Is(err, errUnstable) {
			t.Errorf("%q is printed as %q, %v", text, got, err)
		}
	}
}
