// Package invocation reads how a shell is called: its options, and whether it
// runs a text, a script, or what standard input says (sh(1p), bash(1),
// dash(1)). It runs nothing.
package invocation

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Source is where a shell takes its commands from.
type Source uint8

const (
	_      Source = iota
	Text          // -c TEXT
	Script        // a file
	Input         // standard input
	Info          // --version, --help: it runs no command
)

// An Invocation is how a shell was called. The zero Invocation is invalid.
type Invocation struct {
	Shell       string // base name, without the "-" of a login shell
	Zero        string // argv[0]
	Source      Source
	Text        string   // of Text
	Params      []string // $0 and on where Source is Text; else $1 and on
	Script      string   // of Script
	Login       bool     // -l, --login, or "-" before its name
	Interactive bool     // -i
	// Options are the options in effect that can be given again, each as its
	// own word or pair of words. -c, -s, -l, -i and those that only choose
	// start-up files are left out.
	Options []string
	// Odd says that an option may change what a text means.
	Odd bool
}

// Names are the shells that are understood.
var Names = []string{"sh", "bash", "dash", "ash", "zsh", "ksh"}

// NameOf returns the name of the shell that argv[0] calls, or "".
func NameOf(zero string) string {
	name := path.Base(strings.TrimPrefix(zero, "-"))
	if slices.Contains(Names, name) {
		return name
	}
	return ""
}

// Options that let a text mean what it means: they print more, or stop earlier.
const plainLetters = "euxvbhEmn"

var plainNames = []string{
	"errexit", "nounset", "xtrace", "verbose", "notify", "hashall", "errtrace", "monitor", "noexec", "pipefail", "functrace",
}

// Long options of bash, and whether they take a value. What is empty chooses
// start-up files or the line editor, which nothing here has.
var longOptions = map[string]string{
	"norc": "drop", "noprofile": "drop", "noediting": "drop", "login": "login", "init-file": "value", "rcfile": "value",
	"verbose": "keep", "version": "info", "help": "info",
}

// Parse reads argv. It errs where argv calls no shell that is understood, and
// where a real shell would refuse the options.
func Parse(argv []string) (Invocation, error) {
	if len(argv) == 0 || NameOf(argv[0]) == "" {
		return Invocation{}, fmt.Errorf("%q is no shell; want one of %q", argv, Names)
	}
	v := Invocation{Shell: NameOf(argv[0]), Zero: argv[0], Login: strings.HasPrefix(argv[0], "-")}
	p := parser{v: &v, rest: argv[1:]}
	if err := p.options(); err != nil {
		return Invocation{}, err
	}
	return v, p.operands()
}

type parser struct {
	v           *Invocation
	rest        []string
	text, input bool // -c, -s
}

// options reads options up to the first operand. Short ones end the long ones.
func (p *parser) options() error {
	for short := false; len(p.rest) > 0; {
		word := p.rest[0]
		switch {
		case word == "-" || word == "--":
			p.rest = p.rest[1:]
			return nil
		case len(word) < 2 || word[0] != '-' && word[0] != '+':
			return nil
		}
		p.rest = p.rest[1:]
		err := error(nil)
		if name, ok := strings.CutPrefix(word, "--"); ok && !short {
			err = p.long(name)
		} else {
			short, err = true, p.cluster(word)
		}
		if err != nil || p.v.Source == Info {
			return err
		}
	}
	return nil
}

func (p *parser) long(name string) error {
	what, known := longOptions[name]
	if !known || p.v.Shell == "dash" || p.v.Shell == "ash" {
		p.keep(true, "--"+name)
		return nil
	}
	switch what {
	case "value":
		_, err := p.value("--" + name)
		return err
	case "login":
		p.v.Login = true
	case "keep":
		p.keep(false, "--"+name)
	case "info":
		p.v.Source = Info
		p.keep(false, "--"+name)
	}
	return nil
}

// cluster reads "-euo": letters, of which o and O take a word each.
func (p *parser) cluster(word string) error {
	sign := word[:1]
	for _, c := range word[1:] {
		letter := string(c)
		switch {
		case c == '-' || c <= ' ' || c >= 0x7f:
			return fmt.Errorf("%q is no option of a shell", word)
		case letter == "o" || letter == "O":
			name, err := p.value(sign + letter)
			if err != nil {
				return err
			}
			p.keep(letter == "O" || !slices.Contains(plainNames, name), sign+letter, name)
		case sign == "+":
			p.keep(!strings.Contains(plainLetters, letter), sign+letter)
		case letter == "c":
			p.text = true
		case letter == "s":
			p.input = true
		case letter == "l":
			p.v.Login = true
		case letter == "i":
			p.v.Interactive = true
		default:
			p.keep(!strings.Contains(plainLetters, letter), sign+letter)
		}
	}
	return nil
}

func (p *parser) keep(odd bool, words ...string) {
	p.v.Odd = p.v.Odd || odd
	p.v.Options = append(p.v.Options, words...)
}

func (p *parser) value(option string) (string, error) {
	if len(p.rest) == 0 {
		return "", fmt.Errorf("option %q requires an argument", option)
	}
	value := p.rest[0]
	p.rest = p.rest[1:]
	return value, nil
}

// operands says what the words after the options are.
func (p *parser) operands() error {
	v := p.v
	switch {
	case v.Source == Info:
	case p.text && len(p.rest) == 0:
		return fmt.Errorf("option %q requires an argument", "-c")
	case p.text:
		v.Source, v.Text, v.Params = Text, p.rest[0], p.rest[1:]
	case p.input || len(p.rest) == 0:
		v.Source, v.Params = Input, p.rest
	default:
		v.Source, v.Script, v.Params = Script, p.rest[0], p.rest[1:]
	}
	return nil
}

// Argv is the argv of program that means the same as v, without start-up
// files; text is executed in place of v.Text. Of Info it is v's own.
func (v Invocation) Argv(program, text string) []string {
	argv := []string{program}
	if v.Shell == "bash" && v.Source != Info {
		argv = append(argv, "--norc", "--noprofile")
	}
	argv = append(argv, v.Options...)
	switch v.Source {
	case Text:
		argv = append(argv, "-c", "--", text)
	case Script:
		argv = append(argv, "--", v.Script)
	case Input:
		argv = append(argv, "-s", "--")
	}
	return append(argv, v.Params...)
}
