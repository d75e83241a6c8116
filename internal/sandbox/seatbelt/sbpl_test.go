package seatbelt

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
)

// A form is an expression as a reader of the language sees it: a word, a string
// (which begins with a quote), a regular expression (with #), or a list.
type form struct {
	word string
	list []form
}

var errForm = errors.New("no form")

// read takes one form off text.
func read(text string) (form, string, error) {
	text = skip(text)
	switch {
	case text == "":
		return form{}, "", errForm
	case text[0] == '(':
		return readList(text[1:])
	case text[0] == '"':
		return readString(text[1:], `"`)
	case strings.HasPrefix(text, `#"`):
		end := strings.IndexByte(text[2:], '"')
		if end < 0 {
			return form{}, "", errForm
		}
		return form{word: "#" + text[2:2+end]}, text[3+end:], nil
	}
	end := strings.IndexAny(text, " \t\n()\";")
	if end <= 0 {
		return form{}, "", errForm
	}
	return form{word: text[:end]}, text[end:], nil
}

func skip(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\n")
		if !strings.HasPrefix(text, ";") {
			return text
		}
		_, text, _ = strings.Cut(text, "\n")
	}
}

func readList(text string) (form, string, error) {
	f := form{list: []form{}}
	for {
		if text = skip(text); strings.HasPrefix(text, ")") {
			return f, text[1:], nil
		}
		one, rest, err := read(text)
		if err != nil {
			return form{}, "", err
		}
		f.list, text = append(f.list, one), rest
	}
}

