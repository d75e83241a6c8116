package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
)

// A login is a credential that was found in a file.
type login struct {
	host  string // as the file has it: a name, perhaps with a port
	user  string
	value string
	place bawn.Place
}

// checkText refuses what is no text of lines.
func checkText(real []byte) error {
	if !utf8.Valid(real) || strings.ContainsRune(string(real), 0) {
		return errors.New("it is not UTF-8 text")
	}
	return nil
}

// An npmLine is one setting of an .npmrc (npmrc(5)): "//host/path/:key=value"
// for one registry, "key=value" for all.
type npmLine struct {
	text, host, where, key, value string // where is "//host/path/:"
}

func npmLines(real []byte) ([]npmLine, error) {
	if err := checkText(real); err != nil {
		return nil, err
	}
	var out []npmLine
	for text := range strings.SplitSeq(strings.ReplaceAll(string(real), "\r", "\n"), "\n") {
		line := npmLine{text: strings.TrimSpace(text)}
		if line.text == "" || line.text[0] == '#' || line.text[0] == ';' {
			continue // a comment may hold an old token
		}
		key, value, _ := strings.Cut(line.text, "=")
		line.key, line.value = unquote(key), unquote(value)
		if strings.ContainsAny(line.key, `"'\`) {
			return nil, errors.New("a key in it has quotes or a backslash")
		}
		if rest, ok := strings.CutPrefix(line.key, "//"); ok {
			i := strings.LastIndexByte(rest, ':')
			if i < 0 {
				return nil, errors.New("a line begins with // and names no setting")
			}
			line.host, _, _ = strings.Cut(rest[:i], "/")
			line.where, line.key = "//"+rest[:i+1], rest[i+1:]
		}
		out = append(out, line)
	}
	return out, nil
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range []string{`"`, "'"} {
		if len(s) >= 2 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return strings.TrimSpace(s[1 : len(s)-1])
		}
	}
	return s
}

// npmSecretWords are in the names of settings that are, or lead to, a
// credential.
var npmSecretWords = []string{"auth", "token", "pass", "secret", "key", "cert", "otp", "username", "email", "header"}

func (l npmLine) secret() bool {
	key := strings.ToLower(l.key)
	return l.host != "" || strings.HasPrefix(key, "_") || hasUserinfo(l.value) ||
		slices.ContainsFunc(npmSecretWords, func(w string) bool { return strings.Contains(key, w) })
}

// plainSetting reports whether the line is about a registry and no credential.
func (l npmLine) plainSetting() bool { return l.host != "" && l.key == "always-auth" }

func hasUserinfo(s string) bool {
	_, rest, ok := strings.Cut(s, "://")
	end := strings.IndexAny(rest, "/?# \t")
	if end < 0 {
		end = len(rest)
	}
	return ok && strings.Contains(rest[:end], "@")
}

func maskNpmrc(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	lines, err := npmLines(real)
	if err != nil {
		return nil, nil, err
	}
	var out strings.Builder
	wrote := make([]bool, len(bs))
	done, lost := map[string]bool{}, 0
	for _, l := range lines {
		switch {
		case !l.secret() || l.plainSetting():
			out.WriteString(l.text + "\n")
		case l.host == "" || !slices.ContainsFunc(bs, func(b bawn.Binding) bool { return covers(b.Host, l.host) }):
			lost++
		case !done[l.where]:
			done[l.where] = true
			for i, b := range bs {
				if covers(b.Host, l.host) {
					out.WriteString(npmCredential(l.where, b, userAt(lines, l.where)))
					wrote[i] = true
					break
				}
			}
		}
	}
	for i, b := range bs {
		if wrote[i] || slices.ContainsFunc(bs[:i], func(o bawn.Binding) bool { return o.Host == b.Host }) {
			continue
		}
		host, err := concrete(b, "registry")
		if err != nil {
			return nil, nil, err
		}
		out.WriteString(npmCredential("//"+host+"/:", b, ""))
	}
	return []byte(out.String()), dropped(lost, "credentials or settings beside one"), nil
}

func userAt(lines []npmLine, where string) string {
	for _, l := range lines {
		if l.where == where && l.key == "username" {
			return l.value
		}
	}
	return ""
}

func npmCredential(where string, b bawn.Binding, user string) string {
	if b.Place == bawn.Basic {
		return where + "username=" + userOf(b, user) + "\n" + where + "_password=" + base64.StdEncoding.EncodeToString([]byte(b.Placeholder)) + "\n"
	}
	return where + "_authToken=" + b.Placeholder + "\n"
}

// npmLogins are the credentials of an .npmrc that are bound to a registry.
func npmLogins(real []byte) ([]login, error) {
	lines, err := npmLines(real)
	var out []login
	for _, l := range lines {
		if l.host == "" || strings.Contains(l.value, "${") {
			continue
		}
		switch l.key {
		case "_authToken":
			out = append(out, login{l.host, "", l.value, bawn.Bearer})
		case "_password":
			if p, err := base64.StdEncoding.DecodeString(l.value); err == nil {
				out = append(out, login{l.host, userAt(lines, l.where), string(p), bawn.Basic})
			}
		case "_auth":
			if user, pass, ok := basicPair(l.value); ok {
				out = append(out, login{l.host, user, pass, bawn.Basic})
			}
		}
	}
	return out, err
}

// basicPair decodes base64 of USER:PASSWORD.
func basicPair(text string) (user, pass string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(raw), ":")
}

