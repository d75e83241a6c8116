// Package skill finds the texts that steer an agent (skills, definitions of
// agents), identifies them by a digest, and records which of them a human has
// seen. What such a text may hold is package strict's to say: it is heavy, and
// asked only about what is not pinned.
package skill

import (
	"fmt"

	"github.com/bawn-dev/bawn/internal/redact"
)

// A Kind is the sort of text. The zero Kind is invalid, and is refused.
type Kind uint8

const (
	_            Kind = iota
	Skill             // a folder with a SKILL.md, or one such file
	Definition        // of an agent or a command of its user: one file
	Instructions      // AGENTS.md and the like: observed only, they are the project's own
)

var kindNames = []string{"", "skill", "definition", "instructions"}

// String returns the kind's name, or "invalid".
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "invalid"
	}
	return kindNames[k]
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText accepts exactly the names of the three kinds.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames[1:] {
		if name == string(text) {
			*k = Kind(i + 1)
			return nil
		}
	}
	*k = 0
	return fmt.Errorf("kind %q is invalid; want skill, definition or instructions", text)
}

// A Place is where an agent looks for texts of one kind: a directory of them,
// or one file.
type Place struct {
	Kind Kind
	Path string // absolute
}

// An Item is one skill, definition or file of instructions, as it was found.
type Item struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"` // of its folder or file
	Path   string `json:"path"` // absolute
	Digest string `json:"digest,omitempty"`
	Files  int    `json:"files,omitempty"`
	// Fault is why it has no digest, and can't be used.
	Fault *Fault `json:"fault,omitempty"`
}

// A Report is what package strict has found of an item. The zero Report
// refuses it.
type Report struct {
	Item
	Description string `json:"description,omitempty"` // its own words: untrusted
	// Notices are warnings for a human: what it may use unasked, what in it can
	// be executed.
	Notices []string `json:"notices,omitempty"`
	Faults  []*Fault `json:"faults,omitempty"`
}

// Refused reports whether the item must not be used.
func (r *Report) Refused() bool { return !sound(r.Digest) || len(r.Faults) > 0 }

// A Fault is one thing that is wrong with a text, where it stands.
type Fault struct {
	File    string `json:"file"`           // below the item's path, or the path itself
	Line    int    `json:"line,omitempty"` // from 1; 0: the file as a whole
	Problem string `json:"problem"`        // what is wrong, what was wanted, what to do
}

// Error writes file:line and the problem, so that a terminal can show it.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return redact.Visible(f.File) + ": " + redact.Visible(f.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", redact.Visible(f.File), f.Line, redact.Visible(f.Problem))
}

// Limits of one item. What is larger is refused.
const (
	MaxFiles  = 512      // files in a folder
	MaxDepth  = 8        // directories below a folder
	MaxFile   = 8 << 20  // bytes of one file
	MaxTotal  = 32 << 20 // bytes of all files
	MaxText   = 128 << 10
	MaxLine   = 8 << 10 // bytes of a line of a text that is read
	MaxItems  = 1024    // in one place
	MaxFaults = 20      // that are told of one item
	// MaxBlanks and MaxGap bound what pushes a text out of sight.
	MaxBlanks = 200 // spaces and tabs in a row, before something else
	MaxGap    = 40  // empty lines in a row
	MaxMarks  = 5   // combining marks on one character: languages need three
)
