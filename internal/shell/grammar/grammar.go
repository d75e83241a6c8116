// Package grammar knows what programs do with their arguments. Its data files
// (data/*.txt) hold one form a line; a command whose words one form accounts
// for completely has a Meaning, every other has none. It reads no file, no
// environment and no clock.
package grammar

import "slices"

// A Word is one word of a command, as far as it is known when the line is
// read.
type Word struct {
	Text  string   // after quote removal and expansion of what is known; of a pattern, the pattern
	Glob  bool     // Text holds unquoted *, ? or [: the word stands for names that exist
	Unset []string // variables in it that nothing in the line sets: empty in a clean environment
	Vague string   // why the value is not known, for example "output of a command"; "" when it is
	Split bool     // what is vague is not quoted: it can be any number of words
	Below []string // a vague word that is a path: the directories it lies below
}

// Literal reports whether the word is exactly its Text.
func (w Word) Literal() bool {
	return !w.Glob && w.Vague == "" && len(w.Unset) == 0
}

// An Effect says what a command does besides its claims. The zero Effect is invalid
// and proves nothing.
type Effect uint8

const (
	_       Effect = iota
	Reads          // looks, and touches nothing but what its claims name
	Wraps          // runs another command and has no effect of its own
	Remote         // reads from a service with the user's login
	Writes         // changes the files that its claims name
	Builds         // runs code of the repository
	Fetches        // downloads from a configured registry or remote
	Local          // changes the machine outside the workspace, in a known way
	Publish        // changes something at a remote service
)

var effectNames = []string{"", "read", "wrap", "remote", "write", "build", "fetch", "local", "publish"}

// String returns the effect's name in the data files, or "invalid".
func (e Effect) String() string {
	if int(e) >= len(effectNames) || e == 0 {
		return "invalid"
	}
	return effectNames[e]
}

func parseEffect(name string) (Effect, bool) {
	i := slices.Index(effectNames, name)
	return Effect(max(i, 0)), i > 0
}

// A Verb is what a command does to the value of a claim.
type Verb uint8

const (
	_         Verb = iota
	Look           // a path's name or metadata
	Read           // a file's content
	ReadTree       // the content of everything below a path
	Write          // creates or changes a file
	WriteTree      // creates or changes what is below a path
	Delete         // removes a path
	Move           // moves a path away
	Execute        // runs a file
	Enter          // works in a directory
	Connect        // reaches a host, given by name or URL
	Setenv         // sets a variable, given as NAME=VALUE
	Use            // uses a path as part of the project
)

var verbNames = []string{
	"", "look at", "read", "read below", "write", "write below", "delete", "move", "execute", "enter", "connect to", "set", "use",
}

// String returns the verb in words, or "invalid".
func (v Verb) String() string {
	if int(v) >= len(verbNames) || v == 0 {
		return "invalid"
	}
	return verbNames[v]
}

// A Claim is one thing that a command does to a value, which the rules must
// allow.
type Claim struct {
	Verb  Verb
	Value Word
	Dir   []Word // directories that the command changes to before (git -C a -C b), in order
}

// A Nested is a command that a command runs: an argv, or shell text.
type Nested struct {
	Args     []Word // of an argv; its operands may be followed by what standard input says
	Script   Word   // of shell text
	IsScript bool
	Params   []Word   // $0, $1 … of shell text
	Stdin    bool     // further words come from standard input (xargs)
	Replace  string   // or take the place of this text in Args (xargs -I, find's {})
	Below    []string // what these words are paths below (find -exec), nil when unknown
}

// A Meaning is what one command does: all of it, or the command has none.
type Meaning struct {
	Form    string // the form that accounts for it, for example "git log"
	Informs bool   // it only prints its help or version
	Effect  Effect
	Claims  []Claim
	Nested  []Nested
	Finds   []string // patterns of the names that a search prints, where it begins
}