// netrcLogins reads a .netrc as ftp(1) describes it, and refuses what programs
// read differently.
func netrcLogins(real []byte) ([]login, error) {
	if err := checkText(real); err != nil {
		return nil, err
	}
	words, err := netrcWords(string(real))
	if err != nil {
		return nil, err
	}
	var out []login
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "default" {
			out = append(out, login{place: bawn.Basic})
			continue
		}
		if i++; i == len(words) {
			return nil, fmt.Errorf("its word %d has no value behind it", i)
		}
		switch {
		case word == "machine":
			out = append(out, login{host: strings.ToLower(words[i]), place: bawn.Basic})
		case len(out) == 0:
			return nil, errors.New("it does not begin with a machine")
		case word == "login":
			out[len(out)-1].user = words[i]
		case word == "password":
			out[len(out)-1].value = words[i]
		case word == "account":
		default:
			return nil, fmt.Errorf("its word %d is not one of machine, default, login, password, account, macdef", i)
		}
	}
	return out, nil
}

// netrcWords splits at white space, without comments and macros. Quotes and
// backslashes mean different things to different programs.
func netrcWords(text string) ([]string, error) {
	var words []string
	macro := false
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if macro = macro && len(fields) > 0; macro {
			continue
		}
		for i, f := range fields {
			if strings.HasPrefix(f, "#") && (i == 0 || fields[i-1] != "password" && fields[i-1] != "login") {
				break
			}
			if strings.ContainsAny(f, `"\`) {
				return nil, errors.New("a word in it has a quote or a backslash")
			}
			if macro = f == "macdef" && (i == 0 || fields[i-1] != "password"); macro {
				break
			}
			words = append(words, f)
		}
	}
	return words, nil
}

func maskNetrc(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	found, err := netrcLogins(real)
	if err != nil {
		return nil, nil, err
	}
	var out strings.Builder
	lost, err := eachLogin(found, bs, func(l login, b bawn.Binding) {
		fmt.Fprintf(&out, "machine %s login %s password %s\n", l.host, userOf(b, l.user), b.Placeholder)
	})
	return []byte(out.String()), dropped(lost, "logins"), err
}

// eachLogin calls write for what is bound: first the logins of the real file,
// then the bindings that it does not mention. It counts the others.
func eachLogin(found []login, bs []bawn.Binding, write func(login, bawn.Binding)) (lost int, err error) {
	done := map[bawn.Binding]bool{}
	for _, l := range found {
		b, ok := bindingOf(bs, l.host, bawn.Basic)
		if l.host == "" || !ok || b.Name != "" && l.user != "" && l.user != b.Name {
			lost++
			continue
		}
		done[b] = true
		write(l, b)
	}
	for _, b := range bs {
		if done[b] {
			continue
		}
		host, err := concrete(b, "")
		if err != nil {
			return 0, err
		}
		write(login{host: host, place: bawn.Basic}, b)
	}
	return lost, nil
}

// gitLogins reads git-credential-store(1)'s file: a URL on each line.
func gitLogins(real []byte) ([]login, error) {
	if err := checkText(real); err != nil {
		return nil, err
	}
	var out []login
	for line := range strings.Lines(string(real)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		u, err := url.Parse(line)
		if err != nil || u.Host == "" || u.Scheme != "https" {
			out = append(out, login{}) // nothing that could be bound: counted, and left out
			continue
		}
		pass, _ := u.User.Password()
		out = append(out, login{strings.ToLower(u.Host), u.User.Username(), pass, bawn.Basic})
	}
	return out, nil
}

func maskGit(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	found, err := gitLogins(real)
	if err != nil {
		return nil, nil, err
	}
	var out strings.Builder
	lost, err := eachLogin(found, bs, func(l login, b bawn.Binding) {
		fmt.Fprintf(&out, "https://%s@%s\n", url.UserPassword(userOf(b, l.user), b.Placeholder), l.host)
	})
	return []byte(out.String()), dropped(lost, "logins"), err
}

// maskPip keeps the lines of a pip.conf; users and passwords in its URLs are
// replaced or taken out.
func maskPip(real []byte, bs []bawn.Binding) ([]byte, []string, error) {
	if err := checkText(real); err != nil {
		return nil, nil, err
	}
	var out strings.Builder
	done, lost := map[bawn.Binding]bool{}, 0
	for line := range strings.SplitSeq(string(real), "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.ContainsRune("#;", rune(trimmed[0])) {
			continue
		}
		out.WriteString(pipLine(strings.TrimRight(line, "\r"), bs, done, &lost) + "\n")
	}
	for _, b := range bs {
		if done[b] {
			continue
		}
		host, err := concrete(b, "")
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(&out, "[global]\nextra-index-url = https://%s@%s/simple/\n", url.UserPassword(userOf(b, ""), b.Placeholder), host)
	}
	return []byte(out.String()), dropped(lost, "logins"), nil
}

func pipLine(line string, bs []bawn.Binding, done map[bawn.Binding]bool, lost *int) string {
	words := strings.Split(line, " ")
	for i, w := range words {
		at := strings.Index(w, "://")
		if at < 0 {
			continue
		}
		begin := strings.LastIndexAny(w[:at], "=\t") + 1
		u, err := url.Parse(w[begin:])
		if err != nil {
			*lost++
			words[i] = w[:begin]
			continue
		}
		b, ok := bindingOf(bs, u.Host, bawn.Basic)
		switch {
		case ok && u.Scheme == "https":
			u.User = url.UserPassword(userOf(b, u.User.Username()), b.Placeholder)
			done[b] = true
		case u.User != nil:
			u.User = nil
			*lost++
		}
		words[i] = w[:begin] + u.String()
	}
	return strings.Join(words, " ")
}
