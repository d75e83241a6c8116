package grammar

import (
	"strings"
	"testing"
)

// TestSpecials reads programs that are read in Go.
func TestSpecials(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"find", "find read"},
		{"find . -name g:*.go", "find read; look at ."},
		{"find -L src lib ( -type f -o ! -name x ) -print0", "find read; look at src; look at lib"},
		{"find u:X -type f", "find read"},
		{"find . -newer /etc/shadow -newermt 2020-01-01 -samefile y", "find read; look at .; look at /etc/shadow; look at 2020-01-01; look at y"},
		{"find . -newermt v:", "! which file find uses is not known: output of a command"},
		{"find . -O3 -printf %p", "find read; look at ."},
		{"find . g:?i", "! where find starts is not known"},
		{"find . -name x g:?i", "! nothing is known of find ?i"},
		{"find . -delete", "! find -delete removes what it finds"},
		{"find -delete", "! find -delete removes what it finds"},
		{"find . -exec cat {} ;", "find read; look at .; run cat {} <{}>."},
		{"find -exec cat {} ;", "find read; run cat {} <{}>."},
		{"find g:a* -exec cat {} +", "find read; look at a*; run cat {} <{}>"},
		{"find a b -execdir rm -rf {} + -ok id ;", "find read; look at a; look at b; run rm -rf {} <{}>a,b; run id <{}>a,b"},
		{"find . -exec", "! find -exec has no end"},
		{"find . -exec ;", "! find -exec has no end"},
		{"find . -exec x +", "! find -exec has no end"},
		{"find . -exec q: ;", "! find -exec has no end"},
		{"find . -fprint /etc/x", "! nothing is known of find -fprint"},
		{"find . -fprintf x y", "! nothing is known of find -fprintf"},
		{"find . -fls x", "! nothing is known of find -fls"},
		{"find -files0-from x", "! nothing is known of find -files0-from"},
		{"find -D exec .", "! nothing is known of find -D"},
		{"find . -name", "! nothing is known of find -name"},
		{"find . -name v:", "! nothing is known of find -name"},
		{"find . -name q:", "find read; look at ."},
		{"find q:", "! where find starts is not known"},
		{"find g:*", "! where find starts is not known"},
		{"find . -type q: q:", "! a word of find is not known"},
		{"find . -type f u:X", "! a word of find is not known"},
		{"find . p:-", "! where find starts is not known"},
		{"find . -true p:-del", "! a word of find is not known"},

		{"echo v: -e x", "echo read"},
		{"expr v:", "expr read"},
		{"true --x", "true read"},

		{"printf %s v:", "printf read"},
		{"printf -- %s g:*", "printf read"},
		{"printf u:X", "printf read"},
		{"printf", "! the format of printf is not known"},
		{"printf -v x", "! the format of printf is not known"},
		{"printf -va[$(id)] x", "! the format of printf is not known"},
		{"printf -- -v x", "! the format of printf is not known"},
		{"printf q:", "! the format of printf is not known"},
		{"printf g:* x", "! the format of printf is not known"},
		{"printf g:?v x", "! the format of printf is not known"},

		{"test", "test read"},
		{"test -f x -a -d y", "test read; look at x; look at -d; look at y"},
		{"[ -e /etc/shadow ]", "[ read; look at /etc/shadow"},
		{"[ 1 -eq +2 ]", "[ read"},
		{"[ q: = x ]", "[ read"},
		{"[ -n u:X ]", "[ read"},
		{"[ -f q: ]", "[ read"},
		{"[ -f u:X ]", "[ read"},
		{"[ -f g:*.txt ]", "[ read; look at *.txt"},
		{"[ -d g:node* ]", "[ read; look at node*"},
		{"[ -e x", "! [ lacks its ]"},
		{"[", "! [ lacks its ]"},
		{"[ -v a[$(id)] ]", "! test -v evaluates what it is given"},
		{"[ -R x ]", "! test -R evaluates what it is given"},
		{"test a -eq 1", "! test -eq may evaluate words that are no numbers"},
		{"test 1 -lt q:", "! test -lt may evaluate words that are no numbers"},
		{"test u:X -gt 1", "! test -gt may evaluate words that are no numbers"},
		{"test 1 -gt", "! test -gt may evaluate words that are no numbers"},
		{"test -ne 1", "! test -ne may evaluate words that are no numbers"},
		{"test v: = x", "! a word of test is not quoted and not known"},
		{"test g:* = x", "! a word of test is not quoted and not known"},
		{"test -e g:*", "! a word of test is not quoted and not known"},
		{"test g:-?", "! a word of test is not quoted and not known"},
		{"test g:??", "! a word of test is not quoted and not known"},

		{"ps", "ps read"},
		{"ps aux", "ps read"},
		{"ps -ef --sort=-rss -p 1,2 -o pid,comm", "ps read"},
		{"ps -C node 12", "ps read"},
		{"ps --pid 1", "ps read"},
		{"ps auxe", "! ps can show environments"},
		{"ps e", "! ps can show environments"},
		{"ps -axE", "! ps can show environments"},
		{"ps -o environ", "! ps can show environments"},
		{"ps -oenviron", "! ps can show environments"},
		{"ps --format=environ", "! ps can show environments"},
		{"ps -o q:", "! ps can show environments"},
		{"ps q:", "! a word of ps is not known"},
		{"ps ''", "! a word of ps is not known"},
		{"ps -o;x", "! nothing is known of ps -o;x"},
		{"ps --", "! nothing is known of ps --"},
	} {
		if got := said(Parse(wordsOf(tt.line))); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

// TestHelp: what only informs is proven for programs of the list, and only
// with plain words before it.
func TestHelp(t *testing.T) {
	b := bookOf("help.txt", "tool\nother -V version")
	for _, tt := range []struct{ line, want string }{
		{"tool --help", "tool --help read"},
		{"tool sub two-words --version", "tool --version read"},
		{"other version", "other version read"},
		{"other -V", "other -V read"},
		{"other --help", "! nothing is known of the program other"},
		{"tool --help x", "! nothing is known of the program tool"},
		{"tool a b c d --help", "! nothing is known of the program tool"},
		{"tool ./x --help", "! nothing is known of the program tool"},
		{"tool X --help", "! nothing is known of the program tool"},
		{"tool -x --help", "! nothing is known of the program tool"},
		{"tool '' --help", "! nothing is known of the program tool"},
		{"tool q: --help", "! nothing is known of the program tool"},
		{"tool q:--help", "! nothing is known of the program tool"},
		{"tool", "! nothing is known of the program tool"},
	} {
		if got := said(b.meaning(wordsOf(tt.line))); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}

// TestBrokenDataProveNothing: a program whose forms can't be read has none.
func TestBrokenDataProveNothing(t *testing.T) {
	b := bookOf("x.txt", "x: read; -a NOPE; -\ntar: read; nope; -\ny read; -; -\nz: read; @s; -\n@s = -a\n@s = -b")
	for line, want := range map[string]string{
		"x":      `! the data are broken: x.txt:1: unknown type "NOPE"`,
		"tar tf": `! the data are broken: x.txt:2: "nope" is no flag`,
		"y":      "! the data are broken: x.txt:3: want NAME",
		"z":      "! the data are broken: x.txt:6: @s is defined twice",
	} {
		if got := said(b.meaning(wordsOf(line))); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
		if names, exact := b.subcommand(wordsOf(line + " push")); len(names) != 1 || exact {
			t.Errorf("%s: its subcommands are %q, %v", line, names, exact)
		}
	}
}

func TestSubcommand(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		exact      bool
	}{
		{"", "", false},
		{"git push origin main", "git push origin main", true},
		{"/usr/bin/git -C x --no-pager push o", "git push o", true},
		{"git push -f o", "git push", false}, // what follows -f could be its value
		{"git -c core.pager=x push", "git", false},
		{"git --nope push", "git", false},
		{"no-such-program a b", "no-such-program", false},
		{"cat x -n", "cat x", true},
		{"git", "git", true},
		{"git q: push", "git", false},
		{"git p:pu push", "git", false},
		{"git g:c[l]ean -n", "git", false},
	} {
		got, exact := Subcommand(wordsOf(tt.line))
		if exact != tt.exact || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, %t; want %s, %t", tt.line, got, exact, tt.want, tt.exact)
		}
	}
}

// FuzzParse: no words make the engine panic, and what is proven has an effect.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"git -C x log --oneline -n5 a..b", "find . -exec rm {} +", "tar czf x y", "ps auxe", "[ -v x ]", "sed -n s/a/b/p f", "awk {print} f", "jq . f", "xargs -I % rm %", "env A=b ls", "printf -v x", "go test -run x ./...", "./x --y=/z", "cat v: q: g:* u:X b:src p:--x=", "rg --pre x y", "cp -t d a b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := wordsOf(line)
		m, err := Parse(words)
		if err == nil && m.Effect.String() == "invalid" {
			t.Fatalf("%q has a meaning without an effect", line)
		}
		if err != nil && (m.Effect != 0 || len(m.Claims) > 0) {
			t.Fatalf("%q is refused, and has a meaning", line)
		}
		Subcommand(words)
	})
}
