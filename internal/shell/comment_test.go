package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestHashInAWord: what a shell reads as part of a word hides nothing behind it,
// wherever it stands; "pwn" has to be seen, or the line not to be understood.
func TestHashInAWord(t *testing.T) {
	words := []string{"$HOME#x", `"a"#x`, "'a'#x", "${HOME}#x", "$(true)#x", "`true`#x", "$((1))#x", `\~$HOME#x`, "$?#x", "a$HOME#x", "$'a'#x", "a\\\n#x", `a\ #x`, `a\;#x`, "a#x", "#x", "$HOME\\\n#x", `$"a"#x`, "<(true)#x", "{a,b}#x", "*#x", "~#x"}
	for _, place := range []string{
		"echo W; pwn", "(echo W; pwn\n)", "{ echo W; pwn\n}", "echo $(echo W; pwn\n)", "echo `echo W; pwn\n`", "echo \"$(echo W; pwn\n)\"",
		"case x in x) echo W; pwn\n;; esac", "cat <<E\n$(echo W; pwn\n)\nE", "if true; then echo W; pwn\nfi", "for i in x; do echo W; pwn\ndone",
		"f() { echo W; pwn\n}; f", "f() ( echo W; pwn\n); f", "echo ${a:-$(echo W; pwn\n)}", "cat <(echo W; pwn\n)", "(case x in x) echo W; pwn\n;; esac\n)",
		"echo $( (echo W; pwn\n) )", "a=$(echo W; pwn\n)", "a=W; pwn", "(a=W; pwn\n)", "(echo >W; pwn\n)", "(echo x W; pwn\n)", "(for i in W; do pwn\ndone)", "(case W in x) pwn\n;; *) pwn\n;; esac)",
		"(a=(W); pwn\n)", "([[ W ]]; pwn\n)", "(echo <<<W; pwn\n)", "echo ${a[$(echo W; pwn\n)]#y}", "echo ${a/$(echo W; pwn\n)/y}", "echo ${a:$(echo W; pwn\n)}", "echo $((1 + $(echo W; pwn\n)))",
	} {
		for _, w := range words {
			line := strings.Replace(place, "W", w, 1)
			if w == "#x" && !strings.Contains(line, "=#x") && !strings.Contains(line, ">#x") && !strings.Contains(line, "<#x") {
				continue // a comment
			}
			got := Read(line, testContext)
			if !sees(got, "pwn") && len(got.Opaque) == 0 {
				t.Errorf("%q reads as\n%s", line, describe(got))
			}
		}
	}
}

// TestOrdinaryHashes are understood.
func TestOrdinaryHashes(t *testing.T) {
	for _, line := range []string{
		"echo a # b#c \"d\"#e", "# only", "echo a;# b", "(echo a) # b", "( # b\necho a\n)", "echo a#b", "echo 'a'#b", "echo ${a#b} ${a##*/} ${#a} $#", "echo \"#\" '#' \\#", "cat <<E # c\ntext#x $a#y # z\nE",
		"echo $(echo a # b\n)", "case x in # c\nx) echo a # d\n;; esac", "sed 's#a#b#' f", "curl http://x.example/#y", "a=#b; echo $a", "[ $# -gt 0 ]", "echo ${a:-#b}", "cat <<'E'\n# text `x`\nE",
		"echo a\n\n# b\necho c", "for i in a; do # b\n\techo $i\ndone",
	} {
		if got := Read(line, testContext); len(got.Opaque) > 0 {
			t.Errorf("%q: %+v", line, got.Opaque)
		}
	}
}

// sees reports whether a line has a command of that name.
func sees(l Line, name string) bool {
	return slices.ContainsFunc(l.Commands, func(c Command) bool { return len(c.Words) > 0 && c.Words[0].Text == name })
}
