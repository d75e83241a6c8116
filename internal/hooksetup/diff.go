package hooksetup

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/bawn-dev/bawn/internal/redact"
)

// A Change is what an edit does, in a word.
type Change string

// The changes.
const (
	None   Change = "none"
	Create Change = "create"
	Modify Change = "modify"
	Remove Change = "remove"
)

// Change says what the edit does.
func (e Edit) Change() Change {
	switch {
	case !e.Changes():
		return None
	case e.Old == nil:
		return Create
	case e.New == nil:
		return Remove
	}
	return Modify
}

// nothing is the name that diffs give a file that is not there.
const nothing = "/dev/null"

// Diff is the edit as a unified diff, on lines that a terminal can show.
func (e Edit) Diff() string {
	from, to := e.Path, e.Path
	if e.Old == nil {
		from = nothing
	}
	if e.New == nil {
		to = nothing
	}
	lines := strings.Split(string(diff.Diff(from, e.Old, to, e.New)), "\n")
	if len(lines) > 0 && strings.HasPrefix(lines[0], "diff ") {
		lines = lines[1:]
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(redact.Visible(line), `\t`, "\t")
	}
	return strings.Join(lines, "\n")
}
