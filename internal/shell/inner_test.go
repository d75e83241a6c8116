package shell

import (
	"errors"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

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
