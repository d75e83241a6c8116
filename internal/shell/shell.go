// Package shell reads command lines: which commands a text runs, with what is
// known of their words, their redirections, their working directory and their
// input, before anything runs. What can't be read with certainty is opaque,
// with the reason. It runs nothing, and reads no file, no environment and no
// clock.
//
// The parser and real shells disagree about rare texts. What was judged is
// therefore what has to be executed: [Line.Canonical], the tree printed anew,
// by the shell that [Context] names, started without its start-up files.
package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of a line. What exceeds one is opaque.
const (
	MaxLine     = 10_000 // bytes
	MaxCommands = 300    // commands that it runs
	MaxDepth    = 8      // substitutions, subshells, functions and scripts in each other
	maxDirs     = 8      // directories in which one command may run
	maxWords    = 1_000  // that braces and lists make of one word
	maxRounds   = 16     // of a loop that is followed round by round
	maxPadding  = 30     // blanks, or line feeds, in a row
)

// A Dialect is the language of a shell.
type Dialect uint8

const (
	Bash  Dialect = iota // bash --norc --noprofile
	POSIX                // dash
)

func (d Dialect) variant() syntax.LangVariant {
	if d == POSIX {
		return syntax.LangPOSIX
	}
	return syntax.LangBash
}

// A Context is what is known before the line runs.
type Context struct {
	Dir   string            // absolute directory in which it starts; "" when unknown
	Home  string            // value of HOME; "" when unknown
	Shell Dialect           // what will run it
	Env   map[string]string // further variables that are set, with their values
	Names []string          // variables that are set to values that are not known here
}

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

// A Line is what a command line would run.
type Line struct {
	Source    string    // as it was given
	Canonical string    // the text to execute; "" if the line can't be executed
	Commands  []Command `json:",omitempty"` // in the order in which they are met
	Opaque    []Opaque  `json:",omitempty"` // what is not understood; empty when all is
}

// An Opaque is a part of a line that can't be read with certainty.
type Opaque struct {
	Reason string
	Text   string // the part, with control characters escaped
}

// A Command is one simple command, or the assignments and redirections of one.
type Command struct {
	Words      []Word     `json:",omitempty"` // name and arguments; none for bare assignments and redirections
	Assigns    []Assign   `json:",omitempty"` // NAME=VALUE before it, bare, or by export and its kin
	Redirects  []Redirect `json:",omitempty"`
	Dirs       []string   `json:",omitempty"` // every absolute directory in which it may run; nil when unknown
	Stdin      Stdin      // what it reads
	Via        []string   `json:",omitempty"` // what runs it, outermost first: timeout, sh -c, $(…), function f
	Builtin    bool       `json:",omitempty"` // the shell itself does it
	Unclear    string     `json:",omitempty"` // why a builtin may do more than look
	Runs       bool       `json:",omitempty"` // what it runs follows as commands of their own
	Background bool       `json:",omitempty"` // runs beside what follows
	Loop       bool       `json:",omitempty"` // may run any number of times
}

// An Assign sets a variable.
type Assign struct {
	Name     string
	Value    Word
	Exported bool // programs that are run see it
}

// A Redirect connects a descriptor.
type Redirect struct {
	Op     string // < > >> <> >| >& <& << <<- <<<
	Fd     string // as written: "2", "{name}", or "" for the operator's own
	Target Word   // a path; of >& and <& maybe a number or "-"
	Text   Word   // of << and <<<: what is read
}

// Writes reports whether it creates or changes the file Target.
func (r Redirect) Writes() bool {
	switch r.Op {
	case ">", ">>", "<>", ">|":
		return true
	}
	return r.Op == ">&" && !r.Copies()
}

// Reads reports whether it opens the file Target for reading.
func (r Redirect) Reads() bool { return r.Op == "<" || r.Op == "<>" }

// Copies reports whether Target is a descriptor that is open already, or "-".
func (r Redirect) Copies() bool {
	return (r.Op == ">&" || r.Op == "<&") && r.Target.Literal() &&
		(r.Target.Text == "-" || digits(strings.TrimSuffix(r.Target.Text, "-")))
}

// A Source says where standard input comes from.
type Source string

const (
	Inherited Source = ""     // what the line itself was given
	Pipe      Source = "pipe" // the output of other commands
	Text      Source = "text" // text that the line holds
	File      Source = "file" // a file, or a descriptor that is not known
)

// A Stdin is the standard input of a command.
type Stdin struct {
	From    Source `json:",omitempty"`
	Command int    // of a pipe: the index of the command that writes it, -1 when it is no single one
	Text    Word   // of a text
}

// Read reads a command line for the shell that will run it. It never fails:
// what can't be read with certainty is in Opaque.
func Read(source string, c Context) Line {
	r := newReader(source, c)
	r.read()
	return r.end()
}

func (r *reader) read() {
	if reason := suspicious(r.source); reason != "" {
		r.reject(reason)
		return
	}
	stmts, text := r.quick.read(r.source)
	if r.line.Canonical = text; stmts == nil {
		if stmts = r.parse(r.source, r.context.Shell); stmts == nil && len(r.line.Opaque) > 0 {
			return
		}
	}
	r.list(stmts, r.start())
}

// parse reads the source as a tree, and prints that as what is executed.
func (r *reader) parse(source string, d Dialect) []*syntax.Stmt {
	file, err := parse(source, d)
	if err != nil {
		r.reject("it can't be parsed: " + err.Error())
		return nil
	}
	if r.line.Canonical, err = canonical(file, source, d); err != nil {
		r.reject(err.Error())
		return nil
	}
	return file.Stmts
}

// ReadArgs reads the arguments of a program that is executed without a shell:
// argv[0] is its name. Canonical is the same for a person to read.
func ReadArgs(argv []string, c Context) Line {
	source := strings.Join(argv, " ")
	r := newReader(source, c)
	r.readArgs(argv)
	return r.end()
}

func (r *reader) readArgs(argv []string) {
	if reason := suspicious(r.source); reason != "" {
		r.reject(reason)
		return
	}
	if len(argv) == 0 {
		r.reject("there is no command")
		return
	}
	words := make([]Word, len(argv))
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		words[i].Text = arg
		quoted[i], _ = syntax.Quote(arg, syntax.LangBash) // fails for NUL only
	}
	r.line.Canonical = strings.Join(quoted, " ")
	st := r.start()
	r.run(Command{Words: words}, &st, program)
}

// reject says that nothing of the line can be judged.
func (r *reader) reject(reason string) {
	r.line.Canonical, r.line.Commands = "", nil
	r.line.Opaque = []Opaque{{Reason: reason, Text: escape(r.line.Source)}}
}
