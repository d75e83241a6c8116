// Package quick is the short path of a shim. A shell with a text to run, and no
// terminal, sends it to its session socket and ends as the command does. Whatever
// is anything else is left to package shim, a conversation that has begun (Begun)
// included.
//
// It is called before most packages of its program are initialised, which is
// what a short-lived process pays most for. So it imports nothing that is
// initialised after os/signal: no fmt, no JSON, no strconv.
package quick

import "os"

// Socket is where a guest finds the session socket.
const Socket = "/run/bawn/session.sock"

// A Talk is a conversation with a session socket in which a command was asked for, and
// of which package quick could not see the end.
type Talk struct {
	Socket  *os.File       // in non-blocking mode
	Started bool           // the command runs
	Ahead   []byte         // unread bytes from the session socket
	Signals chan os.Signal // caught since the command was asked for
}

var begun *Talk

// Begun returns the conversation that Shell has left, once. It returns nil if Shell
// has left no conversation.
func Begun() *Talk {
	t := begun
	begun = nil
	return t
}

// names are the shells that are understood, as in package invocation.
var names = [...]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}

// IsShell reports whether the program at path is a shell by its name.
func IsShell(path string) bool {
	base := path
	for i := range len(path) {
		if path[i] == '/' {
			base = path[i+1:]
		}
	}
	for _, name := range names {
		if base == name {
			return true
		}
	}
	return false
}

// Fits reports whether argv is that of a shell with a text which is for the
// session socket: what package shim would hand over without a word of its own.
func Fits(argv []string) bool {
	if len(argv) < 3 || !onlyText(argv[1]) || argv[2] == "" || argv[2][0] == '-' || argv[2][0] == '+' {
		return false
	}
	zero := argv[0]
	if zero != "" && zero[0] == '-' {
		zero = zero[1:]
	}
	return IsShell(zero) && !mayBeOwn(argv[2])
}

// onlyText reports whether an option word says that a text follows, with
// letters that take no word of their own.
func onlyText(word string) bool {
	text := false
	for i := range len(word) {
		switch c := word[i]; {
		case i == 0 && c != '-':
			return false
		case c == 'c':
			text = true
		case i > 0 && c != 'l' && c != 'e' && c != 'u' && c != 'x':
			return false
		}
	}
	return text
}

// mayBeOwn reports whether a text might be a command of bawn's own, which the
// shim carries out itself: its first word is "bawn", however quoted, or it
// calls the hook.
func mayBeOwn(text string) bool {
	if contains(text, " hook ") {
		return true
	}
	const own = "bawn"
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for i := 0; i < len(own) && i < len(text); i++ {
		if text[i] != own[i] {
			return !plain(text[i], i > 0)
		}
	}
	return len(text) >= len(own)
}

// plain reports whether a byte stands for itself in a shell's word, or ends a
// word that has begun: no quote, no expansion, no comment.
func plain(c byte, begun bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	case c == '_', c == '/', c == '.', c == ':', c == '[', c == '-', c == '+', c == '=', c == '%', c == '@', c == ',':
		return true
	}
	return begun && (c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '|' || c == '&' || c == '<' || c == '>')
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}
