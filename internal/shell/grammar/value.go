package grammar

import (
	"path"
	"slices"
	"strings"
)

// verbs are the claims that the types of paths make.
var verbs = map[string]Verb{
	"NAME": Look, "FILE": Read, "TREE": ReadTree, "WRITE": Write, "WTREE": WriteTree, "DELETE": Delete, "MOVE": Move,
	"EXEC": Execute, "DIR": Enter, "HOST": Connect, "URL": Connect, "ASSIGN": Setenv,
}

// value checks a word against a type and claims what it does.
func (m *match) value(v value, w Word) error {
	switch v.kind {
	case "TEXT", "KV":
		return nil
	case "PROG":
		return m.execute(w)
	case "GLOB":
		return m.glob(w)
	case "LINES":
		return m.lines(w)
	case "NAME", "FILE", "TREE", "WRITE", "WTREE", "DELETE", "MOVE", "EXEC", "DIR":
		return m.path(v.kind, w)
	}
	if len(w.Unset) > 0 && w.Text == "" && m.form.effect == Reads {
		return nil // empty: it names nothing
	}
	clean := w.Vague == "" && !w.Glob && m.form.effect == Reads // what is unset is empty
	if !w.Literal() && !clean && !(v.kind == "ARG" && w.Glob) {
		return unproven("a word of ", m.label, " is not known")
	}
	switch v.kind {
	case "ARG":
		return m.arg(w)
	case "HERE":
		return m.here(w)
	case "BRANCH":
		return m.branch(w)
	case "OPTS":
		return m.opts(w)
	case "REF":
		return m.ref(w)
	case "GOAL":
		return m.goal(w)
	case "SED":
		if w.Text == "" && m.form.effect == Writes {
			return unproven("sed -i '' takes another word for its script on macOS")
		}
		return m.sed(w.Text)
	case "AWK":
		return awk(w.Text)
	case "JQ":
		return jq(w.Text)
	case "ENVFILE": // what a program of the repository reads anyway
		if !plainName(strings.TrimPrefix(w.Text, "./")) {
			return m.arg(w)
		}
		return nil
	}
	if !m.plainly(v, w) { // also CODE
		return unproven(quote(w.Text), " is not known to be harmless for ", m.label)
	}
	return nil
}

// plainly accepts what needs no more than a look at the text, and claims what
// it names.
func (m *match) plainly(v value, w Word) (ok bool) {
	switch s := w.Text; v.kind {
	case "word":
		return slices.Contains(v.words, s)
	case "NUM":
		return number(s)
	case "IDENT":
		return ident(s)
	case "GITKEY":
		return gitKey(s)
	case "COUNT":
		return number(s) && len(strings.TrimLeft(s, "+-0")) <= 7
	case "REMOTE":
		return remoteName(s)
	case "KUBE":
		return !strings.HasPrefix(s, "-") && plainName(strings.NewReplacer("/", "", ",", "").Replace(s)) && !strings.Contains(strings.ToLower(s), "secret")
	case "PKG":
		return packageName(s)
	case "NPM":
		return packageName(s) && (strings.HasPrefix(s, "@") && scoped("@"+strings.ReplaceAll(s[1:], "@", ".")) || !strings.Contains(s, "/"))
	case "PLUS":
		return strings.HasPrefix(s, "+")
	case "GITCONF":
		return gitSetting(s)
	case "FORGE":
		if ok = !transport(s) && !strings.HasPrefix(s, "-"); ok && !forge(s) {
			m.claim(Connect, w)
		}
	case "GOMOD":
		if ok = packageName(s); ok && strings.Contains(domainOf(s), ".") {
			m.claim(Connect, Word{Text: domainOf(s)}) // where the module comes from
		}
	case "HOST", "URL":
		if ok = !transport(s) && (v.kind == "HOST" || strings.Contains(s, "://") || strings.Contains(s, "@")); ok {
			m.claim(Connect, w)
		}
	case "ASSIGN":
		if ok = assigns(s); ok {
			m.claim(Setenv, w)
		}
	}
	return ok
}

// path claims a path. One that is not known is no proof, unless the
// directory it lies in is known.
func (m *match) path(kind string, w Word) error {
	switch {
	case w.Text == "" && w.Vague == "" && len(w.Unset) > 0:
		return nil // empty: it names nothing
	case w.Text == "-" && w.Literal() && (kind == "FILE" || kind == "TREE" || kind == "WRITE"):
		return nil // standard input or output
	case w.Vague != "" && len(w.Below) == 0 && !(kind == "NAME" && freePrograms.Has(m.program)):
		return unproven("which file ", m.label, " uses is not known: ", w.Vague)
	case w.Text == "" && w.Vague == "" && w.Literal():
		return unproven("an empty path")
	case w.Text != "" && strings.ContainsAny(w.Text[:1], "+@") && !freePrograms.Has(m.program) && m.program != "git":
		// less +!id and bash +n run what follows, nm @FILE and 7z @FILE read options or names from FILE
		return unproven(quote(w.Text), " could be an option of ", m.program, "; write ./", w.Text)
	case strings.Contains(w.Text, "://"):
		return unproven(quote(w.Text), " is an address, not a file")
	case strings.Contains(w.Text, ":") && remoteNames.Has(m.program):
		return unproven(quote(w.Text), " could name another machine for ", m.program)
	}
	m.claim(verbs[kind], w)
	if m.program == "git" && (kind == "FILE" || kind == "TREE") && w.Vague == "" {
		m.pathspec(w)
	}
	if kind == "DIR" {
		if !w.Literal() {
			return unproven("the directory that ", m.label, " works in is not known")
		}
		m.dirs = append(slices.Clip(m.dirs), w)
	}
	return nil
}