func readString(text, mark string) (form, string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return form{word: mark + b.String()}, text[i+1:], nil
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte(`"\`, text[i+1]) >= 0:
			i++
		case text[i] == '\\' || text[i] < ' ':
			return form{}, "", errForm // read differently by different readers
		}
		b.WriteByte(text[i])
	}
	return form{}, "", errForm
}

// forms reads a whole profile.
func forms(t testing.TB, text string) []form {
	t.Helper()
	var out []form
	for skip(text) != "" {
		f, rest, err := read(text)
		if err != nil || f.list == nil {
			t.Fatalf("no profile: %v at %.80q", err, text)
		}
		out, text = append(out, f), rest
	}
	return out
}

// decide says whether a profile allows an operation on a path: the last rule
// that matches counts.
func decide(t testing.TB, rules []form, operation, file string) bool {
	t.Helper()
	allowed := false
	for _, r := range rules {
		verdict := r.list[0].word
		if verdict != "allow" && verdict != "deny" {
			continue
		}
		var filters []form
		matches := false
		for _, part := range r.list[1:] {
			if part.list != nil {
				filters = append(filters, part)
				continue
			}
			prefix, wild := strings.CutSuffix(part.word, "*")
			matches = matches || part.word == "default" || part.word == operation || wild && strings.HasPrefix(operation, prefix)
		}
		if matches && (len(filters) == 0 || slices.ContainsFunc(filters, func(f form) bool { return holds(t, f, file) })) {
			allowed = verdict == "allow"
		}
	}
	return allowed
}

// guestsTerminal is one that the guest has made.
const guestsTerminal = "/dev/ttys777"

// compiled keeps regular expressions, of which every profile has the same ones.
var compiled = map[string]*regexp.Regexp{}

func holds(t testing.TB, f form, file string) bool {
	t.Helper()
	arg := ""
	if len(f.list) == 2 {
		arg = f.list[1].word
	}
	switch f.list[0].word {
	case "literal":
		return file == arg[1:]
	case "subpath":
		return file == arg[1:] || strings.HasPrefix(file, strings.TrimSuffix(arg[1:], "/")+"/")
	case "regex":
		re, known := compiled[arg]
		if !known {
			re = regexp.MustCompile(arg[1:])
			compiled[arg] = re
		}
		return re.MatchString(file)
	case "require-all":
		for _, part := range f.list[1:] {
			if !holds(t, part, file) {
				return false
			}
		}
		return true
	case "extension": // a path's, which it gets when the guest opens the other end
		return file == guestsTerminal
	case "remote", "local":
		return socket(t, f, file)
	case "target", "ipc-posix-name", "global-name", "socket-domain":
		return false
	}
	t.Fatalf("a filter that this reader does not know: %v", f)
	return false
}

// socket says whether a filter is about a socket: "unix:PATH", or "ip:HOST:PORT".
func socket(t testing.TB, f form, what string) bool {
	t.Helper()
	switch kind := f.list[1].word; kind {
	case "unix-socket":
		file, ok := strings.CutPrefix(what, "unix:")
		return ok && (len(f.list) == 2 || holds(t, f.list[2], file))
	case "ip":
		at, ok := strings.CutPrefix(what, "ip:")
		host, any := strings.CutSuffix(f.list[2].word[1:], ":*")
		return ok && (at == f.list[2].word[1:] || any && strings.HasPrefix(at, host+":"))
	}
	t.Fatalf("a socket that this reader does not know: %v", f)
	return false
}

func TestPatternMeansItsText(t *testing.T) {
	for _, s := range []string{".git", "a.b", "A-b_c 1", `q"uote`, `back\slash`, "[x]", "(a|b)", "^$*+?{}", "ä€", "a]b", "a\x7fb", ".*"} {
		re := regexp.MustCompile("^" + pattern(s) + "$")
		if !re.MatchString(s) || !re.MatchString(strings.ToUpper(s)) || strings.ContainsAny(pattern(s), `"\`) {
			t.Errorf("%q: %s", s, re)
		}
	}
	if regexp.MustCompile("^" + pattern(".git") + "$").MatchString("xgit") {
		t.Error("a dot matches anything")
	}
}

func TestPathsThatCantBeSaid(t *testing.T) {
	for _, p := range []string{"/a\nb", "/a\x00", "/a\x1b[2J", "/\xff", "relative", "", "/a\u0085b", "/a\rb", "/a\tb"} {
		r := request()
		r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: bawn.ReadWrite})
		var e *TextError
		if _, err := Make(r, mac()); !errors.As(err, &e) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// FuzzPathsStayText: whatever a path holds, the profile has the same rules, and
// opens that path and no other.
func FuzzPathsStayText(f *testing.F) {
	for _, s := range []string{`/w"`, `/w\`, `/w\"`, `/w"))(allow file-write* (subpath "/"))`, "/w\n(allow default)", `/w;x`, `/w#"`, `/w(`, "/ä", `/w\\\"`, "/ ", "/w/[a-z]*", `/w")(regex #".*`, "/Users/ada/w/..", "/x\\\n"} {
		f.Add(s)
	}
	plain, err := Make(request(), mac())
	if err != nil {
		f.Fatal(err)
	}
	want := len(forms(f, plain.Profile))
	f.Fuzz(func(t *testing.T, p string) {
		r := request()
		r.Session.Isolation.Mounts = append(r.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: bawn.ReadWrite})
		r.Protected = []string{p}
		plan, err := Make(r, mac())
		if err != nil {
			if checkText(p) == nil && path.Clean(p) != "/" {
				t.Fatalf("%q is refused: %v", p, err)
			}
			return
		}
		if !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
			t.Fatalf("%q is taken", p)
		}
		rules := forms(t, plan.Profile)
		if n := len(rules) - want; n < 0 || n > 3 {
			t.Fatalf("%q makes %d more rules", p, n)
		}
		for _, other := range []string{"/etc/hosts", "/Users/ada/.ssh/id", "/Users/ada/x", "/nobody/named/this"} {
			inside := other == path.Clean(p) || below(other, path.Clean(p))
			if decide(t, rules, "file-write-data", other) && !inside {
				t.Fatalf("%q opens %q", p, other)
			}
		}
	})
}
