package undo

import (
	"slices"
	"strings"
	"unicode"

	"github.com/bawn-dev/bawn"
)

// prompts are the events of agents' hooks that tell that the human has given a task.
var prompts = []string{"UserPromptSubmit", "userPromptSubmitted", "BeforeAgent", "agent_start", "TaskStart", "beforeSubmitPrompt"}

// Prompt reports whether an event of an agent's hook is about a new task.
func Prompt(event string) bool { return slices.Contains(prompts, event) }

// destroyers are programs that remove or overwrite files. A missing one here costs
// the state within a session, not the one at its start; a needless one costs a
// scan.
var destroyers = []string{
	"rm", "rmdir", "unlink", "shred", "truncate", "dd", "mv", "cp", "rsync", "git", "hg", "jj", "find", "sed", "perl", "tee", "tar", "unzip", "patch",
	"make", "terraform", "dropdb", "sqlite3", "mkfs", "wipefs", "install", "ln", "rimraf", "trash",
}

// Destroys reports whether a recorded command probably removes or overwrites files.
func Destroys(e bawn.Event) bool {
	if e.Kind != bawn.Command.String() {
		return e.Kind == bawn.Filesystem.String() && e.Operation == bawn.Delete.String()
	}
	words := strings.FieldsFunc(strings.Join(append([]string{e.Resource}, e.Args...), " "), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' && r != '.'
	})
	return strings.Contains(e.Resource, ">") || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(destroyers, w) })
}
