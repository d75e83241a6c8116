package grammar

import (
	"strings"
	"testing"
)

// TestCheckErrors: an error names the file, the line where the entry begins,
// and what was wanted.
func TestCheckErrors(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{"\n# c\nx", "f.txt:3: want NAME"},
		{"x read; -; -", "f.txt:1: want NAME"},
		{": read; -; -", "f.txt:1: want NAME"},
		{"a|: read; -; -", `f.txt:1: "" is no program's name`},
		{"a/b: read; -; -", `f.txt:1: "a/b" is no program's name`},
		{"x: read; -", "f.txt:1: want EFFECT; FLAGS; OPERANDS"},
		{"x: read\n  -; -", "f.txt:1: want EFFECT; FLAGS; OPERANDS"},
		{"x: look; -; -", `f.txt:1: unknown effect "look"`},
		{"x: ; -; -", `f.txt:1: unknown effect ""`},
		{"x: read; a; -", `f.txt:1: "a" is no flag`},
		{"x: read; -]; -", `f.txt:1: "-]" is no flag`},
		{"x: read; -a=b; -", `f.txt:1: "-a=b" is no flag`},
		{"x: read; =; -", `f.txt:1: "" is no flag`},
		{"x: read; -a|b; -", `f.txt:1: "b" is no flag`},
		{"x: read; -a NOPE; -", `f.txt:1: unknown type "NOPE"`},
		{"x: read; -a {a|b; -", `f.txt:1: unknown type "{a|b"`},
		{"x: read; -a[NOPE]; -", `f.txt:1: unknown type "NOPE"`},
		{"x: read; --a[=NOPE]; -", `f.txt:1: unknown type "NOPE"`},
		{"x: read; -a NUM&NOPE; -", `f.txt:1: unknown type "NOPE"`},
		{"x: read; -a NOPE&NUM; -", `f.txt:1: unknown type "NOPE"`},
		{"x: read; @none; -", "f.txt:1: @none is not defined in this file"},
		{"@a = -x @none\nx: read; @a; -", "f.txt:2: @none is not defined in this file"},
		{"@a = x\nx: read; @a; -", `f.txt:2: "x" is no flag`},
		{"@a", "f.txt:1: want @SET = FLAGS"},
		{"@ = -x", "f.txt:1: want @SET = FLAGS"},
		{"@a b = -x", "f.txt:1: want @SET = FLAGS"},
		{"@a = -x\n@a = -y", "f.txt:2: @a is defined twice"},
		{"x: read; -; NOPE", `f.txt:1: unknown type "NOPE"`},
		{"x: read; -; ...", "f.txt:1: an operand has no type"},
		{"x: read; -; []", "f.txt:1: an operand has no type"},
		{"x: read; -; CMD TEXT", "f.txt:1: CMD must be the last operand"},
		{"x:: =-a", "f.txt:1: a flag before a subcommand can't be required"},
		{"x:: b", `f.txt:1: "b" is no flag`},
	} {
		if err := Check("f.txt", tt.data); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.data, err, tt.want)
		}
	}
	for data, want := range map[string]string{
		"x": "", "x -h --help version": "", "# c": "", "x run": `help.txt:1: "run" is neither`, "a\nb x": `help.txt:2: "x" is neither`,
	} {
		err := Check("help.txt", data)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("help %q: %v, want %q", data, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	for e := range Effect(255) {
		if back, ok := parseEffect(e.String()); ok != (e.String() != "invalid") || ok && back != e {
			t.Errorf("effect %d reads %q and back %d", e, e, back)
		}
	}
	for v := range Verb(255) {
		if known := v > 0 && v <= Use; (v.String() != "invalid") != known {
			t.Errorf("verb %d reads %q", v, v)
		}
	}
	for _, w := range []Word{{Glob: true}, {Vague: "x"}, {Unset: []string{"X"}}} {
		if w.Literal() {
			t.Errorf("%+v is literal", w)
		}
	}
}

// FuzzCheck: no text makes the reader of data files panic, and what it accepts
// answers every command.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"x|y a|b: read; -[ab] -n NUM --c[=TEXT] !--d =-e|--f; [TEXT] FILE+ {a|b} TEXT...", "@s = -a\nx: wrap; @s * -NUM; ^ TEXT CMD", "x:: -C DIR\nx a: build; -; -", "x: read; -a TEXT!; TEXT"} {
		f.Add(s, "x a -n 5 --c=x -ab -- y")
	}
	f.Fuzz(func(t *testing.T, data, line string) {
		if Check("f.txt", data) != nil {
			return
		}
		b := bookOf("f.txt", data)
		var words []Word
		for _, w := range strings.Fields(line) {
			words = append(words, Word{Text: w, Glob: strings.Contains(w, "*")})
		}
		if m, err := b.meaning(words); err == nil && m.Effect == 0 {
			t.Fatalf("%q has a meaning without an effect", line)
		}
	})
}
