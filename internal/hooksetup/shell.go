package hooksetup

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// ShellName is the Plan.Agent of what is written for the user's shell.
const ShellName = "shell"

// The lines between which all is ours.
const (
	shellBegin = "# >>> bawn init: agents start in Bawn; \"bawn init --undo\" takes this out >>>\n"
	shellEnd   = "# <<< bawn init <<<\n"
)

// startFiles are the start-up files of each shell that something can be written for.
func (s Setup) startFiles() map[string]string {
	zsh, fish := s.Home, filepath.Join(s.Home, ".config")
	if dir := s.Getenv("ZDOTDIR"); filepath.IsAbs(dir) {
		zsh = dir
	}
	if dir := s.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		fish = dir
	}
	return map[string]string{
		"bash": filepath.Join(s.Home, ".bashrc"),
		"zsh":  filepath.Join(zsh, ".zshrc"),
		"fish": filepath.Join(fish, "fish", "conf.d", "bawn.fish"),
	}
}

// StartFile is the start-up file of the user's shell, by what SHELL says; "" is a
// shell for which nothing can be written.
func (s Setup) StartFile() string { return s.startFiles()[filepath.Base(s.Getenv("SHELL"))] }

// A Starter is an agent's program that a shell starts in Bawn.
type Starter struct {
	Program string
	Later   bool // it is not installed yet: the shell looks for it whenever it starts
}

// Shell says what would be written so that these programs start in Bawn where the
// user types their names.
func (s Setup) Shell(programs []Starter) (Plan, error) {
	p := Plan{Agent: ShellName, Level: User}
	shell := filepath.Base(s.Getenv("SHELL"))
	file := s.StartFile()
	if file == "" {
		return p, nil
	}
	functions := s.posix(programs)
	if shell == "fish" {
		functions = s.fish(programs)
	}
	return s.shellPlan(p, map[string]string{file: functions})
}

// UndoShell says what would be taken back, of every shell.
func (s Setup) UndoShell() (Plan, error) {
	files := map[string]string{}
	for _, file := range s.startFiles() {
		if text, err := readFile(file); err == nil && bytes.Contains(text, []byte(shellBegin)) {
			files[file] = ""
		}
	}
	return s.shellPlan(Plan{Agent: ShellName, Level: User, undo: true}, files)
}

// shellPlan plans the edit of each file, with the functions that it gets.
func (s Setup) shellPlan(p Plan, files map[string]string) (Plan, error) {
	r, err := s.readRecord()
	if err != nil {
		return p, err
	}
	for file, functions := range files {
		base := s.Home
		if !strings.HasPrefix(file, base+"/") {
			base = filepath.Dir(file)
		}
		e, err := s.edit(part{
			path: file, base: base, mode: shared,
			put:  func(old []byte) ([]byte, error) { return putShell(old, functions) },
			take: takeShell,
		}, r, s.by(ShellName, User), p.undo)
		if err != nil {
			return p, &FileError{file, err}
		}
		p.Edits = append(p.Edits, e)
	}
	return p, nil
}

// putShell ends a start-up file with our functions.
func putShell(old []byte, functions string) ([]byte, error) {
	rest, err := takeShell(old, []byte{})
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 && !bytes.HasSuffix(rest, []byte("\n")) {
		rest = append(rest, '\n')
	}
	return append(rest, shellBegin+functions+shellEnd...), nil
}

// posix are the functions for bash and zsh. An alias of that name does not break
// their form.
func (s Setup) posix(programs []Starter) string {
	var b strings.Builder
	for _, p := range programs {
		if p.Later {
			fmt.Fprintf(&b, "command -v %s >/dev/null && ", p.Program)
		}
		fmt.Fprintf(&b, "function %s { bawn_guest %[1]s \"$@\"; }\n", p.Program)
	}
	fmt.Fprintf(&b, `function bawn_guest {
	if [ -n "${BAWN_SESSION-}" ]; then command "$@"; return; fi
	if [ -t 2 ]; then echo "bawn: $1 is a guest; \"command $1\" starts it without Bawn" >&2; fi
	command %s run -- "$@"
}
`, quote(s.Bawn))
	return b.String()
}

// fish are the functions for fish, which reads their file for scripts as well.
func (s Setup) fish(programs []Starter) string {
	var b strings.Builder
	b.WriteString("if status is-interactive\n")
	for _, p := range programs {
		if p.Later {
			fmt.Fprintf(&b, "command -q %s; and ", p.Program)
		}
		fmt.Fprintf(&b, "function %s --description 'as a guest, by Bawn'; bawn_guest %[1]s $argv; end\n", p.Program)
	}
	fmt.Fprintf(&b, `function bawn_guest
    if test -n "$BAWN_SESSION"
        command $argv
        return
    end
    if isatty stderr
        echo "bawn: $argv[1] is a guest; \"command $argv[1]\" starts it without Bawn" >&2
    end
    command %s run -- $argv
end
end
`, fishQuote(s.Bawn))
	return b.String()
}

// fishQuote returns a word that fish reads as s: within its quotes a backslash
// counts before another one and before a quote.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

// takeShell takes our functions out. before is nil where there was no file.
func takeShell(old, before []byte) ([]byte, error) {
	i := bytes.Index(old, []byte(shellBegin))
	if i < 0 {
		return old, nil
	}
	n := bytes.Index(old[i:], []byte(shellEnd))
	if n < 0 {
		return nil, fmt.Errorf("it has the line %q and no line %q after it; put it right, or take the first out", strings.TrimSpace(shellBegin), strings.TrimSpace(shellEnd))
	}
	rest := append(bytes.Clone(old[:i]), old[i+n+len(shellEnd):]...)
	if before == nil && len(rest) == 0 {
		return nil, nil
	}
	return rest, nil
}