// remoteNames are programs that take HOST:FILE for a file of another machine.
var remoteNames = NewWordSet("tar gtar bsdtar")

// arg accepts a plain word, or a path that must lie in the workspace.
func (m *match) arg(w Word) error {
	s := w.Text
	if strings.Contains(s, "://") || strings.HasPrefix(s, "@") && !scoped(s) || strings.ContainsAny(s, "`$\n") || strings.HasPrefix(s, "-") {
		return unproven(quote(s), " is not known to be harmless for ", m.label)
	}
	if _, v, ok := strings.Cut(s, "="); ok && v != "" {
		return m.arg(Word{Text: v, Glob: w.Glob})
	}
	if strings.ContainsAny(s, "/._") || strings.HasPrefix(s, "~") { // else it is no file that matters
		m.claim(Use, w)
	}
	return nil
}

// execute accepts the file of a program, which is run as code of the
// repository.
func (m *match) execute(w Word) error {
	if !w.Literal() || w.Text == "" || strings.HasPrefix(w.Text, "-") || strings.ContainsRune(w.Text, ':') || strings.ContainsRune(path.Base(w.Text), '@') {
		return unproven("which program ", m.label, " runs is not known")
	}
	m.claim(Execute, w)
	return nil
}

// scoped reports whether s is a scoped package's name (@types/node).
func scoped(s string) bool {
	scope, name, ok := strings.Cut(s[1:], "/")
	return ok && plainName(scope) && plainName(name)
}

func plainName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c))
	})
}

// ref accepts what git or a forge takes as the name of a revision, branch,
// remote or number, and no URL, address or option.
func (m *match) ref(w Word) error {
	s := w.Text
	bad := s == "" || strings.ContainsAny(s[:1], "-+") || strings.Contains(s, "://") || strings.Contains(s, "::") ||
		strings.ContainsAny(s, " \t\n\\`$") || strings.HasPrefix(s, ":") && !strings.HasPrefix(s, ":/") && !strings.HasPrefix(s, ":(")
	before, after, colon := strings.Cut(s, ":")
	if colon && strings.Contains(before, "@") && !strings.Contains(before, "@{") || before != "" && strings.HasPrefix(after, "/") {
		bad = true // user@host:path
	}
	if bad {
		return unproven(quote(s), " is no plain name for ", m.label)
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || s == ".." || strings.HasPrefix(s, "~") {
		m.claim(Use, w)
	}
	if before != "" && after != "" {
		m.claim(Read, Word{Text: after}) // REV:PATH shows a file
	}
	return nil
}

// domainOf is the first element of a Go module's path.
func domainOf(module string) string {
	module, _, _ = strings.Cut(module, "@")
	first, _, _ := strings.Cut(module, "/")
	return first
}

// number accepts 5, -5, +5, 10M, 50%, 1.5, 2h.
func number(s string) bool {
	s = strings.TrimLeft(s, "+-")
	s = strings.TrimRight(s, "bBkKMGTPEiwcsmhd%")
	whole, frac, _ := strings.Cut(s, ".")
	return digits(whole) && (frac == "" || digits(frac))
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}

// packageName accepts a registry's name with an optional version or extras.
func packageName(s string) bool {
	if s == "" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") {
		return false
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && !mavenName(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-@/=<>!~^,[]+:*", c))
	})
}

// mavenName accepts group:artifact[:version].
func mavenName(s string) bool {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 4 || !strings.Contains(parts[0], ".") {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return !plainName(p) })
}

// assigns reports whether s is NAME=VALUE.
func assigns(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	return ok && identifier(name)
}

func identifier(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// gitSettings are keys that change what git prints or writes into a commit,
// and never what it runs or reaches.
var gitSettings = NewWordSet("user.name user.email core.quotepath core.abbrev core.autocrlf core.whitespace advice.detachedhead init.defaultbranch " +
	"merge.conflictstyle pull.rebase pull.ff rebase.autosquash rebase.autostash commit.gpgsign tag.gpgsign push.default grep.linenumber gc.auto")

func gitSetting(s string) bool {
	key, v, _ := strings.Cut(strings.ToLower(s), "=")
	section, _, _ := strings.Cut(key, ".")
	if key == "commit.gpgsign" || key == "tag.gpgsign" {
		return v == "false" // signing runs a program
	}
	return gitSettings.Has(key) || (section == "color" || section == "log" || section == "status" || section == "column" ||
		section == "diff" && !strings.Contains(key, "external") && !strings.Contains(key, "textconv") && !strings.Contains(key, "command") &&
			strings.Count(key, ".") == 1) && key != "log.showsignature"
}

func quote(s string) string {
	if len(s) > 60 {
		s = s[:57] + "…"
	}
	return "“" + s + "”"
}

// transport reports whether a URL names a program or a file to read from:
// git's ext::COMMAND and fd::N (gitremote-helpers(7)), file:, or a flag.
func transport(s string) bool {
	scheme, _, helper := strings.Cut(s, "::")
	return helper && plainName(scheme) || strings.HasPrefix(strings.ToLower(s), "file:") || strings.HasPrefix(s, "-")
}

// forge reports whether a URL is one of a public forge, or a word is a plain name
// and not a URL.
func forge(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		return plainName(s)
	}
	host, _, _ := strings.Cut(rest, "/")
	return forges.Has(host)
}

var forges = NewWordSet("github.com gitlab.com codeberg.org bitbucket.org git.sr.ht")

// remoteName accepts the name of a configured remote (origin) or of a
// repository at the configured forge (owner/repo): no host, no path.
func remoteName(s string) bool {
	owner, repo, two := strings.Cut(s, "/")
	return plainName(owner) && !strings.HasPrefix(owner, ".") && !strings.HasPrefix(owner, "-") &&
		(!two || plainName(repo) && repo != "." && repo != "..")
}
