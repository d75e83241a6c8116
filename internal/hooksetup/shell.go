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

// StartFile is the start-up file of the user's shell, by what SHELL says; "" is a
// shell for which nothing can be written.
func (s Setup) StartFile() string {
	switch filepath.Base(s.Getenv("SHELL")) {
	case "bash":
		return filepath.Join(s.Home, ".bashrc")
	case "zsh":
		if dir := s.Getenv("ZDOTDIR"); filepath.IsAbs(dir) {
			return filepath.Join(dir, ".zshrc")
		}
		return filepath.Join(s.Home, ".zshrc")
	}
	return ""
}

// Shell says what would be written so that these programs start in Bawn where the
// user types their names, or what would be taken back.
func (s Setup) Shell(programs []string, undo bool) (Plan, error) {
	p := Plan{Agent: ShellName, Level: User, undo: undo}
	file := s.StartFile()
	if file == "" {
		return p, nil
	}
	r, err := s.readRecord()
	if err != nil {
		return p, err
	}
	base := s.Home
	if !strings.HasPrefix(file, base+"/") {
		base = filepath.Dir(file)
	}
	e, err := s.edit(part{
		path: file, base: base, mode: shared,
		put:  func(old []byte) ([]byte, error) { return s.putShell(old, programs) },
		take: func(old, before []byte) ([]byte, error) { return takeShell(old, before) },
	}, r, s.by(ShellName, User), undo)
	if err != nil {
		return p, &FileError{file, err}
	}
	p.Edits = []Edit{e}
	return p, nil
}

// putShell ends a start-up file with our functions.
func (s Setup) putShell(old []byte, programs []string) ([]byte, error) {
	rest, err := takeShell(old, []byte{})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Write(rest)
	if len(rest) > 0 && !bytes.HasSuffix(rest, []byte("\n")) {
		b.WriteByte('\n')
	}
	b.WriteString(shellBegin)
	for _, p := range programs {
		fmt.Fprintf(&b, "function %s { bawn_guest %[1]s \"$@\"; }\n", p) // an alias of that name does not break this form
	}
	fmt.Fprintf(&b, `function bawn_guest {
	if [ -n "${BAWN_SESSION-}" ]; then command "$@"; return; fi
	if [ -t 2 ]; then echo "bawn: $1 is a guest; \"command $1\" starts it without Bawn" >&2; fi
	command %s run -- "$@"
}
`, quote(s.Bawn))
	b.WriteString(shellEnd)
	return []byte(b.String()), nil
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
