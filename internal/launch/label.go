package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/terminal/modes"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Mark begins the title of a terminal that shows a guest.
const Mark = "bawn: "

// promptShells take their prompt from PS1 where no file of theirs sets it.
var promptShells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh"}

// prompts are variables by which the prompt of a shell says that it is a guest's, where a
// person sees it: Debian's bash and every fish show the first. PS1 is not set for other
// programs, because a script may take it for the sign of an interactive shell.
func prompts(w *verb.World, program string, set []string) (vars []string) {
	if !verb.IsTerminal(w.Stdin) || !verb.IsTerminal(w.Stdout) {
		return nil
	}
	vars = []string{"debian_chroot=bawn"}
	if slices.Contains(promptShells, filepath.Base(program)) {
		vars = append(vars, "PS1=(bawn) $ ")
	}
	return slices.DeleteFunc(vars, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// longestName is how much of a program's name stands in a title.
const longestName = 40

// Label is the title that a terminal has while it shows a guest's program. Where no
// terminal has a title it is the zero Label.
func Label(w *verb.World, mark, program string) modes.Label {
	if !modes.Titled(w.Getenv) || !verb.IsTerminal(w.Stdin) || !verb.IsTerminal(w.Stdout) {
		return modes.Label{}
	}
	name := []rune(redact.Visible(filepath.Base(program)))
	return modes.Label{Mark: mark, Name: string(name[:min(len(name), longestName)])}
}
