package grammar

import (
	"path"
	"strings"
)

// The tests and actions of find(1) that print or decide, by the number of
// their arguments.
var (
	findAlone = NewWordSet("-print -print0 -ls -prune -quit -depth -d -xdev -mount -daystart -follow -noleaf -empty -readable -writable -executable " +
		"-true -false -not -a -and -o -or ! ( ) , -nouser -nogroup -warn -nowarn -ignore_readdir_race -noignore_readdir_race -help -version --help --version")
	findOne = NewWordSet("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -mmin -atime " +
		"-amin -ctime -cmin -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile -fstype -used " +
		"-regextype -printf -context -ilname")
	findNames = NewWordSet("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname")
	findLinks = NewWordSet("-H -L -P")
	findExec  = NewWordSet("-exec -execdir -ok -okdir")
)

// find accounts for starting points and an expression. What -exec runs is a
// command of its own; -fprint and its kin write files and have no meaning.
func find(_ *program, name string, args []Word) (Meaning, error) {
	m := match{form: &form{effect: Reads}, program: name, label: name}
	args, err := m.startingPoints(args)
	if err != nil {
		return Meaning{}, err
	}
	finds := m.finds(args)
	for len(args) > 0 {
		n, err := m.predicate(args)
		if err != nil {
			return Meaning{}, err
		}
		args = args[n:]
	}
	for i := range m.nested {
		m.nested[i].Below = append(m.nested[i].Below, finds...)
	}
	return Meaning{Form: name, Effect: m.form.effect, Claims: m.claims, Nested: m.nested, Finds: finds}, nil
}

// finds are the patterns of the names that an expression looks for, below the
// first starting point: what reads them reads what they match.
func (m *match) finds(args []Word) (out []string) {
	dir := "."
	if len(m.operands) > 0 && !m.operands[0].Glob {
		dir = m.operands[0].Text
	}
	for i := 1; i < len(args); i++ {
		if !findNames.Has(args[i-1].Text) || i > 1 && (args[i-2].Text == "!" || args[i-2].Text == "-not") || args[i].Vague != "" {
			continue
		}
		name := path.Base(args[i].Text)
		if strings.HasSuffix(args[i-1].Text, "regex") {
			name = unregex(name)
		}
		out = append(out, path.Join(dir, name))
		if rest := strings.TrimLeft(name, "*"); rest != name && rest != "" {
			out = append(out, path.Join(dir, ".*"+rest), path.Join(dir, rest))
		}
	}
	return out
}

// unregex makes a pattern of the shell of a simple regular expression.
func unregex(s string) string {
	return strings.NewReplacer(".*", "*", `\.`, ".", "$", "", "^", "").Replace(s)
}

func (m *match) startingPoints(args []Word) ([]Word, error) {
	for len(args) > 0 && args[0].Literal() && findLinks.Has(args[0].Text) {
		args = args[1:]
	}
	for len(args) > 0 {
		w := args[0]
		if w.Vague == "" && (strings.HasPrefix(w.Text, "-") || w.Text == "!" || w.Text == "(" || w.Text == ",") {
			break
		}
		if w.Vague != "" || w.Glob && startsWild(w.Text) {
			return nil, unproven("where find starts is not known")
		}
		if w.Text != "" {
			m.claim(Look, w)
			m.operands = append(m.operands, w)
		}
		args = args[1:]
	}
	return args, nil
}

// below are the directories whose names find hands to what it runs.
func (m *match) below() []string {
	var dirs []string
	for _, w := range m.operands {
		if w.Glob {
			return nil
		}
		dirs = append(dirs, w.Text)
	}
	if dirs == nil {
		return []string{"."}
	}
	return dirs
}

// predicate takes one test or action and says how many words it used.
func (m *match) predicate(args []Word) (int, error) {
	w := args[0]
	switch {
	case w.Vague != "" || len(w.Unset) > 0 && w.Text == "":
		return 0, unproven("a word of find is not known")
	case findAlone.Has(w.Text):
		return 1, nil
	case findOne.Has(w.Text) && len(args) > 1 && !(args[1].Vague != "" && args[1].Split):
		return 2, m.findArgument(w.Text, args[1])
	case w.Text == "-delete":
		for _, dir := range m.below() {
			m.claim(Delete, Word{Text: dir})
		}
		return 0, unproven("find -delete removes what it finds")
	case findExec.Has(w.Text):
		return m.findRuns(args)
	case len(w.Text) > 3 && strings.HasPrefix(w.Text, "-newer") && len(args) > 1:
		return 2, m.findArgument("-newer", args[1])
	case strings.HasPrefix(w.Text, "-O") && digits(w.Text[2:]):
		return 1, nil
	}
	return 0, unproven("nothing is known of find ", w.Text)
}

func (m *match) findArgument(name string, w Word) error {
	switch name {
	case "-newer", "-samefile", "-anewer", "-cnewer":
		return m.path("NAME", w)
	}
	return nil
}

// findRuns takes -exec COMMAND ; or -exec COMMAND {} +.
func (m *match) findRuns(args []Word) (int, error) {
	for i := 1; i < len(args); i++ {
		w := args[i]
		if !w.Literal() && w.Vague != "" {
			break
		}
		if w.Text == ";" || w.Text == "+" && args[i-1].Text == "{}" {
			if i == 1 {
				break
			}
			m.nested = append(m.nested, Nested{Args: args[1:i], Stdin: true, Replace: "{}", Below: m.below()})
			return i + 1, nil
		}
	}
	return 0, unproven("find ", args[0].Text, " has no end")
}

// searched are the patterns of the names that fd prints.
func (m *match) searched() []string {
	if m.program != "fd" && m.program != "fdfind" || len(m.operands) == 0 || !m.operands[0].Literal() {
		return nil
	}
	text := m.operands[0].Text
	name := unregex(text)
	if !strings.HasPrefix(text, "^") {
		return []string{"*" + name, ".*" + name, name}
	}
	return []string{name}
}
