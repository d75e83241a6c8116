package grammar

import (
	"errors"
	"path"
	"strings"
)

// flags takes the flags of args. Operands among them are put aside; what it
// returns are the words after the end of flags.
func (m *match) flags(args []Word) ([]Word, error) {
	for len(args) > 0 {
		w := args[0]
		switch {
		case w.Text == "--" && w.Literal():
			if m.form.flags.known["--"].refused {
				return nil, m.refuse("--") // what follows would mean something else
			}
			return args[1:], nil
		case !isFlag(w):
			if m.form.posix {
				return args, nil
			}
			if err := m.harmless(w); err != nil {
				return nil, err
			}
			m.operands = append(m.operands, w)
			args = args[1:]
			continue
		}
		n, err := m.flag(w, args[1:])
		if err != nil {
			return nil, err
		}
		args = args[1+n:]
	}
	return nil, nil
}

// isFlag reports whether a word is one by its first letters, which are known.
func isFlag(w Word) bool {
	return len(w.Text) > 1 && w.Text[0] == '-'
}

// harmless refuses an operand whose value could turn out to be a flag of a
// program that has dangerous ones.
func (m *match) harmless(w Word) error {
	free := freePrograms.Has(m.program)
	switch {
	case w.Vague != "" && len(w.Below) == 0 && w.Text == "" && !free:
		return unproven("what ", w.Vague, " says could be a flag of ", m.program)
	case w.Glob && startsWild(w.Text) && !free && m.form.effect != Builds && !wildPrograms.Has(m.program):
		return unproven("a name that matches ", w.Text, " could be a flag of ", m.program, "; write ./", w.Text)
	case len(w.Unset) > 0 && m.form.effect != Reads && m.form.effect != Remote:
		return unproven("the variable ", w.Unset[0], " is not set in this line")
	}
	return nil
}

func startsWild(s string) bool { return s != "" && strings.ContainsRune("*?[@!+", rune(s[0])) }

// freePrograms have no option that can do harm, so any word is fine.
var freePrograms = NewWordSet("echo printf true false : test [ ls cat head tail wc stat basename dirname realpath readlink tac rev nl md5sum sha1sum sha256sum sha512sum cksum which expr")

// wildPrograms may be given names that a leading wildcard finds: what they
// can be told to do by a name is to read another file.
var wildPrograms = NewWordSet("grep egrep fgrep zgrep du diff cmp file cut paste join comm fold fmt expand od xxd hexdump strings nm size column uniq b2sum sha224sum sha384sum")

// flag takes one flag and returns how many of the following words are its
// value.
func (m *match) flag(w Word, next []Word) (int, error) {
	if w.Vague != "" && !strings.Contains(w.Text, "=") {
		return 0, unproven("a flag of ", m.program, " is not known")
	}
	name, attached, has := strings.Cut(w.Text, "=")
	if f, ok := m.form.flags.known[name]; ok && (len(name) > 2 || !has) {
		return m.long(name, f, attached, has, w, next)
	}
	switch {
	case m.form.flags.number && digits(w.Text[1:]) && w.Literal():
		return 0, nil
	case !strings.HasPrefix(w.Text, "--"):
		if n, err := m.bundle(w, next); err == nil || !m.form.flags.lenient || refusal(err) {
			return n, err
		}
	}
	if !m.form.flags.lenient {
		return 0, unproven("nothing is known of ", m.label, " ", name)
	}
	return 0, m.unknownFlag(w)
}

// A refused flag is never taken for an unknown one.
type refused struct{ Unproven }

func (r *refused) Unwrap() error { return &r.Unproven }

func refusal(err error) bool { return errors.As(err, new(*refused)) }

func (m *match) refuse(name string) error {
	return &refused{Unproven{m.label + " " + name + " is not known to be harmless"}}
}

// long takes a flag that is named in full.
func (m *match) long(name string, f flag, attached string, has bool, w Word, next []Word) (int, error) {
	v := w
	v.Text = attached
	switch {
	case f.refused:
		return 0, m.refuse(name)
	case f.second != nil && (has || len(next) < 2):
		return 0, unproven(m.label, " ", name, " lacks its values")
	case f.second != nil:
		if err := m.flagValue(name, f, next[0]); err != nil {
			return 0, err
		}
		return 2, m.flagValue(name, flag{value: *f.second}, next[1])
	case has && (f.takes || f.optional):
		return 0, m.flagValue(name, f, v)
	case has:
		return 0, unproven(m.label, " ", name, " takes no value")
	case f.takes && len(next) == 0:
		return 0, unproven(m.label, " ", name, " lacks its value")
	case f.takes:
		return 1, m.flagValue(name, f, next[0])
	}
	m.note(name, Word{})
	return 0, nil
}

// bundle takes one-letter flags written together, the last maybe with a value.
func (m *match) bundle(w Word, next []Word) (int, error) {
	if !w.Literal() && !w.Glob && len(w.Unset) == 0 {
		return 0, unproven("a flag of ", m.program, " is not known")
	}
	text := w.Text[1:]
	for i, c := range text {
		name := "-" + string(c)
		f, ok := m.form.flags.known[name]
		rest := text[i+len(string(c)):]
		switch {
		case !ok:
			return 0, unproven("nothing is known of ", m.label, " ", name)
		case f.refused:
			return 0, m.refuse(name)
		case f.takes && rest == "":
			if len(next) == 0 {
				return 0, unproven(m.label, " ", name, " lacks its value")
			}
			return 1, m.flagValue(name, f, next[0])
		case f.takes, f.optional && rest != "":
			v := w
			v.Text = rest
			return 0, m.flagValue(name, f, v)
		}
		m.note(name, Word{})
	}
	return 0, nil
}

func (m *match) note(name string, w Word) {
	if m.seen == nil {
		m.seen = map[string]Word{}
	}
	m.seen[name] = w
}

// flagValue checks the value of a flag. It is one word, so it is no flag
// itself, whatever it says.
func (m *match) flagValue(name string, f flag, w Word) error {
	if w.Split || w.Glob && !globValue[f.value.kind] {
		return unproven("the value of ", m.label, " ", name, " is not one known word")
	}
	m.supplied = m.supplied || f.supplies
	m.note(name, w)
	if f.value.kind == "SCRIPT" {
		m.nested = append(m.nested, Nested{IsScript: true, Script: w})
		return nil
	}
	return m.value(f.value, w)
}

// globValue are the types whose flags may have an unquoted pattern attached:
// --include=*.go.
var globValue = map[string]bool{"TEXT": true, "GLOB": true, "NAME": true, "FILE": true, "TREE": true}

// unknownFlag judges a flag that a lenient form does not name: what is
// attached to it must be plain or lie in the workspace.
func (m *match) unknownFlag(w Word) error {
	if !w.Literal() {
		return unproven("a flag of ", m.program, " is not known")
	}
	name, v, has := strings.Cut(w.Text, "=")
	if i := strings.IndexAny(name, "/~.@"); i > 0 && !has {
		v = name[i:]
	} else if !has {
		return nil
	}
	if v == "" {
		return nil
	}
	if strings.ContainsAny(v, "/.") && path.Clean(v) != "." {
		m.claim(Write, Word{Text: v}) // it may be where a report goes
	}
	return m.value(value{kind: "ARG"}, Word{Text: v})
}
