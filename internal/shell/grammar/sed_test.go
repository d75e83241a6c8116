package grammar

import (
	"strings"
	"testing"
)

// sedMatch judges a sed script and returns what it claims to read.
func sedMatch(script string) (read []string, err error) {
	m := match{form: &form{effect: Reads}, program: "sed", label: "sed"}
	err = m.sed(script)
	for _, c := range m.claims {
		read = append(read, c.Value.Text)
	}
	return read, err
}

func TestSedProves(t *testing.T) {
	for _, script := range []string{
		"", "p", "1p", "$p", "1,5p", "1,+3p", "2,~4p", "0~3d", "/a/p", "/a/,/b/p", "/a/I,/b/MId", `\,a,p`, `\cRE\cMc=`, "1!p", "1 ! p", "$!N;P;D",
		"s/a/b/", "s/a/b/g", "s/a/b/gp2", "s,a/b,c/d,", "s|a|b|I", "s/a\\/b/c\\/d/", "s/[a]/[/", "s/[^]x]/y/", "s/[]]/y/", "s/[[:alpha:]]/x/g", "s/[a[]/x/",
		"s/[[:space:]]*$//;s/a/b/", "s/a/b/;p # comment", "s/a\\nb/c/", `s/[\t ]/x/`, "sxaxbx", "sexeye", "s/a/w f/", "s/w f/e/",
		"y/abc/xyz/", `y,a\,b,xyz,`, "y/a/b/;p", "{p;p}", "{p\np\n}", "1{/a/{p}}", "/a/!{p}",
		"a text", "a\\\ntext that says e id", "i\\\n  w /etc/passwd", "c\\\none\\\ntwo", "a one\np", "$a\\", "a e id; w f",
		":a;N;$!ba;s/\\n/ /g", ":a\nb a", "t;p", "{b};p", "{bend};:end", "T x", "# e id", "#n\np", "q", "q5", "Q 3", "l", "l 20", "=;F;z;x;h;H;g;G;n;N;D;P",
		"1 p ; 2 p",
	} {
		if read, err := sedMatch(script); err != nil || read != nil {
			t.Errorf("%q: %v, reads %q; want a proof", script, err, read)
		}
	}
}

// TestSedRefuses: every way to write a file or to run a command, hidden as
// well as can be, and what seds disagree about.
func TestSedRefuses(t *testing.T) {
	for _, script := range []string{
		"e", "e id", "1e id", "$!e id", "/x/e", "p;e id", "p\ne id", "{e id\n}", "p }e id", "w f", "w/etc/x", "W f", "1,2w f", "R f", "v", "M", "k", "1", "1,", ",2p", "1,2,3p", "!",
		"s/x/y/w f", "s/x/y/w", "s/x/y/gw f", "s/x/y/e", "s/x/y/ge", "s/x/y/2e", "s/x/y/Me", "s/x/y/m", "s,a,b,e", "s|a|b|w f", "sexeyee", "sexeyew f", "s/a/b/;s/c/d/w f",
		"s/a/b/ w f", "s/a/b/\te", "s/a/b/}e", "s/a/b", "s/a", "s", "s\na\nb\n", `s\a\b\`, "s/a\\/b/e", "s/[/]/x/e", "s/[^/]/x/", "s/[]/]/x/", "s/[[:alpha:]/]/x/", "s/[[:no/:]]/x/",
		"s/[[.a.]]/x/", "s/[[=a=]]/x/", "s/[a\nb]/x/", "s/[a\\\nb]/x/", "s/[a/b/", "s/[", "s/[\\", "s/[[:alpha", "s/[[:al:pha:]]/x/",
		"y/a/b/e", "y/a/b/w f", "y", "y/a", "y/a/b", "y\na\nb\n",
		`\cREce id`, `\`, `\c`, "\\\nx\np", `\\x\p`, "/a", "/a/e", "/a/w f", "/[/]/p",
		"a one\ne id", "a\\\ntext\ne id", "a one\\\\\ne id", "i\\\\\ntext\ne id", "c x\\\ny\nw f", "{a one}", "{p", "p}", "}", "{}}",
		":a b\ne id", ":a;e id", "b x e id", "bx}e id", "b\nw f", "{b}}e id", "#x\ne id", "q 5 e", "l;w f", "=w f", "nw f", "p w f", "pp", "r", "r\n", "{r f}", "{r f\n",
		"1~2~w f", "0,/x/e", "1,/x", "$!", "1!!", "\x00", "é", "s\xc3\xa9a\xc3\xa9",
	} {
		if read, err := sedMatch(script); err == nil {
			t.Errorf("%q is proven (reads %q), want a refusal", script, read)
		}
	}
}

func TestSedClaimsWhatItReads(t *testing.T) {
	for script, want := range map[string]string{
		"r /etc/shadow": "/etc/shadow", "$r  notes.txt ": "notes.txt", "/x/r a;b": "a;b", "r a\nr b": "a b", "1r ~/.ssh/id_rsa\np": "~/.ssh/id_rsa",
	} {
		read, err := sedMatch(script)
		if got := strings.Join(read, " "); err != nil || got != want {
			t.Errorf("%q reads %q, %v; want %q", script, got, err, want)
		}
	}
}
