package grammar

import (
	"errors"
	"strings"
	"testing"
)

// wordsOf reads words apart at blanks. A prefix says what is not known of
// one: v: nothing, q: nothing but that it is one word, b: only the directory it
// lies below, p: only how it begins, u: a variable that nothing sets, g: it is a
// pattern. ” is an empty word.
func wordsOf(text string) (out []Word) {
	for f := range strings.FieldsSeq(text) {
		kind, rest, has := strings.Cut(f, ":")
		w := Word{Text: rest}
		switch {
		case !has || !strings.Contains("v q b p u g", kind) || kind == "":
			w.Text = strings.ReplaceAll(strings.ReplaceAll(f, "''", ""), "␠", " ")
		case kind == "v":
			w.Vague, w.Split = "output of a command", true
		case kind == "q":
			w.Vague = "output of a command"
		case kind == "b":
			w = Word{Vague: "a found file", Below: []string{rest}}
		case kind == "p":
			w.Vague = "output of a command"
		case kind == "u":
			w = Word{Unset: []string{rest}}
		case kind == "g":
			w.Glob = true
		}
		out = append(out, w)
	}
	return out
}

// said writes a meaning, or the reason why a command has no meaning.
func said(m Meaning, err error) string {
	var why *Unproven
	switch {
	case errors.As(err, &why):
		return "! " + why.Reason
	case err != nil:
		return "BUG: not an *Unproven: " + err.Error()
	}
	out := m.Form + " " + m.Effect.String()
	for _, c := range m.Claims {
		out += "; " + c.Verb.String() + " " + shown(c.Value)
		for _, d := range c.Dir {
			out += " in " + d.Text
		}
	}
	for _, n := range m.Nested {
		switch {
		case n.IsScript:
			out += "; script " + shown(n.Script)
			for _, p := range n.Params {
				out += " " + shown(p)
			}
		default:
			out += "; run"
			for _, a := range n.Args {
				out += " " + shown(a)
			}
		}
		if n.Stdin {
			out += " <" + n.Replace + ">" + strings.Join(n.Below, ",")
		}
	}
	return out
}

func shown(w Word) string {
	if w.Vague != "" {
		return w.Text + "?" + strings.Join(w.Below, ",")
	}
	return w.Text
}

const sample = `
@common = -v --verbose
p: read; @common -[ab] -n NUM --lines NUM --color[=TEXT] -i[TEXT] --in FILE --out WRITE -o WRITE -race -run TEXT !-x !--exec --two TEXT&FILE --opt[FILE] -NUM; FILE...
lenient: build; * !--exec !-x -C DIR; ARG...
closed: build; -a !--; ARG...
need: read; =-w|--write -a; FILE
need: write; =-c {on|off}; WRITE
exact: read; -; TEXT [NUM] FILE
plus: read; -; FILE+ TEXT
lit: read; -; add {a|b} [all]
posix: read; -a; ^ TEXT TEXT...
wrap: wrap; -n NUM; TEXT CMD
maybe: wrap; -; CMD
run0: wrap; -; [CMD]
text0: wrap; -; [SCRIPT]
inside: read; -; DIR
sh: wrap; =-c -l; SCRIPT TEXT...
one: wrap; -; SCRIPT
flagged: wrap; -c SCRIPT; -
xargs: wrap; -0 -I TEXT -i[TEXT] --replace[=TEXT] -n NUM; CMD
cp: write; -r -t WTREE; TREE... WTREE
rsync: read; -; WTREE TREE
grepx: read; -e TEXT! -v; TEXT TREE...
g:: -C DIR -c GITCONF -v
g log: read; --oneline -n NUM; REF...
g a|b c: read; -; FILE
g run: wrap; -; CMD
g remote: read; -; -
g remote add: build; -; REMOTE URL
w:: -q
w: read; -q; TEXT
w sub: read; -; -
into: wrap; -C DIR; CMD
types: read; -p PROG -d DELETE -m MOVE -w WTREE -t TREE -N NAME -f FILE -X EXEC -h HOST -U URL -a ASSIGN -k KV -P PKG -g GOMOD -j NPM -z PLUS -r REF -R REMOTE -K KUBE -G GITCONF -s SED -A AWK -J JQ -e CODE -n NUM -O OPTS -D DIR -q {x|y} -o GOAL; -
edit: write; -s SED -k TEXT; WRITE...
env: wrap; -; ASSIGN... CMD
tar: read; -t -z -f FILE; FILE...
`

