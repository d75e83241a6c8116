package hook

import (
	"errors"
	"strings"
)

// A Move is a judged command line on its way into a sandbox: an unsandboxed
// agent's shell runs it in place of its own text.
type Move struct {
	Program   string   // bawn, absolute
	Agent     string   // for the log
	Session   string   // of the agent, for which its human's answers hold, or ""
	Workspace string   // the agent's own, absolute: the sandbox is made for it
	Dir       string   // where the text was judged, absolute; it is entered inside of the sandbox
	Covered   bool     // it may not start without a checkpoint of the files that it may destroy
	PinGit    bool     // git has to run nothing that a repository names
	Env       []string // NAME=VALUE that the judgement relies on besides
	Shell     string   // which reads it as it was judged, absolute
	Text      string   // canonical
}

// Flags of bawn run that say so.
const (
	forSession = "--for-session"
	covered    = "--covered"
	pinGit     = "--pin-git"
)

// String writes the move so that any POSIX shell and zsh read exactly these
// words. It is "" where a word can't be written.
func (m Move) String() string {
	words := []string{m.Program, "run", "--quiet", "--agent", m.Agent, "--cwd", m.Workspace}
	if m.Session != "" {
		words = append(words, forSession, m.Session)
	}
	if m.Covered {
		words = append(words, covered)
	}
	if m.PinGit {
		words = append(words, pinGit)
	}
	for _, kv := range m.Env {
		words = append(words, "--env", kv)
	}
	words = append(words, "--", m.Shell, "-c", m.script())
	for i, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			return ""
		}
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// The words around the directory that a shell enters first. If that fails, the
// text does not run at all.
const (
	entering = "cd -- "
	entered  = " || exit\n"
)

// script is the shell's text, in the directory where it was judged. The guest
// may make a link of that directory at any time. Followed in here, inside of the
// sandbox, it leads nowhere new; as the sandbox's own directory it would choose
// the writable places.
func (m Move) script() string {
	if _, _, enters := entry(m.Text); m.Dir == m.Workspace && !enters {
		return m.Text
	}
	return entering + quote(m.Dir) + entered + m.Text
}

// entry reads a script that enters a directory first.
func entry(script string) (dir, text string, ok bool) {
	rest, ok := strings.CutPrefix(script, entering)
	for i := 0; ok; {
		n := strings.Index(rest[i:], entered)
		if n < 0 {
			break
		}
		words, err := split(rest[:i+n]) // a name may hold those words, too
		if err == nil && len(words) == 1 && quote(words[0]) == rest[:i+n] {
			return words[0], rest[i+n+len(entered):], true
		}
		i += n + 1
	}
	return "", "", false
}

// Moved reads a command line that String has written, to the letter: an event
// about a call whose command was replaced tells the new one. The caller
// compares its contents with today's decision.
func Moved(line string) (m Move, ok bool) {
	words, err := split(line)
	if err != nil || len(words) < 11 || words[1] != "run" || words[3] != "--agent" || words[5] != "--cwd" {
		return Move{}, false
	}
	m = Move{Program: words[0], Agent: words[4], Workspace: words[6], Dir: words[6]}
	rest := words[7:]
	if rest[0] == forSession && len(rest) > 5 {
		m.Session, rest = rest[1], rest[2:]
	}
	if m.Covered = rest[0] == covered; m.Covered {
		rest = rest[1:]
	}
	if m.PinGit = rest[0] == pinGit; m.PinGit {
		rest = rest[1:]
	}
	for len(rest) > 4 && rest[0] == "--env" {
		m.Env, rest = append(m.Env, rest[1]), rest[2:]
	}
	if len(rest) != 4 {
		return Move{}, false
	}
	m.Shell, m.Text = rest[1], rest[3]
	if dir, text, enters := entry(m.Text); enters {
		m.Dir, m.Text = dir, text
	}
	return m, m.String() == line
}

// plain are characters that mean themselves in every shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"

// quote writes a word for a shell.
func quote(w string) string {
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// split undoes quote, for words with one space between them.
func split(line string) (words []string, err error) {
	var w strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ':
			words = append(words, w.String())
			w.Reset()
		case c == '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("a quote does not end")
			}
			w.WriteString(line[i+1 : i+1+n])
			i += n + 1
		case c == '\\' && i+1 < len(line):
			i++
			w.WriteByte(line[i])
		default:
			w.WriteByte(c)
		}
	}
	return append(words, w.String()), nil
}
