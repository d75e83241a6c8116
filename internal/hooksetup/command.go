package hooksetup

import (
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/hook"
)

// command is the line by which an agent's hook asks bawn, with flags. Where the
// event can veto, a failure of bawn is a denial.
func command(bawn, agent string, veto bool, flags ...string) string {
	line := strings.Join(append([]string{quote(bawn), "hook", agent}, flags...), " ")
	if veto {
		line += hook.OrDeny
	}
	return line
}

// isCommand reports whether a line is one that command has made, for whatever
// place of bawn's.
func isCommand(line, agent string) bool {
	line = strings.TrimSuffix(strings.TrimSuffix(line, hook.OrDeny), " "+noSandbox)
	program, ok := strings.CutSuffix(line, " hook "+agent)
	return ok && filepath.Base(unquote(program)) == "bawn"
}

// quote returns a word that every POSIX shell reads as s.
func quote(s string) string {
	plain := func(r rune) bool {
		return r == '/' || r == '.' || r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if s != "" && strings.TrimFunc(s, plain) == "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func unquote(s string) string {
	if inner, ok := strings.CutPrefix(s, "'"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
	}
	return s
}