func TestMeaning(t *testing.T) {
	b := bookOf("sample.txt", sample)
	for _, tt := range []struct{ line, want string }{
		// Flags and their spellings.
		{"p", "p read"},
		{"p x y", "p read; read x; read y"},
		{"p -v --verbose -ab x", "p read; read x"},
		{"p -abn5 x", "p read; read x"},
		{"p -abn 5 x", "p read; read x"},
		{"p -n", "! p -n lacks its value"},
		{"p -abn", "! p -n lacks its value"},
		{"p -n x", "! “x” is not known to be harmless for p"},
		{"p -n=5", "! “=5” is not known to be harmless for p"},
		{"p --lines 5", "p read"},
		{"p --lines=5", "p read"},
		{"p --lines", "! p --lines lacks its value"},
		{"p --line=5", "! nothing is known of p --line"},
		{"p --verbose=1", "! p --verbose takes no value"},
		{"p --color --color=auto x", "p read; read x"},
		{"p --color x", "p read; read x"},
		{"p -i x", "p read; read x"},
		{"p -i.bak x", "p read; read x"},
		{"p -race -run x -run=y", "p read"},
		{"p -race=1", "! p -race takes no value"},
		{"p -racy", "! nothing is known of p -r"},
		{"p -20 x", "p read; read x"},
		{"p -2x", "! nothing is known of p -2"},
		{"p -abc", "! nothing is known of p -c"},
		{"p -x", "! p -x is not known to be harmless"},
		{"p -abx", "! p -x is not known to be harmless"},
		{"p --exec", "! p --exec is not known to be harmless"},
		{"p --exec=y", "! p --exec is not known to be harmless"},
		{"p --two a b c", "p read; read b; read c"},
		{"p --two a", "! p --two lacks its values"},
		{"p --two=a b", "! p --two lacks its values"},
		{"p --two v: b", "! the value of p --two is not one known word"},
		{"p --opt x", "p read; read x"},
		{"p --opt=y x", "p read; read y; read x"},
		{"p --in x --out=y -oz -o w", "p read; read x; write y; write z; write w"},
		{"p --in --exec", "p read; read --exec"}, // the value of a flag is no flag
		{"p x -- -v --exec", "p read; read x; read -v; read --exec"},
		{"p -", "p read"},
		{"p ''", "! an empty path"},
		{"p u:X", "p read"},
		{"p v:", "! what output of a command says could be a flag of p"},
		{"p q:", "! what output of a command says could be a flag of p"},
		{"p p:-v", "! a flag of p is not known"},
		{"p p:-n=", "! a flag of p is not known"},
		{"p p:--in=/x", "! which file p uses is not known: output of a command"},
		{"p p:--color=", "p read"},
		{"p b:src", "p read; read ?src"},
		{"p g:*.go", "! a name that matches *.go could be a flag of p; write ./*.go"},
		{"p g:./*.go", "p read; read ./*.go"},
		{"p -n g:*", "! the value of p -n is not one known word"},
		{"p --in g:x*", "p read; read x*"},
		{"p --in v:", "! the value of p --in is not one known word"},
		{"p --in q:", "! which file p uses is not known: output of a command"},
		{"p +x", "! “+x” could be an option of p; write ./+x"},
		{"p @x", "! “@x” could be an option of p; write ./@x"},
		{"/usr/bin/p x", "p read; read x"},
		{"/opt/p x", "/opt/p build; execute /opt/p"},
		{"usr/bin/p x", "usr/bin/p build; execute usr/bin/p"},
		{"./p -x --y=/etc a/b", "./p build; execute ./p; write /etc; use /etc; use a/b"},
		{"./p v:", "! what output of a command says could be a flag of ./p"},
		{"none", "! nothing is known of the program none"},
		{"''", "! the program's name is not known"},
		{"v:", "! the program's name is not known"},
		{"", "! the program's name is not known"},

		// Lenient forms.
		{"lenient --any --other=plain -z x", "lenient build"},
		{"lenient --other=/etc/x", "lenient build; write /etc/x; use /etc/x"},
		{"lenient --other=../x", "lenient build; write ../x; use ../x"},
		{"lenient -I/etc", "lenient build; write /etc; use /etc"},
		{"lenient -I@f", "! “@f” is not known to be harmless for lenient"},
		{"lenient --other=", "lenient build"},
		{"lenient --other=http://x", "! “http://x” is not known to be harmless for lenient"},
		{"lenient --other=@f", "! “@f” is not known to be harmless for lenient"},
		{"lenient --exec=x", "! lenient --exec is not known to be harmless"},
		{"lenient -ax", "lenient build"},
		{"lenient -x", "! lenient -x is not known to be harmless"},
		{"lenient p:-I", "! a flag of lenient is not known"},
		{"lenient p:--a=", "! a flag of lenient is not known"},
		{"lenient g:--a=*", "! a flag of lenient is not known"},
		{"lenient g:*.go", "lenient build; use *.go"},
		{"lenient u:X", "! the variable X is not set in this line"},
		{"lenient -C sub x/y", "lenient build; enter sub; use x/y in sub"},
		{"closed a", "closed build"},
		{"closed -- a", "! closed -- is not known to be harmless"},

		// Required flags and operands.
		{"need -w x", "need read; read x"},
		{"need --write -a x", "need read; read x"},
		{"need -c on x", "need write; write x"},
		{"need -c up x", "! nothing is known of need -c"},
		{"need x", "! need without -w is another form"},
		{"exact a b", "exact read; read b"},
		{"exact a 5 b", "exact read; read b"},
		{"exact a x b", "! “x” is not known to be harmless for exact"},
		{"exact a", "! exact lacks an operand"},
		{"exact a 5 b c", "! exact has no use for c"},
		{"plus a b c", "plus read; read a; read b"},
		{"plus c", "! plus lacks an operand"},
		{"lit add a", "lit read"},
		{"lit add b all", "lit read"},
		{"lit add b any", "! lit has no use for any"},
		{"lit add c", "! “c” is not known to be harmless for lit"},
		{"lit del a", "! “del” is not known to be harmless for lit"},
		{"posix -a x -a --whatever", "posix read"},
		{"grepx x dir", "grepx read; read below dir"},
		{"grepx -e x dir", "grepx read; read below dir"},
		{"grepx -v x", "grepx read"},
		{"edit u:X", "! the variable X is not set in this line"},
		{"edit -s p x", "edit write; write x"},
		{"edit -s ''", "! sed -i '' takes another word for its script on macOS"},

		// What runs other commands.
		{"wrap 5 rm -rf x", "wrap wrap; run rm -rf x"},
		{"wrap -n 5 x rm", "wrap wrap; run rm"},
		{"wrap x", "! wrap lacks an operand"},
		{"maybe", "! maybe lacks an operand"},
		{"sh -c id", "sh wrap; script id"},
		{"sh -c id a b", "sh wrap; script id a b"},
		{"sh -c v:", "! what output of a command says could be a flag of sh"},
		{"sh id", "! sh without -c is another form"},
		{"one a b", "! one has no use for b"},
		{"flagged -c id", "flagged wrap; script id"},
		{"xargs rm x", "xargs wrap; run rm x <>"},
		{"xargs -I % rm %", "xargs wrap; run rm % <%>"},
		{"xargs -i rm {}", "xargs wrap; run rm {} <{}>"},
		{"xargs --replace=@ rm @", "xargs wrap; run rm @ <@>"},
		{"env A=b C=d x=", "env wrap; set A=b; set C=d; run x="},
		{"env A=b C=d run x=y", "env wrap; set A=b; set C=d; run run x=y"},
		{"run0", "run0 wrap"},
		{"text0", "text0 wrap"},
		{"inside sub", "inside read; enter sub"},
		{"inside g:s*", "! the directory that inside works in is not known"},
		{"into -C dir ls", "! it runs a command in another directory"},

		// Copies into a directory.
		{"cp -r a/b c d", "cp write; read below a/b; read below c; write below d; write d/b; write d/c"},
		{"cp -t d a b", "cp write; write below d; read below a; write below b; write d/a"},
		{"cp a b:src", "cp write; read below a; write below ?src"},
		{"rsync d a", "rsync read; write below d; read below a; write d/a"},

		// Subcommands.
		{"g log --oneline v1 src/x", "g log read"},
		{"g -C d log /x", "g log read; enter d; use /x in d"},
		{"g -C d -C e log /x", "g log read; enter d; enter e in d; use /x in d in e"},
		{"g -c color.ui=never -v log", "g log read"},
		{"g -c core.pager=x log", "! “core.pager=x” is not known to be harmless for g"},
		{"g a c x", "g a c read; read x"},
		{"g b c x", "g b c read; read x"},
		{"g a d", "! no known way to use g a"},
		{"g q: log", "! no known way to use g"},
		{"g nope", "! no known way to use g"},
		{"g --nope log", "! nothing is known of g --nope"},
		{"g -C d run ls", "! it runs a command in another directory"},
		{"g run ls -l", "g run wrap; run ls -l"},
		{"g remote", "g remote read"},
		{"g remote add o https://x.example/y", "g remote add build; connect to https://x.example/y"},
		{"g remote add o x", "! “x” is not known to be harmless for g remote add"},
		{"w sub", "w sub read"},
		{"w other", "w read"},
		{"w -q other", "w read"},
		{"w --no other", "! nothing is known of w --no"},

		// Types.
		{"types -p ./x", "types read; execute ./x"},
		{"types -p -x", "! which program types runs is not known"},
		{"types -p a:b", "! which program types runs is not known"},
		{"types -p q:", "! which program types runs is not known"},
		{"types -d a -m b -w c -t d -N e -f f -X g", "types read; delete a; move b; write below c; read below d; look at e; read f; execute g"},
		{"types -h x.example -U https://x.example/a -U git@x.example:a", "types read; connect to x.example; connect to https://x.example/a; connect to git@x.example:a"},
		{"types -U x", "! “x” is not known to be harmless for types"},
		{"types -U ext::sh", "! “ext::sh” is not known to be harmless for types"},
		{"types -U FILE:///etc/passwd", "! “FILE:///etc/passwd” is not known to be harmless for types"},
		{"types -h -oProxyCommand=x", "! “-oProxyCommand=x” is not known to be harmless for types"},
		{"types -a A=b -k anything", "types read; set A=b"},
		{"types -a 1=b", "! “1=b” is not known to be harmless for types"},
		{"types -a =b", "! “=b” is not known to be harmless for types"},
		{"types -P react@1.2 -P @types/node -P a==2 -P golang.org/x/y@v1 -P org.x:y:1", "types read"},
		{"types -P ../x", "! “../x” is not known to be harmless for types"},
		{"types -P /x", "! “/x” is not known to be harmless for types"},
		{"types -P ~/x", "! “~/x” is not known to be harmless for types"},
		{"types -P -x", "! “-x” is not known to be harmless for types"},
		{"types -P ''", "! “” is not known to be harmless for types"},
		{"types -P git+https://x", "! “git+https://x” is not known to be harmless for types"},
		{"types -P github:a/b", "! “github:a/b” is not known to be harmless for types"},
		{"types -P a:b:c:d:e", "! “a:b:c:d:e” is not known to be harmless for types"},
		{"types -P x.y:a$b", "! “x.y:a$b” is not known to be harmless for types"},
		{"types -P a;b", "! “a;b” is not known to be harmless for types"},
		{"types -g golang.org/x/y@v1 -g fmt", "types read; connect to golang.org"},
		{"types -g ./x", "! “./x” is not known to be harmless for types"},
		{"types -j react@1 -j @a/b@1", "types read"},
		{"types -j a/b", "! “a/b” is not known to be harmless for types"},
		{"types -z +stable", "types read"},
		{"types -z stable", "! “stable” is not known to be harmless for types"},
		{"types -r main -r HEAD~2 -r a..b -r HEAD:x -r @{u} -r :/fix", "types read; read x"},
		{"types -r /x -r ./x -r ../x -r .. -r ~/x", "types read; use /x; use ./x; use ../x; use ..; use ~/x"},
		{"types -r +main", "! “+main” is no plain name for types"},
		{"types -r -x", "! “-x” is no plain name for types"},
		{"types -r https://x", "! “https://x” is no plain name for types"},
		{"types -r ext::x", "! “ext::x” is no plain name for types"},
		{"types -r u@h:x", "! “u@h:x” is no plain name for types"},
		{"types -r h:/x", "! “h:/x” is no plain name for types"},
		{"types -r :x", "! “:x” is no plain name for types"},
		{"types -r a`b", "! “a`b” is no plain name for types"},
		{"types -r ''", "! “” is no plain name for types"},
		{"types -R origin -R owner/repo", "types read"},
		{"types -R ../x", "! “../x” is not known to be harmless for types"},
		{"types -R a/..", "! “a/..” is not known to be harmless for types"},
		{"types -R -x", "! “-x” is not known to be harmless for types"},
		{"types -R https://x", "! “https://x” is not known to be harmless for types"},
		{"types -K pods -K deploy/x -K a,b", "types read"},
		{"types -K secrets", "! “secrets” is not known to be harmless for types"},
		{"types -K Secret/x", "! “Secret/x” is not known to be harmless for types"},
		{"types -K -x", "! “-x” is not known to be harmless for types"},
		{"types -G color.ui=x -G commit.gpgsign=false -G diff.renames=true -G user.name=x", "types read"},
		{"types -G commit.gpgsign=true", "! “commit.gpgsign=true” is not known to be harmless for types"},
		{"types -G diff.external=x", "! “diff.external=x” is not known to be harmless for types"},
		{"types -G diff.x.command=y", "! “diff.x.command=y” is not known to be harmless for types"},
		{"types -G diff.x.renames=y", "! “diff.x.renames=y” is not known to be harmless for types"},
		{"types -G diff.textconv=y", "! “diff.textconv=y” is not known to be harmless for types"},
		{"types -G log.showSignature=true", "! “log.showSignature=true” is not known to be harmless for types"},
		{"types -G core.fsmonitor=x", "! “core.fsmonitor=x” is not known to be harmless for types"},
		{"types -G alias.x=!id", "! “alias.x=!id” is not known to be harmless for types"},
		{"types -s p -A 1 -J .", "types read"},
		{"types -s r␠/etc/shadow", "types read; read /etc/shadow"},
		{"types -s e", "! the sed script “e” can do more than print"},
		{"types -A system()", "! the awk program uses system"},
		{"types -A (", "! the awk program can't be read"},
		{"types -J env", "! the jq filter uses env"},
		{"types -e 1", "! “1” is not known to be harmless for types"},
		{"types -n 5 -n -5 -n +5 -n 10M -n 50% -n 1.5 -n 2h", "types read"},
		{"types -n x", "! “x” is not known to be harmless for types"},
		{"types -n 1.x", "! “1.x” is not known to be harmless for types"},
		{"types -n ''", "! “” is not known to be harmless for types"},
		{"types -n q:", "! a word of types is not known"},
		{"types -n u:X", "types read"},
		{"types -q x", "types read"},
		{"types -q z", "! “z” is not known to be harmless for types"},
		{"types -O -Ia -o all", "types read"},
		{"types -o a;b=c", "! “a;b” is no plain variable"},
		{"types -D q:", "! which file types uses is not known: output of a command"},
		{"types -D g:a*", "! the value of types -D is not one known word"},
		{"types -D u:X", "types read"},
		{"types -P " + strings.Repeat("a$", 40), "! “" + strings.Repeat("a$", 28) + "a…” is not known to be harmless for types"},
		{"tar -tf x", "tar read; read x"},
		{"tar tzf x y", "tar read; read x; read y"},
		{"tar f", "! tar -f lacks its value"},
		{"tar -f host:x", "! “host:x” could name another machine for tar"},
		{"gtar x", "! nothing is known of the program gtar"},
	} {
		if got := said(b.meaning(wordsOf(tt.line))); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}
}
