package executor

import "strings"

// StatementArgv returns the words that run one statement of a persistent shell
// and then report its state. A Do with them and Statement set is answered with
// a State. The shell is a path or a name, of a shell that is like POSIX's; text
// is a whole statement, or several, of which the syntax is sound.
//
// The directory and exported variables are carried on. Functions that are not
// exported, aliases, options, traps, jobs and redirections of `exec` end with
// the statement. A statement that ends its shell (exit, exec, an error under
// set -e) reports State.Ended.
//
// Descriptor 3 is closed in the statement: no shell keeps its saved descriptors
// open over an exec (tried with bash and dash).
func StatementArgv(shell, text string) []string {
	return []string{shell, "-c", "eval " + quote(text) + " 3>&-\n" +
		`printf '%s\0%s\0' "$?" "$PWD" >&3; exec /usr/bin/env -0 >&3`}
}

// quote makes one word of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
